"""What changed since an earlier run: per bot and metric, on the queries that both runs judged."""

import json
import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS, OFFLINE, PROMPT_FORMS, SPENT_LABELS, CaseResult, Outcome
from rag_eval.results.looks import conversation_of, is_reached
from rag_eval.results.paired import Change, CommonQueries, JoinedValues, changes_of, queries_words
from rag_eval.results.row_choice import SELECTION, WORST
from rag_eval.results.scoring import composite
from rag_eval.results.stored import State, is_score, read_run_document
from rag_eval.results.summary import RQS, rqs_outcome
from rag_eval.tables.cells import BadCell, column_letter
from rag_eval.tables.content import check_content
from rag_eval.tables.input_files import WORKBOOK, Room, check_is_file
from rag_eval.tables.sheets import ROWS_OF_TITLES, open_reader, value_rows
from rag_eval.texts.display import counted, shorten

NAMES: Mapping[str, str] = {RQS: "RQS", **METRIC_LABELS}
"""What is compared, and its column in the report."""
_KEPT = (*NAMES, *SPENT_LABELS)
"""What is kept of each case: scores, latency and cost."""
_REPORT_SHEET = "Per-Query Metrics"
_LARGEST_REPORT = 8 * 2**30
"""Bytes that a report may unpack to. One with a full sheet needs more than an input may; it is read row by row."""
_ROUNDING_ERROR = 1e-9
"""Of a composite that was computed twice."""
_MOST_DECIMALS = 9
"""A column of scores with more of them was not rounded."""
_FEWEST_DECIMALS = 2
"""Fewer say that the scores themselves are coarse, as those of pass or fail, not that they were rounded."""

Key = tuple[str, str, str, int]
"""Query, ground truth, bot, and how often these came before."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """The numbers of an earlier report."""

    name: str
    values: Mapping[Key, Mapping[str, float]]
    """By case, then by the names of NAMES and SPENT_LABELS; a value that was missing is absent."""
    judge: str = ""
    """In words; empty when it is not known."""
    roundings: Mapping[str, float] = field(default_factory=dict)
    """By the names of NAMES: how far a value may be from the one that was computed, since it was printed with few
    decimals; 0 when absent."""
    is_cut: bool = False
    """Read from a sheet that could not have all cases: these are the random ones among them."""
    is_hashed: bool = False
    """The keys have digests in place of query and ground truth, whose texts were not kept."""
    spent_units: Mapping[str, str] = field(default_factory=dict)
    """Of latency and cost, by name; absent where there are none."""

    def has_rqs_of(self, weights: Mapping[str, float]) -> bool:
        """Whether every RQS is what `weights` make of its metrics; a report tells no weights to be compared."""
        rounding = max((self.roundings.get(name, 0.0) for name in weights), default=0.0)
        tolerance = 1e-6 + self.roundings.get(RQS, 0.0) + rounding
        return all(_is_composed(case, weights, tolerance) for case in self.values.values())


def read_past_run(path: Path) -> PastRun:
    """The numbers of a report (.xlsx) or of a run's JSON. Raises InputError when it is neither, or if one of its scores
    is not a number from 0 to 1."""
    readers = {".xlsx": _read_report, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: a baseline is a report (.xlsx) or a run's JSON (.json)")
    check_is_file(path)
    try:
        path.open("rb").close()
        cases, judge, is_cut, units = reader(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file to compare with (--baseline)") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); name a file that can"
        ) from error
    except _BadValueError as error:
        raise InputError(
            f"{path}, {error}; correct it, or name another report (.xlsx) or run's JSON with --baseline"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{path}: cannot be read as a report of an earlier run ({error}); name another report (.xlsx) or run's "
            "JSON with --baseline"
        ) from error
    keys = numbered((query, reference, bot) for query, reference, bot, _ in cases)
    values = {key: values for key, (*_, values) in zip(keys, cases, strict=True)}
    return PastRun(path.name, values, judge, _roundings(values.values()), is_cut, spent_units=units)


class _BadValueError(ValueError):
    """A value of a case cannot be one. The message begins with its place in the file."""


class _ThisRun(Protocol):
    """What a comparison must know of the run besides its results."""

    @property
    def judge(self) -> str: ...
    @property
    def prompts(self) -> str: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def spent_units(self) -> Mapping[str, str]: ...


def _is_offline(judge: str) -> bool:
    """Whether it is the offline judge, with an embedding or without."""
    return judge == OFFLINE or judge.startswith(f"{OFFLINE} with ")


def _prompts_of(judge: str) -> str:
    """The prompt form, which a judge's description ends with unless it is the default."""
    if not judge or _is_offline(judge):
        return ""
    named = re.search(r", (\w+) prompts$", judge)
    return named[1] if named else next(iter(PROMPT_FORMS))


