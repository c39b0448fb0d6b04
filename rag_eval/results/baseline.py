"""What changed since an earlier run: per bot and metric, on the queries that both runs judged."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS, CaseResult, Outcome, RunFacts
from rag_eval.results.scoring import composite
from rag_eval.results.summary import RQS, rqs_outcome
from rag_eval.tables.bounds import Room
from rag_eval.tables.content import WORKBOOK, check_content
from rag_eval.tables.input_files import check_is_file
from rag_eval.tables.sheets import open_reader, value_rows

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval

NAMES: Mapping[str, str] = {RQS: "RQS", **METRIC_LABELS}
"""What is compared, and its column in the report."""
SELECTION = "Selection"
"""Header of a column that only a sheet that could not have all cases has; it says why each of its cases is there."""
WORST, RANDOM = "worst", "random"
"""What that column says. The worst are no sample: in another run of the same quality they would score higher."""
_REPORT_SHEET = "Per-Query Metrics"
_ALPHA = 0.05
_ROUNDING_ERROR = 1e-9
"""Of a composite that was computed twice."""
_MOST_DECIMALS = 9
"""A column of scores with more of them was not rounded."""
_FEWEST_DECIMALS = 2
"""Fewer say that the scores themselves are coarse, as those of pass or fail, not that they were rounded."""

Key = tuple[str, str, str, int]
"""Query, ground truth, bot, and how often these came before."""


class Direction(StrEnum):
    """A change is claimed only when chance would hardly make it: all changes of a run are tested together."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "not decided"
    SAME = "no change"


@dataclass(frozen=True, slots=True)
class Change:
    """One mean of one bot, then and now, over the queries that have a value in both runs."""

    bot: str
    name: str
    before: float
    now: float
    interval: "Interval | None"
    """Of the mean difference, so wide that those of all lines hold together with 95 %: it is on one side of 0
    exactly when the change is claimed. None for a single query."""
    queries: int
    """Those compared …"""
    of: int
    """… of so many that this run has for the bot."""
    direction: Direction
    is_reversible: bool = False
    """The compared queries would decide it, but those with a value in only one of the two runs could change that."""

    @property
    def difference(self) -> float:
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class PastRun:
    """The numbers of an earlier report."""

    name: str
    values: Mapping[Key, Mapping[str, float]]
    """By case, then by the names of NAMES; a value that was missing is absent."""
    judge: str = ""
    """In words; empty when it is not known."""
    roundings: Mapping[str, float] = field(default_factory=dict)
    """By the names of NAMES: how far a value may be from the one that was computed, since it was printed with few
    decimals; 0 when absent."""
    is_cut: bool = False
    """Read from a sheet that could not have all cases: these are the random ones among them."""

    def has_rqs_of(self, weights: Mapping[str, float]) -> bool:
        """Whether every RQS is what `weights` make of its metrics; a report tells no weights to be compared."""
        rounding = max((self.roundings.get(name, 0.0) for name in weights), default=0.0)
        tolerance = 1e-6 + self.roundings.get(RQS, 0.0) + rounding
        return all(_is_composed(case, weights, tolerance) for case in self.values.values())


