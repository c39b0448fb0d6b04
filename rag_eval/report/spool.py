"""More cases than a sheet can have: kept on disk, and at the end the worst of each bot and random queries."""

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from rag_eval.records import CaseResult
from rag_eval.results.baseline import RANDOM, WORST

_RESULT = TypeAdapter(CaseResult)


class CaseSpool:
    """Told of every result in order; holds a few bytes for each in memory, the rest in a file of its own."""

    def __init__(self, folder: str, bots: Sequence[str], capacity: int) -> None:
        """`capacity` is how many cases the sheet can have; the file is in `folder`."""
        self.reason = ""
        """Why the case that `chosen` gave last is there: WORST or RANDOM; empty if every case is."""
        self._capacity = capacity
        self._numbers = {bot: number for number, bot in enumerate(bots)}
        self._file = (Path(folder) / "cases").open("w+b")
        self._offsets, self._rqs = array("q"), array("d")
        self._rows, self._bots = array("q"), array("H")

    def add(self, result: CaseResult) -> None:
        self._offsets.append(self._file.tell())
        self._rqs.append(math.nan if result.rqs is None else result.rqs)
        self._rows.append(result.case.row)
        self._bots.append(self._numbers[result.case.bot])
        self._file.write(json.dumps(_RESULT.dump_python(result, mode="json")).encode() + b"\n")

    def chosen(self) -> Iterator[CaseResult]:
        """The cases that fit, in the order of the input: all of them, or half random queries and half the worst."""
        is_cut = len(self._offsets) > self._capacity
        reasons = self._reasons() if is_cut else {}
        for index in sorted(reasons) if is_cut else range(len(self._offsets)):
            self.reason = reasons.get(index, "")
            self._file.seek(self._offsets[index])
            yield _RESULT.validate_python(json.loads(self._file.readline()))

    def close(self) -> None:
        self._file.close()

    def _reasons(self) -> dict[int, str]:
        """By the index of each chosen case. A random one stays random even if it is among the worst."""
        import numpy as np

        rows, bots = np.asarray(self._rows), np.asarray(self._bots)
        queries = np.unique(rows)
        random_queries = self._capacity // 2 // len(self._numbers)
        drawn = np.random.default_rng(0).choice(queries, min(random_queries, len(queries)), replace=False)
        is_random = np.isin(rows, drawn)
        reasons = dict.fromkeys(np.flatnonzero(is_random).tolist(), RANDOM)
        worst_of_each = (self._capacity - len(reasons)) // len(self._numbers)
        rqs = np.asarray(self._rqs)
        for bot in range(len(self._numbers)):
            own = np.flatnonzero((bots == bot) & ~is_random)
            order = np.argsort(rqs[own], kind="stable")[:worst_of_each]  # a case without an RQS comes last
            reasons |= dict.fromkeys(own[order].tolist(), WORST)
        return reasons


def cut_note(cases: int, capacity: int) -> str:
    """A sentence on what a sheet of that capacity leaves out; empty if all cases fit."""
    if cases <= capacity:
        return ""
    return (
        f"Sheet Per-Query Metrics has at most {capacity:,} of {cases:,} cases, because a sheet cannot have more: "
        "the worst of each bot and random queries (column Selection). All means are over all cases. "
        "JSON and CSV have every case; a baseline uses only the random ones of the sheet."
    )