class BaselineComparison:
    """Folds the results of this run into its changes since an earlier one.

    How often a query came before is known only when all parts of a run are together: until then, what is kept of a
    result is a digest of its texts, and its numbers.
    """

    def __init__(self, past: PastRun | None, facts: "_ThisRun") -> None:
        """`facts` are those of this run. `past` is None in a part of a run, which is merged and never asked."""
        self._past = past or PastRun("", {})
        self._facts = facts
        self._before = {
            (_digest(*key[:3], is_hashed=self._past.is_hashed), key[3]): values
            for key, values in self._past.values.items()
        }
        self._wanted = None if past is None else {digest for digest, _ in self._before}
        self._queries: Counter[str] = Counter()
        self._digests = bytearray()
        self._bots = array("q")
        self._numbers = array("d")
        self._conversations = array("q")
        self._changes: tuple[Change, ...] | None = None

    def add(self, result: CaseResult, *, is_hashed: bool = False) -> None:
        """A case that a stopped run did not come to does not count.

        `is_hashed`: the case has digests of query and ground truth instead of the texts.
        """
        case, counts = result.case, is_reached(result)
        self._queries[case.bot] += counts and not case.is_missing
        if not counts:
            return
        texts = comparable(case.query), comparable(case.reference or ""), comparable(case.bot)
        digest = _digest(*texts, is_hashed=is_hashed)
        if self._wanted is None or digest in self._wanted:
            bot = list(self._queries).index(case.bot)
            numbers = [_number_of(result, name) for name in _KEPT]
            self._keep(digest, bot, numbers, conversation_of(case))

    def state(self) -> State:
        """What was added, for `merge`."""
        return {
            "queries": self._queries,
            "digests": self._digests,
            "bots": self._bots,
            "numbers": self._numbers,
            "conversations": self._conversations,
        }

    def merge(self, state: State) -> None:
        """Add the rows of a part of the run, which come after those that were added so far."""
        self._queries.update(state["queries"])
        bots, numbers = state["bots"], state["numbers"]
        names, places = list(state["queries"]), {bot: place for place, bot in enumerate(self._queries)}
        for index, bot in enumerate(bots):
            digest = bytes(state["digests"][index * _DIGEST : (index + 1) * _DIGEST])
            if self._wanted is None or digest in self._wanted:
                its = numbers[index * len(_KEPT) : (index + 1) * len(_KEPT)]
                self._keep(digest, places[names[bot]], its, state["conversations"][index])

    def _keep(self, digest: bytes, bot: int, numbers: Iterable[float], conversation: int) -> None:
        self._conversations.append(conversation)
        self._digests.extend(digest)
        self._bots.append(bot)
        self._numbers.extend(numbers)

    def differences(self) -> tuple[str, ...]:
        """What else differs between the runs, one sentence each."""
        judge = self._past.judge
        sentences = []
        if judge and judge != self._facts.judge:
            sentences.append(
                f"The baseline was judged by {judge}, this run by {self._facts.judge}: "
                "a change may come from the judge only."
            )
        if self._past.is_cut:
            sentences.append(
                f"The baseline's sheet does not contain all its cases: only its {len(self._past.values):,} random ones "
                "are compared."
            )
            if repeated := sum(self._times[digest] > 1 for digest, _ in self._before):
                sentences.append(
                    f"Not compared, because their query occurs more than once: {repeated:,} cases."
                )
        else:
            compared = {bot: queries for bot, queries in self.common.items() if queries.before}
            sentences += queries_words(compared, "the baseline")
            if repeated := sum(map(self._is_ambiguous, self._rows)):
                sentences.append(
                    f"Not compared, because their query occurs another number of times in the baseline: "
                    f"{counted(repeated, 'case')} of this run."
                )
        if missing := {key[2] for key in self._past.values} - set(map(comparable, self._queries)):
            sentences.append(f"In the baseline, but not in this run: {', '.join(sorted(missing))}.")
        if new_bots := [bot for bot, queries in self.common.items() if not queries.before]:
            sentences.append(f"In this run, but not in the baseline: {', '.join(new_bots)}.")
        sentences.extend(self._other_metrics())
        sentences.extend(self._reversible(change) for change in self.changes() if change.is_reversible)
        return tuple(sentences)

    def _other_metrics(self) -> Iterator[str]:
        then, now, metrics = self._paired.then, self._paired.now, METRIC_LABELS.keys()
        if gone := metrics & then - now:
            yield f"Judged in the baseline only: {_listed(gone)}."
        if new := metrics & now - then:
            yield f"Judged in this run only: {_listed(new)}."
        scored = {name for (_, name), values in self._paired.pairs.items() if values.common()[0]}
        if lost := (then & now & NAMES.keys()) - scored:
            named = ", ".join(label for name, label in NAMES.items() if name in lost)
            yield f"Not compared, because no query has a score of it in both runs: {named}."
        if not self._is_rqs_alike():
            yield "RQS is not compared: its weights or metrics differ from those of the baseline."

    def _reversible(self, change: Change) -> str:
        count = len(self._paired.pairs[change.bot, change.name]) - change.queries
        queries = "1 query that has" if count == 1 else f"{count:,} queries that have"
        return (
            f"{change.bot}: {NAMES[change.name]} is not significant because of {queries} a value in only one of "
            "the two runs."
        )

    @cached_property
    def _rows(self) -> list[bytes]:
        """The digest of each case."""
        return [
            bytes(self._digests[start : start + _DIGEST]) for start in range(0, len(self._digests), _DIGEST)
        ]

    @cached_property
    def _times(self) -> Mapping[bytes, int]:
        """How often this run has each query, by digest."""
        return Counter(self._rows)

    @cached_property
    def _times_before(self) -> Mapping[bytes, int]:
        """The same of the baseline."""
        return Counter(digest for digest, _ in self._before)

    @cached_property
    def _paired(self) -> "_Paired":
        """The numbers of both runs. A query that comes as often in both is paired in the order of the rows.

        Where it comes more often in one of them, nothing tells which of its cases are the same. And a baseline that is
        cut does not show how often a query came before its random cases.
        """
        paired, seen, bots = _Paired(), Counter[bytes](), list(self._queries)
        for index, (bot, digest) in enumerate(zip(self._bots, self._rows, strict=True)):
            before = self._before.get((digest, seen[digest]))
            seen[digest] += 1
            if before is not None and not self._is_ambiguous(digest):
                numbers = self._numbers[index * len(_KEPT) : (index + 1) * len(_KEPT)]
                now = dict(zip(_KEPT, numbers, strict=True))
                paired.add(bots[bot], before, now, self._conversations[index])
        return paired

    @property
    def not_comparable(self) -> str:
        """Why no change says anything of the bots, in words; empty if the changes may."""
        judge, ours = self._past.judge, self._facts.judge
        if judge and judge != ours and (_is_offline(judge) or _is_offline(ours)):
            return f"not comparable: the baseline was judged by {judge}, this run by {self._facts.judge}"
        then, now = _prompts_of(judge), self._facts.prompts
        if not then or not now or then == now:
            return ""
        return f"not comparable: the baseline was judged with {then} prompts, this run with {now} prompts"

    def changes(self) -> tuple[Change, ...]:
        """In the order of the bots and of the report's columns; empty when no query is in both runs.

        Without RQS where it is composed otherwise: the numbers are not of one kind. Asked for when all results
        have been added; it is worked out once.
        """
        if self._changes is None:
            self._changes = self._tested()
        return self._changes

    def _tested(self) -> tuple[Change, ...]:
        names = NAMES if self._is_rqs_alike() else METRIC_LABELS
        pairs = self._paired.pairs
        compared = {
            (bot, name): pairs[bot, name]
            for bot in self._queries
            for name in names
            if (bot, name) in pairs and pairs[bot, name].common()[0]
        }
        roundings = {name: self._past.roundings.get(name, 0.0) for name in names}
        least = {name: max(_ROUNDING_ERROR, each * (1 + _ROUNDING_ERROR)) for name, each in roundings.items()}
        return changes_of(compared, self.common, least)

    def spent_changes(self) -> tuple[Change, ...]:
        """Of latency and cost if their units are the same, whoever judged; tested together, apart from the scores."""
        then, now = self._past.spent_units, self._facts.spent_units
        pairs = self._paired.pairs
        compared = {
            (bot, name): pairs[bot, name]
            for bot in self._queries
            for name in now
            if then.get(name) == now[name] and (bot, name) in pairs and pairs[bot, name].common()[0]
        }
        return changes_of(compared, self.common, dict.fromkeys(now, 0.0))

    @cached_property
    def common(self) -> Mapping[str, CommonQueries]:
        """By bot. Queries of a cut baseline that cannot be paired are not among them."""
        before = Counter(
            key[2]
            for (digest, _), key in zip(self._before, self._past.values, strict=True)
            if not (self._past.is_cut and self._is_ambiguous(digest))
        )
        return {
            bot: CommonQueries(before=before[comparable(bot)], now=queries, both=self._paired.both[bot])
            for bot, queries in self._queries.items()
        }

    def _is_ambiguous(self, digest: bytes) -> bool:
        """Whether a case of one run could be any of several in the other one."""
        now = self._times[digest]
        return now > 1 if self._past.is_cut else now != self._times_before.get(digest, now)

    def _is_rqs_alike(self) -> bool:
        """By the metrics that the queries of both runs have, and by what the weights make of them."""
        weights = {name: weight for name, weight in self._facts.weights.items() if weight > 0}
        same = weights.keys() & self._paired.then == weights.keys() & self._paired.now
        return same and self._past.has_rqs_of(weights)


