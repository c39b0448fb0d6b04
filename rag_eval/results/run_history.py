"""A series of runs through time: one line per run in a folder, and next to it a file with the run's values by case.

    FOLDER/history.jsonl       a line of JSON per run: who judged, the means with counts and intervals, the cost
    FOLDER/runs/<id>.csv.gz    a row per case: hashes of query and ground truth, the bot, RQS and the metrics

Texts are in neither. A metric that the judge could not score is `failed`, one that does not apply is empty.
"""

import csv
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rag_eval.errors import InputError
from rag_eval.records import (
    MATCHING,
    METRIC_LABELS,
    SPENT_LABELS,
    TOXICITY,
    CaseResult,
    FailureMode,
    Outcome,
    RunFacts,
    Score,
)
from rag_eval.results.baseline import (
    NAMES,
    PastRun,
    comparable,
    numbered,
    text_digest,
)
from rag_eval.results.paired import NO_BOT, NO_COMMON, Direction, PairedMeans, common_words, queries_words
from rag_eval.results.stored import is_score
from rag_eval.results.summary import RQS, BotSummary, Mean, Summary
from rag_eval.results.verdict import NOT_PREFERRED, PREFERRED, preference_words, strength_words
from rag_eval.texts.display import decimals, digits_that_differ, percent, percent_range, shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from rag_eval.results.findings import Findings
    from rag_eval.results.head_to_head import HeadToHead
    from rag_eval.results.intervals import Interval

FORMAT = 1
LINES, CASES = "history.jsonl", "runs"
CASE_COLUMNS = ("query", "ground_truth", "bot", *NAMES, *SPENT_LABELS)
FAILED = "failed"
_LONGEST_LINE = 4_000_000
"""Bytes. A run of 200 bots takes about 200,000."""
_LONGEST_ROW = 100_000
"""Characters of a case's values: a bot's name has up to 1,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpentOfRun:
    """What a bot spent on its responses, in the unit of the run; see `summary.Spent`."""

    count: int
    mean: float
    total: float
    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _BotOfRun:
    """What a run found out about one bot, over all the bot's own cases."""

    bot: str
    rqs: Mean
    interval: tuple[float, float] | None
    """Of the mean RQS, 95%; None for few queries."""
    metrics: Mapping[str, Mean]
    """By name, toxicity included; those that were switched on."""
    queries: int
    judged: int
    """Queries that were judged in full: the whole that shares of failures refer to."""
    failure_modes: Mapping[FailureMode, int]
    """Of these queries."""
    spent: Mapping[str, _SpentOfRun]
    """By names of SPENT_LABELS."""

    @property
    def failures(self) -> float | None:
        """Share of the judged queries with at least one failure mode; None if none was judged."""
        return 1 - self.failure_modes.get(FailureMode.OK, 0) / self.judged if self.judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOfRun:
    """How often the responses of one bot were preferred to those of another."""

    one: str
    other: str | None
    """None for an average bot, from the pairs of all bots."""
    queries: int
    """Queries for which they were compared."""
    win_rate: float | None
    """Of `one`, 0 to 1, a tie as half; None without any."""
    interval: tuple[float, float] | None
    """95%; None for few queries."""
    verdict: str
    """What can be said of `one`, in words; empty if the verdict is on all pairs together."""

    def seen_from(self, bot: str) -> "PairOfRun":
        """The same with this bot as `one`."""
        if bot == self.one:
            return self
        return replace(
            self,
            one=bot,
            other=self.one,
            win_rate=None if self.win_rate is None else 1 - self.win_rate,
            interval=self.interval and (1 - self.interval[1], 1 - self.interval[0]),
            verdict=_MIRRORED.get(self.verdict, self.verdict),
        )

    @property
    def words(self) -> str:
        """Such as 'Birch: 58% of 20 (95% CI 51–65%), preferred'."""
        rate = "–" if self.win_rate is None else percent(self.win_rate)
        told = f"{self.other or 'an average bot'}: {rate} of {self.queries:,}"
        told += f" (95% CI {percent_range(*self.interval)})" if self.interval else ""
        return f"{told}, {self.verdict}" if self.verdict else told


