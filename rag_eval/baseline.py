"""What changed since an earlier run: per bot and metric, on the queries that both runs judged."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS, CaseResult, RunFacts
from rag_eval.summary import RQS

if TYPE_CHECKING:
    from rag_eval.statistics.intervals import Interval

NAMES: Mapping[str, str] = {RQS: "RQS", **METRIC_LABELS}
"""What is compared, and its column in the report."""
_REPORT_SHEET = "Per-Query Metrics"
_ALPHA = 0.05

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

    def has_rqs_of(self, weights: Mapping[str, float]) -> bool:
        """Whether every RQS is what `weights` make of its metrics; a report tells no weights to be compared."""
        return all(_is_composed(case, weights) for case in self.values.values())


def read_past_run(path: Path) -> PastRun:
    """The numbers of a report (.xlsx) or of a run's JSON. Raises InputError when it is neither."""
    readers = {".xlsx": _read_report, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: a baseline is a report (.xlsx) or a run's JSON (.json)")
    try:
        cases, judge = reader(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file to compare with (--baseline)") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be read as a report of an earlier run ({reason})") from error
    keys = _numbered((query, reference, bot) for query, reference, bot, _ in cases)
    values = {key: values for key, (*_, values) in zip(keys, cases, strict=True)}
    return PastRun(path.name, values, judge)


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

    def add(self, result: CaseResult) -> None:
        case = result.case
        self._queries[case.bot] += 1
        text = (_comparable(case.query), _comparable(case.reference or ""), _comparable(case.bot))
        before = self._past.values.get((*text, self._seen[text]))
        self._seen[text] += 1
        if before is None:
            return
        now = {RQS: result.rqs, **{name: result.value(name) for name in METRIC_LABELS}}
        values = {name: value for name, value in now.items() if value is not None}
        self._then |= before.keys()
        self._now |= values.keys()
        for name in before.keys() & values.keys():
            self._pairs[case.bot, name].append((before[name], values[name]))

    def differences(self) -> tuple[str, ...]:
        """What beside the answers differs between the runs, one sentence each."""
        judge, metrics = self._past.judge, METRIC_LABELS.keys()
        sentences = []
        if judge and judge != self._facts.judge:
            sentences.append(
                f"The baseline was judged by {judge}, this run by {self._facts.judge}: "
                "a change may be the judge's alone."
            )
        if missing := {key[2] for key in self._past.values} - set(map(_comparable, self._queries)):
            sentences.append(f"In the baseline, but not in this run: {', '.join(sorted(missing))}.")
        if gone := metrics & self._then - self._now:
            sentences.append(f"Judged in the baseline alone: {_listed(gone)}.")
        if new := metrics & self._now - self._then:
            sentences.append(f"Judged in this run alone: {_listed(new)}.")
        if not self._is_rqs_alike():
            sentences.append("RQS is not compared: its weights or metrics are others than in the baseline.")
        return tuple(sentences)

    def changes(self) -> tuple[Change, ...]:
        """In the order of the bots and of the report's columns; empty when no query is in both runs.

        Without RQS where it is composed otherwise: the numbers are not of one kind.
        """
        from rag_eval.statistics.comparison import holm, paired_permutation_pvalue

        names = NAMES if self._is_rqs_alike() else METRIC_LABELS
        keys = [(bot, name) for bot in self._queries for name in names if (bot, name) in self._pairs]
        differences = [[_difference(before, now) for before, now in self._pairs[key]] for key in keys]
        pvalues = [paired_permutation_pvalue(each) for each in differences]
        tests = zip(holm(pvalues), _alphas(pvalues), strict=True)
        return tuple(
            self._change(*key, each, *test) for key, each, test in zip(keys, differences, tests, strict=True)
        )

    def _change(
        self, bot: str, name: str, differences: Sequence[float], pvalue: float, alpha: float
    ) -> Change:
        from rag_eval.statistics.intervals import bootstrap_mean_interval

        pairs = self._pairs[bot, name]
        interval = bootstrap_mean_interval(differences, confidence=1 - alpha)
        direction = _direction(differences, interval, pvalue)
        return Change(
            bot=bot,
            name=name,
            before=fmean(before for before, _ in pairs),
            now=fmean(now for _, now in pairs),
            interval=_with_zero(interval) if direction is Direction.UNDECIDED else interval,
            queries=len(pairs),
            of=self._queries[bot],
            direction=direction,
        )

    def _is_rqs_alike(self) -> bool:
        """By the metrics that the queries of both runs have, and by what the weights make of them."""
        weights = {name: weight for name, weight in self._facts.weights.items() if weight > 0}
        same = weights.keys() & self._then == weights.keys() & self._now
        return same and self._past.has_rqs_of(weights)


def regressions(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.direction is Direction.WORSE)


def _difference(before: float, now: float) -> float:
    """Without the rounding error of a composite that was computed anew."""
    difference = now - before
    return difference if abs(difference) > 1e-9 else 0.0


def _alphas(pvalues: Sequence[float]) -> list[float]:
    """How strict Holm's test is on each line: those that were claimed before it need no correction any more."""
    from rag_eval.statistics.comparison import holm

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


def _is_composed(values: Mapping[str, float], weights: Mapping[str, float]) -> bool:
    parts = [(weights[name], values[name]) for name in weights if name in values]
    if RQS not in values or not parts:
        return True
    composite = sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)
    return abs(composite - values[RQS]) < 1e-6


def _listed(metrics: Collection[str]) -> str:
    return ", ".join(label for name, label in METRIC_LABELS.items() if name in metrics)


_Case = tuple[str, str, str, dict[str, float]]


_Past = tuple[list[_Case], str]
"""Cases and judge."""


def _read_report(path: Path) -> _Past:
    from openpyxl import load_workbook

    with path.open("rb") as file:
        workbook = load_workbook(file, read_only=True, data_only=True)
        if _REPORT_SHEET not in workbook.sheetnames:
            raise ValueError(f"it has no sheet {_REPORT_SHEET!r}")
        rows = workbook[_REPORT_SHEET].iter_rows(values_only=True)
        header = [str(cell) for cell in next(rows)]
        cases = [
            _case_of(dict(zip(header, row, strict=False)), "Query", "Ground Truth", "Bot", NAMES)
            for row in rows
        ]
        judge = _judge_of(workbook.properties.description or "")
        workbook.close()
    return cases, judge


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
    return cases, str(document["run"]["judge"])


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