class _Paired:
    """What is compared, by bot and name."""

    def __init__(self) -> None:
        self.both: Counter[str] = Counter()
        """Queries of both runs, by bot."""
        self.then: set[str] = set()
        """Names of what the earlier run has for these queries …"""
        self.now: set[str] = set()
        """… and this run."""
        self.pairs: dict[tuple[str, str], JoinedValues] = defaultdict(JoinedValues)
        """Without queries whose value no longer applies."""

    def add(
        self, bot: str, before: Mapping[str, float], numbers: Mapping[str, float], conversation: int
    ) -> None:
        self.both[bot] += 1
        self.then |= before.keys()
        for name, number in numbers.items():
            then, now = before.get(name), number if number >= 0 else None
            if now is not None or number == _FAILED:
                self.now.add(name)
            if now is not None or (then is not None and number == _FAILED):
                self.pairs[bot, name].add(then, now, cluster=conversation)


_DIGEST = 16
"""Bytes of a digest: two texts of ten million have the same one with a probability of 1e-25."""
_FAILED = -1.0
"""Stands for a value that is missing although there should be one; NaN for one that does not apply."""


@lru_cache(maxsize=8)  # the bots of a row share query and ground truth
def text_digest(text: str) -> str:
    """What stands for a query or ground truth where its text is not kept: 32 hexadecimal digits of its SHA-256."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _digest(query: str, reference: str, bot: str, *, is_hashed: bool = False) -> bytes:
    if not is_hashed:
        query, reference = text_digest(query), text_digest(reference)
    key = "\0".join((query, reference, bot))
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def _number_of(result: CaseResult, name: str) -> float:
    if name in SPENT_LABELS:
        return result.case.spent.get(name, math.nan)
    value = result.rqs if name == RQS else result.value(name)
    if value is not None:
        return value
    return _FAILED if _has_failed(result, name) else math.nan


def _has_failed(result: CaseResult, name: str) -> bool:
    """Whether a value is missing that there should be."""
    outcome = rqs_outcome(result) if name == RQS else None
    score = result.scores.get(name)
    return (outcome or (score.outcome if score else None)) is Outcome.FAILED


def _is_composed(values: Mapping[str, float], weights: Mapping[str, float], tolerance: float) -> bool:
    expected = composite(values, weights)
    return RQS not in values or expected is None or abs(expected - values[RQS]) <= tolerance


def _roundings(cases: Collection[Mapping[str, float]]) -> dict[str, float]:
    """Half a unit of the last decimal that any value has, of RQS and of all metrics together."""
    metrics = _rounding(value for case in cases for name, value in case.items() if name in METRIC_LABELS)
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


_Past = tuple[list[_Case], str, bool, Mapping[str, str]]
"""Cases, judge, whether the cases are only the random ones of a sheet, and the units of latency and cost."""


def _read_report(path: Path) -> _Past:
    check_content(path, WORKBOOK, most_unpacked=_LARGEST_REPORT)
    with open_reader(path, Room(path.name, path.stat().st_size)) as reader:
        sheet = next((sheet for sheet in reader.sheets if sheet.name == _REPORT_SHEET), None)
        if sheet is None:
            raise ValueError(f"it has no sheet {_REPORT_SHEET!r}")
        rows = value_rows(path, reader.rows(sheet, []))
        columns = _columns(rows)
        spent = _spent_columns(columns)
        cases: list[_Case] = []
        is_cut = False
        for number, cells in rows:
            line = {name: cells[index] for name, index in columns.items() if index < len(cells)}
            is_cut = is_cut or line.get(SELECTION) == WORST
            if line.get("Bot") not in (None, "") and line.get(SELECTION) != WORST:
                cases.append(_case_of_row(line, number, columns, spent))
        units = {name: _unit_in(header) for name, header in spent.items()}
        return cases, _judge_of(reader.description), is_cut, units


def _columns(rows: Iterator[tuple[int, list[Any]]]) -> Mapping[str, int]:
    """Index of each column by its header, which may be below notes."""
    for _, cells in islice(rows, ROWS_OF_TITLES):
        columns = {str(cell): index for index, cell in enumerate(cells)}
        if columns.keys() >= {"Query", "Ground Truth", "Bot"}:
            return columns
    raise ValueError(f"its sheet {_REPORT_SHEET!r} has no columns Query, Ground Truth and Bot")


def _spent_columns(columns: Iterable[str]) -> dict[str, str]:
    """Headers of latency and cost, which have their units in brackets."""
    return {
        name: header
        for name, label in SPENT_LABELS.items()
        for header in columns
        if header == label or (header.startswith(f"{label} (") and header.endswith(")"))
    }


def _unit_in(header: str) -> str:
    return header.partition(" (")[2].removesuffix(")")


def _case_of_row(
    line: Mapping[str, Any], number: int, columns: Mapping[str, int], spent: Mapping[str, str]
) -> _Case:
    values = {}
    for name, header in {**NAMES, **spent}.items():
        value = line.get(header)
        if not _is_no_value(value):
            place = f"sheet '{_REPORT_SHEET}', cell {column_letter(columns[header])}{number}"
            read = _amount if name in spent else _score
            values[name] = read(value, f"{place} ({header} of {_shown(line['Bot'])})", is_cell=True)
    texts = [comparable(line.get(column) or "") for column in ("Query", "Ground Truth", "Bot")]
    return texts[0], texts[1], texts[2], values


def _is_no_value(cell: Any) -> bool:
    """Whether a cell of scores is empty, says that there is no score, or has a formula without a number."""
    if isinstance(cell, str):
        return cell.strip().casefold() in _NO_VALUE or _ERROR_VALUE.fullmatch(cell) is not None
    return cell is None or isinstance(cell, BadCell)


_NO_VALUE = frozenset(("", "-", "–", "—", "n/a", "not applicable", "failed", "not judged"))
_ERROR_VALUE = re.compile(r"#[A-Z]+(?:/[A-Z0]+)?[!?]?")
"""Of Excel: "#DIV/0!", "#N/A"."""


def _judge_of(comments: str) -> str:
    """From the comments among the report's properties, where a long name was cut."""
    judge = re.match(r"Judged by (.*), RAG Eval ", comments)
    return judge[1] if judge and not judge[1].endswith("…") else ""