_MIRRORED = {PREFERRED: NOT_PREFERRED, NOT_PREFERRED: PREFERRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class _HistoryRun:
    """One line of the history: all that a run leaves of itself besides its values by case."""

    format: int = FORMAT
    id: str
    started: datetime
    input_name: str
    input_hash: str
    """SHA-256 of the input file."""
    judge: str
    is_proxy: bool
    prompts: str = ""
    """Form of the prompts; empty for the offline judge."""
    version: str
    metrics: tuple[str, ...]
    weights: Mapping[str, float]
    rows: int
    bots: tuple[_BotOfRun, ...]
    cost: float | None = None
    currency: str = ""
    seconds: float = 0.0
    partial: str = ""
    """Why the run ended early; empty for a complete run."""
    stopped_at: int = 0
    """Rows after which the run stopped as planned, since the answer was clear; 0 if all were judged."""
    spent_units: Mapping[str, str] = field(default_factory=dict)
    """Of latency and cost, by name; empty if no unit was named."""
    since: str = ""
    """Id of the comparable run before; empty without one, and if its values by case were lost."""
    changes: tuple[PairedMeans, ...] = ()
    """What changed since that run, case by case, tested together."""
    pairs: tuple[PairOfRun, ...] = ()
    """Of every two bots once, if responses were compared in pairs."""
    pair_judge: str = ""
    """Who compared them, if that is not `judge`."""

    def pairs_of(self, bot: str) -> list[PairOfRun]:
        """As this bot sees them."""
        return [pair.seen_from(bot) for pair in self.pairs if bot in (pair.one, pair.other)]

    def unlike(self, other: "_HistoryRun | RunFacts") -> tuple[str, ...]:
        """What makes the means of two runs incomparable, whatever the bots answered; empty if nothing does."""
        pairs = {
            "judge": (self.judge, other.judge),
            "prompts": (self.prompts, other.prompts),
            # Arithmetic over words changes with the program, a model does not.
            "version": (self.version, other.version) if self.is_proxy and other.is_proxy else (0, 0),
            "metrics": (set(self.metrics), set(other.metrics)),
            "weights": (_rounded(self.weights), _rounded(other.weights)),
        }
        return tuple(name for name, (mine, others) in pairs.items() if mine != others)


@dataclass(frozen=True, slots=True)
class History:
    """The runs of a folder in the order of time."""

    folder: Path
    runs: tuple[_HistoryRun, ...] = ()
    damaged: tuple[str, ...] = ()
    """Lines that could not be read, one sentence each."""

    def last_like(self, run: "_HistoryRun | RunFacts") -> _HistoryRun | None:
        """The last complete run that can be compared with this one and began before it; None if there is none."""
        earlier = (each for each in reversed(self.runs) if each.started < run.started and not each.partial)
        return next((each for each in earlier if not each.unlike(run)), None)

    def past_run(self, run: _HistoryRun) -> PastRun | None:
        """The values of a run by case; None if their file is missing. Raises InputError if it is damaged."""
        try:
            cases = list(self._cases(run))
        except FileNotFoundError:
            return None
        keys = numbered(texts for texts, _ in cases)
        values = {key: values for key, (_, values) in zip(keys, cases, strict=True)}
        return PastRun(name_of(run), values, run.judge, is_hashed=True, spent_units=run.spent_units)

    def _cases(self, run: _HistoryRun) -> Iterator[tuple[tuple[str, str, str], Mapping[str, float]]]:
        """Raises FileNotFoundError, and InputError for a file that is not as the run left it."""
        path = cases_path(self.folder, run.id)
        cases = sum(bot.queries for bot in run.bots)
        place, number = str(path), 0
        try:
            with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                rows = csv.DictReader(_short_lines(file))
                for number, row in enumerate(rows, 1):
                    if number > cases:
                        raise ValueError(f"it has more cases than the run, which has {cases:,}")
                    place = f"{path}, line {rows.line_num}"
                    case = _case(row, run.metrics)
                    place = str(path)
                    yield case
            if number < cases:
                raise ValueError(f"it has {number:,} of the {cases:,} cases of the run")
        except FileNotFoundError:
            raise
        except (OSError, EOFError, zlib.error, csv.Error, ValueError) as error:
            raise InputError(
                f"{place}: {_damage_of(error)}; restore the file, or delete it to compare with nothing"
            ) from error


def read_history(folder: Path) -> History:
    """The history in `folder`; empty if there is none yet. Raises InputError if it cannot be read."""
    path = folder / LINES
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; --history names a folder")
    if not path.exists():
        return History(folder)
    runs: dict[tuple[str, datetime], _HistoryRun] = {}
    damaged = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_bounded_lines(file), 1):
                if not line.strip():
                    continue
                try:
                    run = _run_of(line)
                    runs[run.id, run.started] = run  # the later line of a run that was continued
                except (ValueError, RecursionError) as error:
                    damaged.append(f"{path}: line {number} was skipped: {_reason(error)}")
    except OSError as error:
        raise InputError(f"{path}: the history cannot be read: {error.strerror or error}") from error
    return History(folder, tuple(sorted(runs.values(), key=lambda run: run.started)), tuple(damaged))


