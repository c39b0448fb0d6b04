"""Why each bot fails: causes counted from the evidence of its cases, without a judge call."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_eval.metrics.diagnosis import ROOM, ROOMY_LIMITS, CauseKind, citation_scores, diagnose, limits_from
from rag_eval.records import FAILURES, CaseResult
from rag_eval.results.stored import State
from rag_eval.texts.display import shorten

MOST_CAUSES = 3
"""Causes that page, terminal and notes show for a bot; the JSON has all."""
MOST_PLACES = 5
"""Rows of a cause whose files are kept: as many as any reader is told of."""
_MATERIAL = 0.5
"""Evidence against a score of at least this and its threshold does not explain a failure."""


Place = tuple[str, int]
"""A file, and the number that a row has there: in a run over several files, where readers find it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, and how many of a bot's failures have it as their first cause; each failure counts once."""

    name: str
    """Stable, such as 'missing_from_chunks': the name of a CauseKind in lower case."""
    text: str
    """The cause in words that continue a sentence: 'the chunks do not contain the whole answer'."""
    fix: str
    """What to do, an imperative: 'improve the retrieval'."""
    count: int
    of: int
    """All failures of the bot; at least `count`. Together, its causes count each of them once."""
    rows: Sequence[int] = field(repr=False)
    """The input's row numbers of these cases, ascending; `count` of them."""
    is_failure: bool = True
    """False for a bot without failures: then `of` counts its cases with a score below 0.8."""
    places: tuple[Place, ...] = ()
    """Where the first rows are; empty in a run over one file."""

    @property
    def share(self) -> float:
        """0..1."""
        return self.count / self.of


@dataclass(frozen=True, slots=True)
class BotCauses:
    """Why one bot fails or, if it never fails, why some of its cases could be better."""

    bot: str
    failures: int
    """Cases with a failure mode; not judged is not a failure."""
    causes: tuple[Cause, ...]
    """The most frequent first, equal ones in causal order; empty if no case fails or could be better."""
    worst_row: int | None
    """The input's row number of the case with the lowest RQS, the first of equal ones; None without an RQS."""
    worst_rqs: float | None
    """Its RQS, 0..1."""
    worst_place: Place | None = None
    """Where it is; None in a run over one file."""

    @property
    def first_fix(self) -> Cause | None:
        """The most frequent cause; None without any."""
        return self.causes[0] if self.causes else None