def _read_json(path: Path) -> _Past:
    document = read_run_document(path)
    run, cases = document.get("run"), document.get("cases")
    if not isinstance(run, dict) or "judge" not in run:
        raise ValueError("it has no member run.judge")
    if not isinstance(cases, list):
        raise ValueError("it has no list of cases")
    found = [_case_of_record(case, number) for number, case in enumerate(cases, 1)]
    first: dict[tuple[str, str], int] = {}
    for number, case in enumerate(cases, 1):
        before = first.setdefault((json.dumps(case.get("row")), str(case["bot"])), number)
        if before != number and case.get("row") is not None:
            raise _BadValueError(f"{_place_of(case, number)}: case {before:,} has the same row and bot")
    units = run.get("spent_units", {})
    if not isinstance(units, dict) or not all(isinstance(unit, str) for unit in units.values()):
        raise ValueError("its member run.spent_units is not an object of texts")
    return found, str(run["judge"]), False, {name: units[name] for name in SPENT_LABELS if name in units}


def _place_of(case: Mapping[str, Any], number: int) -> str:
    return f"case {number} (row {_shown(case.get('row'))}, bot {_shown(case.get('bot'))})"


def _case_of_record(case: Any, number: int) -> _Case:
    if not isinstance(case, dict):
        raise _BadValueError(f"case {number}: {_shown(case)} is not an object")
    place = _place_of(case, number)
    if absent := [name for name in ("query", "reference", "bot", "scores") if name not in case]:
        raise _BadValueError(f"{place}: '{absent[0]}' is missing")
    scores = case["scores"]
    if not isinstance(scores, dict):
        raise _BadValueError(f"{place}, scores: {_shown(scores)} is not an object")
    found = {RQS: ("rqs", case.get("rqs"))}
    for name in METRIC_LABELS.keys() & scores.keys():
        if not isinstance(scores[name], dict) or "value" not in scores[name]:
            raise _BadValueError(
                f"{place}, scores.{name}: {_shown(scores[name])} is not a score with a value"
            )
        found[name] = f"scores.{name}.value", scores[name]["value"]
        if scores[name].get("outcome") == Outcome.FAILED and found[name][1] is not None:
            shown = _shown(found[name][1])
            raise _BadValueError(f"{place}, scores.{name}: the outcome is failed, but the value is {shown}")
    values = {
        name: _score(value, f"{place}, {member}")
        for name, (member, value) in found.items()
        if value is not None
    }
    spent = case.get("spent", {})
    if not isinstance(spent, dict):
        raise _BadValueError(f"{place}, spent: {_shown(spent)} is not an object")
    values |= {
        name: _amount(spent[name], f"{place}, spent.{name}")
        for name in SPENT_LABELS
        if spent.get(name) is not None
    }
    texts = [comparable(case[name] or "") for name in ("query", "reference", "bot")]
    return texts[0], texts[1], texts[2], values