def run_line(run: _HistoryRun) -> str:
    """The run as a line of history.jsonl, without the line's end."""
    plain = _adapter().dump_python(run, mode="json", exclude=None if run.pairs else {"pairs", "pair_judge"})
    return json.dumps(plain, allow_nan=False)


def run_of(
    run_id: str,
    input_hash: str,
    facts: RunFacts,
    summary: Summary,
    findings: "Findings",
    since: str = "",
    pair_judge: str = "",
) -> _HistoryRun:
    """The line of a run that has ended. `facts` are those of its end, `since` is the id of the run before, `pair_judge`
    who compared responses in pairs."""
    return _HistoryRun(
        id=run_id,
        started=facts.started,
        input_name=facts.input_name,
        input_hash=input_hash,
        judge=facts.judge,
        is_proxy=facts.is_proxy,
        prompts=facts.prompts,
        version=facts.version,
        metrics=facts.metrics,
        weights=facts.weights,
        rows=facts.rows,
        bots=tuple(_bot(bot, facts, findings) for bot in summary.bots),
        cost=facts.usage.cost,
        currency=facts.currency,
        seconds=facts.seconds,
        partial=facts.partial,
        stopped_at=facts.looks[facts.looks_taken - 1].rows if facts.has_stopped_as_planned else 0,
        spent_units=facts.spent_units,
        since=since,
        changes=findings.since_last or (),
        pairs=_pairs(findings.head_to_head),
        pair_judge="" if pair_judge == facts.judge else pair_judge,
    )


def new_id(facts: RunFacts) -> str:
    """A name for a run's file: when it began (UTC), and what tells it from another one of that moment."""
    content = f"{facts.started.isoformat()} {facts.input_name} {facts.judge} {facts.bots}"
    return f"{facts.started.astimezone(UTC):%Y%m%dT%H%M%S}-{text_digest(content)[:8]}"


def cases_path(folder: Path, run_id: str) -> Path:
    return folder / CASES / f"{run_id}.csv.gz"


def case_row(result: CaseResult) -> Sequence[str]:
    """The values of one case as cells under CASE_COLUMNS."""
    case = result.case
    texts = [
        text_digest(comparable(case.query)),
        text_digest(comparable(case.reference or "")),
        comparable(case.bot),
    ]
    rqs = "" if result.rqs is None else repr(result.rqs)
    spent = (case.spent.get(name) for name in SPENT_LABELS)
    return [
        *texts,
        rqs,
        *(_cell(result.scores.get(name)) for name in METRIC_LABELS),
        *("" if value is None else repr(value) for value in spent),
    ]