def read_past_run(path: Path) -> PastRun:
    """The numbers of a report (.xlsx) or of a run's JSON. Raises InputError when it is neither."""
    readers = {".xlsx": _read_report, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: a baseline is a report (.xlsx) or a run's JSON (.json)")
    check_is_file(path)
    try:
        path.open("rb").close()
        cases, judge, is_cut = reader(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file to compare with (--baseline)") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be read as a report of an earlier run ({reason})") from error
    keys = _numbered((query, reference, bot) for query, reference, bot, _ in cases)
    values = {key: values for key, (*_, values) in zip(keys, cases, strict=True)}
    return PastRun(path.name, values, judge, _roundings(values.values()), is_cut)


class BaselineComparison:
    """Folds the results of this run into its changes since an earlier one."""

    def __init__(self, past: PastRun, facts: RunFacts) -> None:
        """`facts` are those of this run."""
        self._past = past
        self._facts = facts
        self._then: set[str] = set()
        self._now: set[str] = set()
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._queries: Counter[str] = Counter()
        self._pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self._halves: dict[tuple[str, str], list[tuple[float | None, float | None]]] = defaultdict(list)
        self._changes: tuple[Change, ...] | None = None

    def add(self, result: CaseResult) -> None:
        case = result.case
        self._queries[case.bot] += 1
        text = (_comparable(case.query), _comparable(case.reference or ""), _comparable(case.bot))
        before = self._past.values.get((*text, self._seen[text]))
        self._seen[text] += 1
        if before is None:
            return
        self._then |= before.keys()
        for name in NAMES:
            then, now = before.get(name), result.rqs if name == RQS else result.value(name)
            if now is not None:
                self._now.add(name)
            if then is not None and now is not None:
                self._pairs[case.bot, name].append((then, now))
            elif now is not None or (then is not None and _has_failed(result, name)):
                self._halves[case.bot, name].append((then, now))

    def differences(self) -> tuple[str, ...]:
        """What beside the answers differs between the runs, one sentence each."""
        judge, metrics = self._past.judge, METRIC_LABELS.keys()
        sentences = []
        if judge and judge != self._facts.judge:
            sentences.append(
                f"The baseline was judged by {judge}, this run by {self._facts.judge}: "
                "a change may come from the judge only."
            )
        if self._past.is_cut:
            sentences.append(
                f"The baseline's sheet does not have all its cases: only its {len(self._past.values):,} random ones "
                "are compared."
            )
        if missing := {key[2] for key in self._past.values} - set(map(_comparable, self._queries)):
            sentences.append(f"In the baseline, but not in this run: {', '.join(sorted(missing))}.")
        if gone := metrics & self._then - self._now:
            sentences.append(f"Judged in the baseline only: {_listed(gone)}.")
        if new := metrics & self._now - self._then:
            sentences.append(f"Judged in this run only: {_listed(new)}.")
        if not self._is_rqs_alike():
            sentences.append("RQS is not compared: its weights or metrics are others than in the baseline.")
        sentences.extend(self._reversible(change) for change in self.changes() if change.is_reversible)
        return tuple(sentences)

    def _reversible(self, change: Change) -> str:
        count = len(self._halves[change.bot, change.name])
        queries = "1 query that has" if count == 1 else f"{count:,} queries that have"
        return (
            f"{change.bot}: {NAMES[change.name]} is not decided because of {queries} a value in only one of "
            "the two runs."
        )

    def changes(self) -> tuple[Change, ...]:
        """In the order of the bots and of the report's columns; empty when no query is in both runs.

        Without RQS where it is composed otherwise: the numbers are not of one kind. Asked for when all results
        have been added; it is worked out once.
        """
        if self._changes is None:
            self._changes = self._tested()
        return self._changes

    def _tested(self) -> tuple[Change, ...]:
        from rag_eval.results.comparison import holm, paired_permutation_pvalue

        names = NAMES if self._is_rqs_alike() else METRIC_LABELS
        keys = [(bot, name) for bot in self._queries for name in names if (bot, name) in self._pairs]
        differences = [self._differences(*key) for key in keys]
        pvalues = [paired_permutation_pvalue(each) for each in differences]
        tests = zip(holm(pvalues), _alphas(pvalues), strict=True)
        return tuple(
            self._change(*key, each, *test) for key, each, test in zip(keys, differences, tests, strict=True)
        )

    def _change(
        self, bot: str, name: str, differences: Sequence[float], pvalue: float, alpha: float
    ) -> Change:
        from rag_eval.results.intervals import bootstrap_mean_interval

        pairs = self._pairs[bot, name]
        interval = bootstrap_mean_interval(differences, confidence=1 - alpha)
        seen = direction = _direction(differences, interval, pvalue)
        if seen in _WORST and self._halves[bot, name]:
            worst = [*differences, *self._worst(bot, name, seen)]
            direction = seen if _decides(worst, seen, alpha) else Direction.UNDECIDED
        return Change(
            bot=bot,
            name=name,
            before=fmean(before for before, _ in pairs),
            now=fmean(now for _, now in pairs),
            interval=_with_zero(interval) if direction is Direction.UNDECIDED else interval,
            queries=len(pairs),
            of=self._queries[bot],
            direction=direction,
            is_reversible=direction is not seen,
        )

    def _differences(self, bot: str, name: str) -> list[float]:
        """Those that are not the rounding of the earlier report."""
        least = max(_ROUNDING_ERROR, self._past.roundings.get(name, 0.0) * (1 + _ROUNDING_ERROR))
        changes = (now - before for before, now in self._pairs[bot, name])
        return [change if abs(change) > least else 0.0 for change in changes]

    def _worst(self, bot: str, name: str, seen: Direction) -> list[float]:
        """The differences of the half pairs if what is missing spoke against the change as much as it can."""
        then, now = _WORST[seen]
        return [
            (now if value is None else value) - (then if before is None else before)
            for before, value in self._halves[bot, name]
        ]

    def _is_rqs_alike(self) -> bool:
        """By the metrics that the queries of both runs have, and by what the weights make of them."""
        weights = {name: weight for name, weight in self._facts.weights.items() if weight > 0}
        same = weights.keys() & self._then == weights.keys() & self._now
        return same and self._past.has_rqs_of(weights)


def regressions(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.direction is Direction.WORSE)


_WORST = {Direction.BETTER: (1.0, 0.0), Direction.WORSE: (0.0, 1.0)}
"""What a missing value then, or now, would be if it spoke against the change."""


def _has_failed(result: CaseResult, name: str) -> bool:
    """Whether a value is missing that there should be."""
    outcome = rqs_outcome(result) if name == RQS else None
    score = result.scores.get(name)
    return (outcome or (score.outcome if score else None)) is Outcome.FAILED


def _decides(differences: Sequence[float], direction: Direction, alpha: float) -> bool:
    """Whether the test, as strict as it was for this line, finds the direction in these differences."""
    from rag_eval.results.comparison import paired_permutation_pvalue
    from rag_eval.results.intervals import bootstrap_mean_interval

    interval = bootstrap_mean_interval(differences, confidence=1 - alpha)
    pvalue = paired_permutation_pvalue(differences) * _ALPHA / alpha  # since it is compared with 5 %
    return _direction(differences, interval, pvalue) is direction


def _alphas(pvalues: Sequence[float]) -> list[float]:
    """How strict Holm's test is on each line: those that were claimed before it need no correction any more."""
    from rag_eval.results.comparison import holm

    claimed = sum(pvalue < _ALPHA for pvalue in holm(pvalues))
    return [
        _ALPHA / (len(pvalues) - min(claimed, sum(other < pvalue for other in pvalues))) for pvalue in pvalues
    ]


def _direction(differences: Sequence[float], interval: "Interval | None", pvalue: float) -> Direction:
    """Test and interval see skewed differences a little differently: only what both see is claimed."""
    if not any(differences):
        return Direction.SAME
    if pvalue >= _ALPHA or interval is None or interval.low <= 0 <= interval.high:
        return Direction.UNDECIDED
    return Direction.BETTER if interval.low > 0 else Direction.WORSE


def _with_zero(interval: "Interval | None") -> "Interval | None":
    """Where the test does not decide, neither does the interval."""
    if interval is None:
        return None
    return replace(interval, low=min(interval.low, 0.0), high=max(interval.high, 0.0))


def _is_composed(values: Mapping[str, float], weights: Mapping[str, float], tolerance: float) -> bool:
    expected = composite(values, weights)
    return RQS not in values or expected is None or abs(expected - values[RQS]) <= tolerance


def _roundings(cases: Collection[Mapping[str, float]]) -> dict[str, float]:
    """Half a unit of the last decimal that any value has, of RQS and of all metrics together."""
    metrics = _rounding(value for case in cases for name, value in case.items() if name != RQS)
    return {
        **dict.fromkeys(METRIC_LABELS, metrics),
        RQS: _rounding(case[RQS] for case in cases if RQS in case),
    }


def _rounding(values: Iterable[float]) -> float:
    decimals = _FEWEST_DECIMALS
    for value in values:
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        decimals = max(decimals, -exponent if isinstance(exponent, int) else 0)
        if decimals > _MOST_DECIMALS:
            return 0.0
    return 0.5 * 10.0**-decimals


def _listed(metrics: Collection[str]) -> str:
    return ", ".join(label for name, label in METRIC_LABELS.items() if name in metrics)


_Case = tuple[str, str, str, dict[str, float]]


_Past = tuple[list[_Case], str, bool]
"""Cases and judge."""


def _read_report(path: Path) -> _Past:
    check_content(path, WORKBOOK)
    with open_reader(path, Room(path.name, path.stat().st_size)) as reader:
        sheet = next((sheet for sheet in reader.sheets if sheet.name == _REPORT_SHEET), None)
        if sheet is None:
            raise ValueError(f"it has no sheet {_REPORT_SHEET!r}")
        rows = (cells for _, cells in value_rows(path, reader.rows(sheet, [])))
        header = [str(cell) for cell in next(rows, [])]
        lines = (dict(zip_longest(header, row[: len(header)])) for row in rows)
        cases = [
            _case_of(line, "Query", "Ground Truth", "Bot", NAMES)
            for line in lines
            if line.get(SELECTION) != WORST
        ]
        return cases, _judge_of(reader.description), SELECTION in header


def _judge_of(comments: str) -> str:
    """From the comments among the report's properties, where a long name was cut."""
    judge = re.match(r"Judged by (.*), RAG Eval ", comments)
    return judge[1] if judge and not judge[1].endswith("…") else ""


def _read_json(path: Path) -> _Past:
    document = json.loads(path.read_text(encoding="utf-8"))
    names = {name: name for name in NAMES}
    cases = []
    for case in document["cases"]:
        scores = {name: score["value"] for name, score in case["scores"].items()}
        cases.append(_case_of({**case, **scores}, "query", "reference", "bot", names))
    return cases, str(document["run"]["judge"]), False


def _case_of(
    record: Mapping[str, Any], query: str, reference: str, bot: str, names: Mapping[str, str]
) -> _Case:
    values = {
        name: float(record[column])
        for name, column in names.items()
        if isinstance(record.get(column), int | float)
    }
    texts = [_comparable(record[column] or "") for column in (query, reference, bot)]
    return texts[0], texts[1], texts[2], values


def _comparable(text: str) -> str:
    """What a cell of the report keeps of it: line ends alike, no more than fits, and nothing that shows as U+FFFD."""
    return _NOT_KEPT.sub("", str(text).replace("\r\n", "\n").replace("\r", "\n")[:_LEAST_KEPT])


_LEAST_KEPT = 16_000
"""Characters of a text that fit into a cell whatever they are: it holds 32,767 UTF-16 units, and an emoji is two."""
_NOT_KEPT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffd-\uffff]")


def _numbered(texts: Iterable[tuple[str, str, str]]) -> Iterator[Key]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for text in texts:
        yield (*text, seen[text])
        seen[text] += 1
