"""The parts of a run as one run again: what was counted, what was marked, what it took, and every result in order."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import fields

from rag_eval.errors import InputError
from rag_eval.records import CaseResult, RunFacts, RunStats
from rag_eval.results.recorded import renewed, rescored, rows_of
from rag_eval.results.stored import State
from rag_eval.results.tallies import Tallies
from rag_eval.shards.folder import DamagedPartError, RunFolder, about_results, read_results, read_state
from rag_eval.shards.judge_shard import scoring_of, with_marks
from rag_eval.store.codec import from_plain


class Fold:
    """Parts that are done, one after the other in the order of the input, while others may still be judged."""

    def __init__(self, folder: RunFolder, facts: RunFacts) -> None:
        """`facts` are those of the start of the run."""
        self._folder = folder
        self._facts = facts
        self._about: list[State] = []
        self.renewed = 0
        """Recommendations that were computed anew."""

    def results(
        self, numbers: Iterable[int], tallies: Tallies | None = None
    ) -> Generator[CaseResult, None, None]:
        """Every result of these shards, as the weights and thresholds are now; `tallies` get what each part counted.

        A number is taken when the results of the shard before it were. Raises InputError for a part that was damaged
        since it was judged.
        """
        now = scoring_of(self._facts)
        for number in numbers:
            about = about_results(self._folder.results(number))
            self._about.append(about)
            stored = self._stored(number)
            yield from stored if about.get("scoring") == now else self._again(stored)
            if tallies:
                tallies.merge(self._counted(number))

    def _stored(self, number: int) -> Iterator[CaseResult]:
        """As they were judged."""
        path = self._folder.results(number)
        try:
            yield from read_results(path)
        except DamagedPartError as error:
            raise InputError(f"{path}: cannot be read; run the same command again ({error})") from error

    def _counted(self, number: int) -> State:
        path = self._folder.tallies(number)
        state: State | None = read_state(path).get("tallies")
        if state is None:
            raise InputError(f"{path}: cannot be read; run the same command again")
        return state

    def _again(self, results: Iterator[CaseResult]) -> Iterator[CaseResult]:
        for row in rows_of(results):
            now = rescored(row, self._facts, had_diagnostics=self._facts.diagnostics)
            self.renewed += renewed(row, now)
            yield from now

    @property
    def facts(self) -> RunFacts:
        """With the marks of the cases of the parts so far."""
        return with_marks(self._facts, self._about) if self._about else self._facts

    @property
    def stats(self) -> RunStats:
        """Of the parts so far."""
        names = [field.name for field in fields(RunStats)]
        parts = (
            from_plain(RunStats, {name: about[name] for name in names if name in about})
            for about in self._about
        )
        return sum(parts, RunStats())

    @property
    def failed(self) -> int:
        """Cases of the parts so far that another run might judge."""
        return sum(about["failed"] for about in self._about)
