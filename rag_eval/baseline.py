"""What changed since an earlier run: per bot and metric, on the queries that both runs judged."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS, CaseResult
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
    """95 %, of the mean difference; None for a single query."""
    queries: int
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


def read_past_run(path: Path) -> PastRun:
    """The numbers of a report (.xlsx) or of a run's JSON. Raises InputError when it is neither."""
    readers = {".xlsx": _report_cases, ".json": _json_cases}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: a baseline is a report (.xlsx) or a run's JSON (.json)")
    try:
        cases = list(reader(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file to compare with (--baseline)") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be read as a report of an earlier run ({reason})") from error
    keys = _numbered((query, reference, bot) for query, reference, bot, _ in cases)
    return PastRun(path.name, {key: values for key, (*_, values) in zip(keys, cases, strict=True)})


class BaselineComparison:
    """Folds the results of this run into its changes since an earlier one."""

    def __init__(self, past: PastRun) -> None:
        self._past = past
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._bots: dict[str, None] = {}
        self._pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    def add(self, result: CaseResult) -> None:
        case = result.case
        self._bots[case.bot] = None
        text = (_comparable(case.query), _comparable(case.reference or ""), case.bot)
        before = self._past.values.get((*text, self._seen[text]))
        self._seen[text] += 1
        for name in NAMES if before else ():
            now = result.rqs if name == RQS else result.value(name)
            if before and name in before and now is not None:
                self._pairs[case.bot, name].append((before[name], now))

    def changes(self) -> tuple[Change, ...]:
        """In the order of the bots and of the report's columns; empty when no query is in both runs."""
        from rag_eval.statistics.comparison import holm, paired_permutation_pvalue

        keys = [(bot, name) for bot in self._bots for name in NAMES if (bot, name) in self._pairs]
        compared = [(key, self._pairs[key]) for key in keys]
        differences = [[_difference(before, now) for before, now in pairs] for _, pairs in compared]
        pvalues = holm([paired_permutation_pvalue(each) for each in differences])
        return tuple(
            _change(bot, name, pairs, difference, pvalue)
            for ((bot, name), pairs), difference, pvalue in zip(compared, differences, pvalues, strict=True)
        )


def regressions(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.direction is Direction.WORSE)


def _difference(before: float, now: float) -> float:
    """Without the rounding error of a composite that was computed anew."""
    difference = now - before
    return difference if abs(difference) > 1e-9 else 0.0


def _change(
    bot: str, name: str, pairs: Sequence[tuple[float, float]], differences: Sequence[float], pvalue: float
) -> Change:
    from rag_eval.statistics.intervals import bootstrap_mean_interval

    count = len(pairs)
    mean = sum(differences) / count
    if not any(differences):
        direction = Direction.SAME
    elif pvalue >= _ALPHA:
        direction = Direction.UNDECIDED
    else:
        direction = Direction.BETTER if mean > 0 else Direction.WORSE
    return Change(
        bot=bot,
        name=name,
        before=sum(before for before, _ in pairs) / count,
        now=sum(now for _, now in pairs) / count,
        interval=bootstrap_mean_interval(differences),
        queries=count,
        direction=direction,
    )


_Case = tuple[str, str, str, dict[str, float]]


def _report_cases(path: Path) -> Iterator[_Case]:
    from openpyxl import load_workbook

    with path.open("rb") as file:
        workbook = load_workbook(file, read_only=True, data_only=True)
        if _REPORT_SHEET not in workbook.sheetnames:
            raise ValueError(f"it has no sheet {_REPORT_SHEET!r}")
        rows = workbook[_REPORT_SHEET].iter_rows(values_only=True)
        header = [str(cell) for cell in next(rows)]
        for row in rows:
            yield _case_of(dict(zip(header, row, strict=False)), "Query", "Ground Truth", "Bot", NAMES)
        workbook.close()


def _json_cases(path: Path) -> Iterator[_Case]:
    document = json.loads(path.read_text(encoding="utf-8"))
    for case in document["cases"]:
        scores = {name: score["value"] for name, score in case["scores"].items()}
        names = {name: name for name in NAMES}
        yield _case_of({**case, **scores}, "query", "reference", "bot", names)


def _case_of(
    record: Mapping[str, Any], query: str, reference: str, bot: str, names: Mapping[str, str]
) -> _Case:
    values = {
        name: float(record[column])
        for name, column in names.items()
        if isinstance(record.get(column), int | float)
    }
    return _comparable(record[query] or ""), _comparable(record[reference] or ""), str(record[bot]), values


def _comparable(text: str) -> str:
    """As a cell of the report holds it: line ends alike, and no longer than a cell can be."""
    return str(text).replace("\r\n", "\n").replace("\r", "\n")[:30_000]


def _numbered(texts: Iterable[tuple[str, str, str]]) -> Iterator[Key]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for text in texts:
        yield (*text, seen[text])
        seen[text] += 1
