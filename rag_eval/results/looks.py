"""Looks at a run before its end: when they are, what each may spend, and which rows each has seen.

Rows are judged in the order of a hash of their query, or of their conversation. So a changed file keeps its order, rows
that repeat a query stay together, as do those of a conversation, and what a look has seen can be told from the rows
alone.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from statistics import NormalDist
from typing import TYPE_CHECKING

from rag_eval.errors import NOT_RUN
from rag_eval.records import Case, CaseResult, PlannedLook
from rag_eval.texts.display import enumerated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_ALPHA = 0.05
"""Chance of a wrong claim that all looks together may spend."""
_NORMAL = NormalDist()


def spent(share: float) -> float:
    """How much of the chance of a wrong claim is spent when this share of the rows, from 0 to 1, is judged.

    Spending of the O'Brien–Fleming type (Lan and DeMets 1983), half of it on each side: little at first, so that the
    end keeps most.
    """
    if share >= 1.0:
        return _ALPHA
    return 4 * _NORMAL.cdf(_NORMAL.inv_cdf(_ALPHA / 4) / math.sqrt(share)) if share > 0 else 0.0


@lru_cache(maxsize=64)
def boundaries(shares: tuple[float, ...]) -> tuple[float, ...]:
    """What the z of one mean has to exceed at each look to spend as much, two-sided; `shares` increase up to 1.

    By numerical integration over the paths that have not crossed earlier (Armitage, McPherson and Rowe 1969).
    """
    import numpy as np

    found: list[float] = []
    points, weights = np.zeros(1), np.ones(1)  # where paths are, and how likely; nothing is judged yet
    before = 0.0
    for share in shares:
        step, end = math.sqrt(share - before), math.sqrt(share)
        z = _boundary(points, weights, step, end, spent(share) - spent(before))
        found.append(z)
        grid = np.linspace(-z * end, z * end, _GRID)
        simpson = np.where(np.arange(_GRID) % 2, 4.0, 2.0)
        simpson[[0, -1]] = 1.0
        density = np.exp(-(((grid[:, None] - points) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
        weights = (density @ weights) * simpson * (grid[1] - grid[0]) / 3
        points, before = grid, share
    return tuple(found)


def _boundary(points: "Floats", weights: "Floats", step: float, end: float, increment: float) -> float:
    """The z at which so many paths cross at the next look."""
    import numpy as np

    cdf = np.vectorize(_NORMAL.cdf, otypes=[float])
    low, high = 0.0, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        beyond = cdf((points - middle * end) / step) + cdf((-points - middle * end) / step)
        low, high = (middle, high) if float(weights @ beyond) > increment else (low, middle)
    return low


_GRID = 401
"""Points of the integration: the boundaries are right to four digits."""


def key_of(case: Case) -> str:
    """What rows are ordered by: 64 hexadecimal digits, the same for all rows of a conversation.

    Of rows without one, the same for queries that differ in white space alone.
    """
    if not case.conversation:
        return key_of_text(case.query)
    return _hash(f"\0{case.source}\0{case.conversation}")


def key_of_text(text: str) -> str:
    """64 hexadecimal digits, the same for texts that differ in white space alone."""
    return _hash(" ".join(text.split()))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def conversation_of(case: Case) -> int:
    """A number for the conversation of a case, above 0 and of 63 bits; 0 if it has none. Files do not share any."""
    return 1 | int(key_of(case)[:16], 16) >> 1 if case.conversation else 0


def is_reached(result: CaseResult) -> bool:
    """Whether the run came to this case before it stopped, so that it has more than what the store knew of it."""
    return all(score.code != NOT_RUN for score in result.scores.values())


def planned_looks(keys: Sequence[str], shares: Sequence[float]) -> tuple[PlannedLook, ...]:
    """The looks at rows with these keys, the last at all of them. Rows with one key are seen by the same look.

    Without those that no result could make clear, since so few rows have no sign pattern that is rare enough.
    """
    total = len(keys)
    ends = [0]
    for _, same in groupby(sorted(keys)):
        ends.append(ends[-1] + sum(1 for _ in same))
    clusters = {rows: number for number, rows in enumerate(ends)}
    looks: list[PlannedLook] = []
    for share in shares:
        rows = next(end for end in ends if end >= share * total - 1e-9)
        level = spent(rows / total) if total else _ALPHA
        if (
            rows < total
            and rows not in (look.rows for look in looks)
            and 2.0 ** (1 - clusters[rows]) <= level
        ):
            looks.append(PlannedLook(rows, level))
    return (*looks, PlannedLook(total, _ALPHA))


def taken(looks: Sequence[PlannedLook], rows: int) -> tuple[PlannedLook, ...]:
    """Those that a run of so many judged rows has had."""
    return tuple(look for look in looks if look.rows <= rows)


def confidence_of(looks: Sequence[PlannedLook], rows: int) -> float:
    """Confidence level of an interval for one mean at the last of these looks that keeps what all of them promise.

    `rows` are those of the whole run. 0.95 without looks.
    """
    if not looks:
        return 1 - _ALPHA
    shares = tuple(look.rows / rows for look in looks)
    return 2 * _NORMAL.cdf(boundaries(shares)[-1]) - 1


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows that were compared, in the order in which they were judged."""

    counts: tuple[int, ...]
    """For each look that was taken: how many of them it saw."""
    clusters: Sequence[int]
    """Of each row: the number of its query, or of its conversation."""

    @classmethod
    def of(cls, keys: Sequence[str], chosen: Sequence[int], looks: Sequence[PlannedLook]) -> "Seen":
        """`keys` are those of all rows of the run; `chosen` are numbers of rows, as `in_order` has them."""
        place = {row: place for place, row in enumerate(in_order(keys))}
        numbers: dict[str, int] = {}
        return cls(
            tuple(sum(place[row] < look.rows for row in chosen) for look in looks),
            [numbers.setdefault(keys[row], len(numbers)) for row in chosen],
        )


def in_order(keys: Sequence[str], rows: Sequence[int] | None = None) -> list[int]:
    """Numbers of rows in the order in which they are judged; of all rows, or of the given ones."""
    return sorted(range(len(keys)) if rows is None else rows, key=lambda row: (keys[row], row))


def looks_words(looks: Sequence[PlannedLook], count: int) -> str:
    """Which looks there were of those that were planned, and what all spent up to each."""
    *early, last = looks
    if not early:
        return f"Planned looks: only the one at the end, after {last.rows:,} rows."
    rows = enumerated([f"{look.rows:,}" for look in looks])
    spent_by_then = enumerated([f"{look.spent:.2g}" for look in looks])
    return (
        f"Planned looks: after {rows} rows. Looks taken: {count} of {len(looks)}. The chance of a wrong claim is "
        f"{spent_by_then} up to each look (O'Brien–Fleming spending)."
    )


def stages_of(
    looks: Sequence[PlannedLook], seen: Seen, rows: int, reached: int
) -> Iterator[tuple[int, float]]:
    """For each look: how many compared rows it saw, and what was spent up to it; the last of them is now.

    `rows` are those of the whole run, `reached` those that have been judged. A run that ended between two looks has one
    more, which spends what is due for its rows.
    """
    for look, count in zip(looks, seen.counts, strict=False):
        if look.rows < reached:
            yield count, look.spent
    yield (
        len(seen.clusters),
        next((look.spent for look in looks if look.rows == reached), spent(reached / rows)),
    )
