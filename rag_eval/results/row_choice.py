"""Which rows an output has that cannot have all: the worst of each bot and random ones, by one rule for all outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WORST, RANDOM = "worst", "random"
"""Why a row was chosen. The worst are not a sample: in another run of the same quality they would score higher."""
SELECTION = "Selection"
"""Header of the column that only a sheet has that could not have all cases: why each of its cases is there."""


@dataclass(frozen=True, slots=True)
class ScoredCases:
    """The cases of a run in the order of the input, one entry of each column per case; cases of a row are adjacent."""

    rows: "npt.NDArray[np.integer]"
    """Position of the case's row, from 0."""
    bots: "npt.NDArray[np.integer]"
    """Number of its bot, from 0."""
    scores: "npt.NDArray[np.number]"
    """Its RQS in any unit; NaN or negative without one."""

    def by_turns(self) -> Iterator[tuple[int, str]]:
        """Every row as often as there is a reason for it: the worst of each bot, a random one, the next worst …

        Yields positions of rows with WORST or RANDOM. The same seed every time; random rows are drawn from all rows,
        whatever their scores.
        """
        import numpy as np

        if not len(self.rows):
            return
        turns = [(self._worst_rows(bot), WORST) for bot in range(int(self.bots.max()) + 1)]
        order = np.random.default_rng(0).permutation(int(self.rows.max()) + 1)
        turns.append((map(int, order), RANDOM))
        while turns:
            for turn in list(turns):
                row = next(turn[0], None)
                if row is None:
                    turns.remove(turn)
                else:
                    yield row, turn[1]

    def fitting(self, capacity: int) -> list[str]:
        """By row: WORST or RANDOM for those with at most `capacity` cases in all, half of them for each, else empty.

        A random row is RANDOM even if it is among the worst.
        """
        import numpy as np

        sizes = np.bincount(self.rows)
        reasons = [""] * len(sizes)
        left = {WORST: capacity // 2, RANDOM: capacity - capacity // 2}
        for row, why in self.by_turns():
            size = 0 if reasons[row] else int(sizes[row])
            if size > left[why]:
                left[why] = 0
            elif why == RANDOM or not reasons[row]:
                left[why] -= size
                reasons[row] = why
            if not any(left.values()):
                break
        return reasons

    def _worst_rows(self, bot: int) -> Iterator[int]:
        """The row with the bot's lowest score first; rows without a score are left out."""
        import numpy as np

        cases = np.flatnonzero((self.bots == bot) & (self.scores >= 0))
        return (int(self.rows[case]) for case in cases[np.argsort(self.scores[cases], kind="stable")])