class CauseTally:
    """Told of every result once. Keeps row numbers only, no text; tallies of parts of a run can be merged."""

    def __init__(self, bots: Sequence[str], thresholds: Mapping[str, float]) -> None:
        """`thresholds` are those of the failure modes, by metric."""
        limits = limits_from(thresholds, _MATERIAL)
        self._bots = {bot: _BotTally(limits) for bot in bots}

    def add(self, result: CaseResult) -> None:
        if not result.case.is_missing:
            self._bots[result.case.bot].add(result)

    def add_row(self, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        """The same results: told while it is known what their texts say, they take half the time."""
        for result in results:
            self.add(result)
        return results

    def state(self) -> State:
        """What was added, for `merge`."""
        return {bot: tally.state() for bot, tally in self._bots.items()}

    def merge(self, state: State) -> None:
        """Add what another tally has counted over further rows of the same bots."""
        for bot, tally in state.items():
            self._bots[bot].merge(tally)

    def causes(self) -> tuple[BotCauses, ...]:
        """By bot, in the order of the bots."""
        return tuple(tally.causes(bot) for bot, tally in self._bots.items())


class _Counted:
    """Cases of one sort: how many there are, and the rows of those with a cause, by its kind."""

    def __init__(self) -> None:
        self.cases = 0
        self.rows: dict[CauseKind, array[int]] = {}
        self.places: dict[CauseKind, dict[int, Place]] = {}

    def add(self, result: CaseResult, limits: Mapping[str, float]) -> None:
        self.cases += 1
        first = next(diagnose(result, limits), None)
        if first:
            self.rows.setdefault(first.kind, array("q")).append(result.case.row)
            if place := _place(result):
                self._keep(first.kind, {result.case.row: place})

    def _keep(self, kind: CauseKind, places: Mapping[int, Place]) -> None:
        """Of the first rows only: no reader is told of more."""
        known = sorted({**self.places.get(kind, {}), **places}.items())
        self.places[kind] = dict(known[:MOST_PLACES])

    def state(self) -> State:
        places = {
            kind.name: [[row, *place] for row, place in some.items()] for kind, some in self.places.items()
        }
        return {
            "cases": self.cases,
            "rows": {kind.name: rows for kind, rows in self.rows.items()},
            "places": places,
        }

    def merge(self, state: State) -> None:
        self.cases += state["cases"]
        for name, rows in state["rows"].items():
            self.rows.setdefault(CauseKind[name], array("q")).extend(rows)
        for name, places in state["places"].items():
            self._keep(CauseKind[name], {row: (source, number) for row, source, number in places})


class _BotTally:
    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = limits
        self._failures, self._roomy = _Counted(), _Counted()
        self._worst: tuple[float, int, Place | None] | None = None

    def add(self, result: CaseResult) -> None:
        if not FAILURES.isdisjoint(result.failure_modes):
            self._failures.add(result, self._limits)
        elif any(
            score.value is not None and score.value < ROOM
            for score in (*result.scores.values(), *citation_scores(result))
        ):
            self._roomy.add(result, ROOMY_LIMITS)
        if result.rqs is not None:
            self._meet(result.rqs, result.case.row, _place(result))

    def state(self) -> State:
        return {"failures": self._failures.state(), "roomy": self._roomy.state(), "worst": self._worst}

    def merge(self, state: State) -> None:
        self._failures.merge(state["failures"])
        self._roomy.merge(state["roomy"])
        if state["worst"]:
            rqs, row, place = state["worst"]
            self._meet(rqs, row, (place[0], place[1]) if place else None)

    def causes(self, bot: str) -> BotCauses:
        counted = self._failures if self._failures.cases else self._roomy
        order = list(CauseKind)
        kinds = sorted(counted.rows, key=lambda kind: (-len(counted.rows[kind]), order.index(kind)))
        causes = (
            Cause(
                kind.name.lower(),
                kind.text,
                kind.fix,
                len(counted.rows[kind]),
                counted.cases,
                _ascending(counted.rows[kind]),
                counted is self._failures,
                tuple(counted.places.get(kind, {}).values()),
            )
            for kind in kinds
        )
        rqs, row, place = self._worst or (None, None, None)
        return BotCauses(bot, self._failures.cases, tuple(causes), row, rqs, place)

    def _meet(self, rqs: float, row: int, place: Place | None) -> None:
        if self._worst is None or (rqs, row) < self._worst[:2]:
            self._worst = rqs, row, place


def _ascending(rows: "array[int]") -> "array[int]":
    """In eight bytes each: there may be millions, and most often they came in this order."""
    import numpy as np

    numbers = np.frombuffer(rows, np.int64)
    return rows if (numbers[1:] >= numbers[:-1]).all() else array("q", np.sort(numbers).tobytes())


def _place(result: CaseResult) -> Place | None:
    case = result.case
    return None if case.source_row is None else (case.source, case.source_row)


# In words

_NAMED_ROWS = 3


def cause_words(cause: Cause) -> str:
    """'7 of 11 failures: the chunks do not contain the whole answer (rows 5, 9, 14 …)'."""
    more = " …" if len(cause.rows) > _NAMED_ROWS else ""
    return f"{counted_words(cause)}: {cause.text} ({_rows(cause)}{more})"


def worst_words(causes: BotCauses) -> str:
    """'12', or '4 of b.csv' in a run over several files."""
    return (
        place_words(*causes.worst_place).removeprefix("row ") if causes.worst_place else str(causes.worst_row)
    )


def place_words(source: str, row: int) -> str:
    """'row 4 of b.csv'."""
    return f"row {row} of {shorten(source, 60)}"


def fix_words(causes: BotCauses | None) -> str:
    """'Improve the retrieval: the chunks do not contain the whole answer (7 of 11 failures)'; for a cell.

    Empty for a bot without failures.
    """
    if causes is None or causes.first_fix is None or not causes.failures:
        return ""
    cause = causes.first_fix
    return f"{cause.fix[0].upper()}{cause.fix[1:]}: {cause.text} ({counted_words(cause)})"


def counted_words(cause: Cause) -> str:
    """'7 of 11 failures', or of how many cases with a score that could be better."""
    what = "failure" if cause.is_failure else f"case with a score below {ROOM:g}"
    several = "failures" if cause.is_failure else f"cases with a score below {ROOM:g}"
    return f"{cause.count:,} of {cause.of:,} {what if cause.of == 1 else several}"


def _rows(cause: Cause) -> str:
    if cause.places:
        return ", ".join(place_words(*place) for place in cause.places[:_NAMED_ROWS])
    named = ", ".join(map(str, cause.rows[:_NAMED_ROWS]))
    return f"row{'s' if len(cause.rows) > 1 else ''} {named}"
