"""More cases than a sheet can have: kept on disk until the end, when the rows that fit are chosen."""

import math
from collections.abc import Iterator, Sequence

from rag_eval.records import CaseResult
from rag_eval.results.row_choice import ScoredCases
from rag_eval.store.codec import NumberTable, Spool

_MOST = 20_000
"""Cases of a sheet that cannot have all: more of them nobody reads, and other files have every case."""


class CaseSpool:
    """Told of every result in order; holds a few bytes for each in memory, the rest on disk."""

    def __init__(self, bots: Sequence[str], capacity: int) -> None:
        """`capacity` is how many cases the sheet can have."""
        self.reason = ""
        """Why the case that `chosen` gave last is there: WORST or RANDOM; empty if every case is."""
        self._capacity = capacity
        self.most = min(capacity, _MOST)
        """Cases of the sheet if it cannot have all."""
        self._numbers = {bot: number for number, bot in enumerate(bots)}
        self._results: Spool[CaseResult] = Spool(CaseResult, "the cases")
        self._file: Spool[bytes] = Spool(bytes, "the scores of the cases")
        self._columns = NumberTable({"row": "I", "bot": "H", "rqs": "d"}, self._file)
        self._last_row: int | None = None
        self._place = -1

    def add(self, result: CaseResult) -> None:
        self._place += result.case.row != self._last_row
        self._last_row = result.case.row
        last = self._columns.last
        last["row"].append(self._place)
        last["rqs"].append(math.nan if result.rqs is None else result.rqs)
        last["bot"].append(self._numbers[result.case.bot])
        self._columns.end_entry()
        self._results.add(result)

    @property
    def cut_note(self) -> str:
        """A sentence on what the sheet leaves out; empty if all cases fit."""
        cases = len(self._columns)
        if cases <= self._capacity:
            return ""
        return (
            f"Sheet Per-Query Metrics has at most {self.most:,} of {cases:,} cases, because a sheet cannot have all: "
            "half of them queries with the lowest RQS of a bot, half random queries (column Selection). All means are "
            "over all cases. JSON and CSV have every case; a baseline uses only the random ones of the sheet."
        )

    def chosen(self) -> Iterator[CaseResult]:
        """The cases that fit, in the order of the input: all of them, or those of the worst rows and of random ones."""
        import numpy as np

        is_cut = len(self._columns) > self._capacity
        rows, bots, rqs = map(self._columns.column, ("row", "bot", "rqs"))
        columns = (np.frombuffer(column, column.typecode) for column in (rows, bots, rqs))
        reasons = ScoredCases(*columns).fitting(self.most) if is_cut else []
        del bots, rqs
        for case, row in enumerate(rows):
            self.reason = reasons[row] if is_cut else ""
            if self.reason or not is_cut:
                yield self._results.at(case)

    def close(self) -> None:
        self._results.close()
        self._file.close()