def name_of(run: _HistoryRun) -> str:
    """How a reader knows the run."""
    return f"the run of {run.started:%Y-%m-%d %H:%M}"


def _bot(bot: BotSummary, facts: RunFacts, findings: "Findings") -> _BotOfRun:
    interval = findings.own[bot.bot]
    toxicity = {TOXICITY: bot.toxicity} if TOXICITY in facts.metrics else {}
    return _BotOfRun(
        bot=bot.bot,
        rqs=bot.rqs,
        interval=_limits(interval),
        metrics={**bot.metrics, **toxicity},
        queries=bot.total_queries,
        judged=bot.judged_queries,
        failure_modes=bot.full_modes,
        spent={
            name: _SpentOfRun(count=its.count, mean=its.mean, total=its.total, median=its.median, p95=its.p95)
            for name, its in bot.spent.items()
        },
    )


def _pairs(found: "HeadToHead | None") -> tuple[PairOfRun, ...]:
    if found is None:
        return ()
    is_matching = found.choice == MATCHING
    pairs = [
        PairOfRun(
            one=pair.one,
            other=pair.other,
            queries=pair.queries,
            win_rate=pair.win_rate,
            interval=_limits(pair.interval),
            verdict="" if is_matching else preference_words(pair, found),
        )
        for pair in found.pairs
    ]
    strengths = [
        PairOfRun(
            one=each.bot,
            other=None,
            queries=each.queries,
            win_rate=each.win_rate,
            interval=_limits(each.interval),
            verdict=strength_words(each, found),
        )
        for each in found.strengths
        if is_matching
    ]
    return (*pairs, *strengths)


def _limits(interval: "Interval | None") -> tuple[float, float] | None:
    return (interval.low, interval.high) if interval else None


def _rounded(weights: Mapping[str, float]) -> Mapping[str, float]:
    return {name: round(weight, 9) for name, weight in weights.items() if weight > 0}


def _cell(score: Score | None) -> str:
    if score is None or score.outcome is Outcome.NOT_APPLICABLE:
        return ""
    return FAILED if score.value is None else repr(score.value)


def _short_lines(file: IO[str]) -> Iterator[str]:
    """Raises ValueError for a line that is too long to be one of ours."""
    while line := file.readline(_LONGEST_ROW):
        if len(line) == _LONGEST_ROW:
            raise ValueError(f"it has a line of more than {_LONGEST_ROW:,} characters")
        yield line


def _case(
    row: Mapping[str, str | None], metrics: Iterable[str]
) -> tuple[tuple[str, str, str], Mapping[str, float]]:
    """Digests of query and ground truth, the bot, and what was scored. Raises ValueError, in words, for a row that is
    not one of ours."""

    def cell(column: str) -> str:
        text = row.get(column)
        if text is None:
            raise ValueError(f"it has no cell for {column}")
        return text

    names = [*(name for name in metrics if name in METRIC_LABELS), RQS]
    values = {name: _number(name, text) for name in names if (text := cell(name)) not in ("", FAILED)}
    values |= {name: _amount(name, amount) for name in SPENT_LABELS if (amount := row.get(name))}
    return (cell("query"), cell("ground_truth"), cell("bot")), values