def _amount(value: Any, place: str, *, is_cell: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        empty = "; the cell can have such a number, or nothing" if is_cell else ""
        raise _BadValueError(f"{place}: {_shown(value)} is not a number from 0 on{empty}")
    return float(value)


def _score(value: Any, place: str, *, is_cell: bool = False) -> float:
    if is_cell and isinstance(value, str):
        raise _BadValueError(
            f"{place}: '{_shown(value)}' is text; the cell can have a number from 0 to 1, or nothing"
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_score(value):
        raise _BadValueError(f"{place}: {_shown(value)} is not a number from 0 to 1")
    return float(value)


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return shorten(value if isinstance(value, str) else json.dumps(value, default=str), 40)


def comparable(text: str) -> str:
    """What a cell of the report keeps of it: line ends alike, no more than fits, and nothing that shows as U+FFFD."""
    return _NOT_KEPT.sub("", str(text).replace("\r\n", "\n").replace("\r", "\n")[:_LEAST_KEPT])


_LEAST_KEPT = 16_000
"""Characters of a text that fit into a cell whatever they are: it holds 32,767 UTF-16 units, and an emoji is two."""
_NOT_KEPT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffd-\uffff]")


def numbered(texts: Iterable[tuple[str, str, str]]) -> Iterator[Key]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for text in texts:
        yield (*text, seen[text])
        seen[text] += 1