def _number(column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not is_score(value):
        raise ValueError(f"{column}: '{shorten(cell, 40)}' is not a number from 0 to 1")
    return min(1.0, max(0.0, value))


def _amount(column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{column}: '{shorten(cell, 40)}' is not a number from 0 on")
    return value


def _damage_of(error: Exception) -> str:
    """In words."""
    if isinstance(error, UnicodeDecodeError | csv.Error):
        return "it is not a CSV file in UTF-8"
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be read ({error.strerror})"
    return "it is not a whole gzip file"


def _bounded_lines(file: Any) -> Iterator[bytes]:
    """The lines, each cut where it could no longer be one of ours."""
    while line := file.readline(_LONGEST_LINE):
        yield line
        while not line.endswith(b"\n") and line:
            line = file.readline(_LONGEST_LINE)


def _run_of(line: bytes) -> _HistoryRun:
    """Raises ValueError for anything that is no sound run."""
    document = json.loads(line, parse_constant=_refuse, parse_float=_bounded(float), parse_int=_bounded(int))
    if not isinstance(document, dict):
        raise ValueError("it is not the object of a run")
    version = document.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise ValueError(f"a later version of RAG Eval wrote it (format {version})")
    run = _adapter().validate_python(document)
    for bot in run.bots:
        means = [bot.rqs, *bot.metrics.values()]
        values = [*(bot.interval or ()), *(value for mean in means for value in (mean.value, mean.stdev))]
        if not all(value is None or is_score(value) for value in values):
            raise ValueError("a mean is outside 0 to 1")
        _check_spent(bot, run)
        counts = [*(its.count for its in bot.spent.values()), bot.judged, *bot.failure_modes.values()]
        counts += [count for mean in means for count in (mean.scored, mean.failed, mean.not_applicable)]
        if not all(0 <= count <= bot.queries for count in counts):
            raise ValueError("a count is below 0, or above the number of queries")
    for change in run.changes:
        _check_change(change)
    _check_pairs(run)
    if run.rows < 0 or (run.cost or 0) < 0:
        raise ValueError("a number is below 0")
    if not run.id.replace("-", "").isalnum() or not run.id.isascii():
        raise ValueError("its id is not one that RAG Eval gives")
    if run.started.tzinfo is None:
        raise ValueError("its time has no time zone")
    return run


def _check_spent(bot: _BotOfRun, run: _HistoryRun) -> None:
    if any(name not in SPENT_LABELS or name not in run.spent_units for name in bot.spent):
        raise ValueError("it has amounts of something else than latency and cost")
    amounts = (number for its in bot.spent.values() for number in (its.mean, its.total, its.median, its.p95))
    if not all(number >= 0 for number in amounts):
        raise ValueError("a latency or a cost is below 0")


def _check_pairs(run: _HistoryRun) -> None:
    rates = [
        rate for pair in run.pairs for rate in (pair.win_rate, *(pair.interval or ())) if rate is not None
    ]
    if not all(map(is_score, rates)) or any(pair.queries < 0 for pair in run.pairs):
        raise ValueError("a win rate is outside 0 to 1, or its number of queries is below 0")


def _check_change(change: PairedMeans) -> None:
    if not (is_score(change.before) and is_score(change.now)):
        raise ValueError("a mean is outside 0 to 1")
    if not 0 <= change.units <= change.queries:
        raise ValueError("a count of what was compared is below 0, or above that of the queries")
    common = change.common
    if not 0 <= change.queries <= common.both <= min(common.before, common.now):
        raise ValueError("a count of common queries is below 0, or above that of one of the runs")


def _refuse(number: str) -> float:
    raise ValueError(f"it has the number {number:.40}")


def _bounded(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Reads a number that a run can have."""

    def read(text: str) -> float:
        value = kind(text) if len(text) < _LONGEST_NUMBER else math.inf
        return value if abs(value) < _LARGEST else _refuse(text)

    return read


_LONGEST_NUMBER, _LARGEST = 100, 1e15
"""Characters, and value."""


def _reason(error: Exception) -> str:
    """In one line."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:200]
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "it is not a whole line of JSON"
    return " ".join(str(error).split())[:200]


@cache
def _adapter() -> "TypeAdapter[_HistoryRun]":
    from pydantic import TypeAdapter

    return TypeAdapter(_HistoryRun)


# For readers


@dataclass(frozen=True, slots=True)
class BotInTime:
    """One bot in one run, next to the same bot in the run before."""

    run: _HistoryRun
    bot: _BotOfRun
    segment: int
    """Counted from 0 for each bot. Only means of one segment are comparable, so only they are connected."""
    verdict: str
    """What can be said of the change since the run before, in words."""
    change: PairedMeans | None = None
    """Of the mean RQS, over the queries of both runs; None where that was not tested."""


def bots_in_time(history: History) -> list[BotInTime]:
    """All bots of all runs, sorted by bot, then by time; the bots of the last run first, in its order."""
    names = dict.fromkeys(bot.bot for run in reversed(history.runs) for bot in run.bots)
    lines: list[BotInTime] = []
    for name in names:
        before: BotInTime | None = None
        for run in history.runs:
            bot = next((each for each in run.bots if each.bot == name), None)
            if bot is not None:
                before = _after(before, run, bot)
                if run.stopped_at:
                    before = replace(before, verdict=f"{before.verdict}; stopped as planned")
                lines.append(before)
    return lines


def changes_words(history: History) -> list[str]:
    """What changed in the last run since the last comparable one, one sentence each."""
    if not history.runs:
        return []
    run = history.runs[-1]
    before = history.last_like(run)
    if before is None:
        if len(history.runs) == 1:
            return ["The history has one run so far; there is nothing to compare it with."]
        same = "version of RAG Eval" if run.is_proxy else "prompts"
        return [
            f"Changes are not tested: no complete earlier run has the same judge, {same}, metrics and weights as "
            "the last run."
        ]
    if run.since != before.id:
        return [
            f"Changes since {name_of(before)} are not tested: its values by case were missing or damaged."
        ]
    if not run.changes:
        is_shared = {bot.bot for bot in before.bots} & {bot.bot for bot in run.bots}
        return [f"Changes since {name_of(before)} are not tested: {NO_COMMON if is_shared else NO_BOT}."]
    claimed = [change for change in run.changes if change.direction in (Direction.BETTER, Direction.WORSE)]
    lines = [
        f"{change.bot}: {NAMES[change.name]} is significantly {change.direction.value} than in {name_of(before)}: "
        f"{_then_and_now(change)} ({common_words(change.queries)})."
        for change in claimed
    ]
    none = f"No significant change since {name_of(before)} in {len(run.changes)} means (paired tests)."
    if all(change.too_few for change in run.changes):
        none = f"Changes since {name_of(before)} are not tested: too few {run.changes[0].too_few}."
    common = {change.bot: change.common for change in run.changes}
    return [*(lines or [none]), *queries_words(common, name_of(before))]


def _then_and_now(change: PairedMeans) -> str:
    digits = digits_that_differ([(change.before, change.now)])
    return f"{decimals(change.before, digits)} then, {decimals(change.now, digits)} now"


def _after(before: BotInTime | None, run: _HistoryRun, bot: _BotOfRun) -> BotInTime:
    segment = before.segment if before else 0
    if run.partial:
        return BotInTime(run, bot, segment + 1, "partial run")
    if before is None:
        return BotInTime(run, bot, segment, "first run")
    if before.run.partial:
        return BotInTime(run, bot, segment + 1, "after a partial run")
    if unlike := before.run.unlike(run):
        return BotInTime(run, bot, segment + 1, f"not comparable: other {', '.join(unlike)}")
    tested = (each for each in run.changes if each.bot == bot.bot and each.name == RQS)
    change = next(tested, None) if run.since == before.run.id else None
    verdict = _VERDICTS[change.direction if change else None]
    if change and change.is_open:
        verdict = f"too few {change.too_few}"
    return BotInTime(run, bot, segment, verdict, change)


_VERDICTS = {
    Direction.BETTER: "significantly better",
    Direction.WORSE: "significantly worse",
    Direction.UNDECIDED: "not significant",
    Direction.SAME: "no change",
    None: "not tested",
}
