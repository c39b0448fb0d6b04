"""The parts of a run as one run again: what was counted, what was marked, what it took, and every result in order."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rag_eval.errors import InputError
from rag_eval.records import CaseResult, RunFacts, RunStats
from rag_eval.report.case_table import Rendered, RenderedCases
from rag_eval.results.recorded import renewed, rescored, rows_of
from rag_eval.results.stored import State
from rag_eval.results.tallies import Tallies
from rag_eval.shards.folder import (
    DamagedPartError,
    RunFolder,
    StoredResults,
    about_results,
    read_lines,
    read_results,
    read_state,
)
from rag_eval.shards.judge_shard import RowsFile, cases_at_a_time, scoring_of, with_marks
from rag_eval.store.codec import decode, from_plain, read_record


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
        self, numbers: Iterable[int], tallies: Tallies | None = None, *, rows: "FoldedRows | None" = None
    ) -> Generator[CaseResult, None, None]:
        """Every result of these shards, as the weights and thresholds are now; `tallies` get what each part counted.

        A number is taken when the results of the shard before it were. With `rows`, these are handed over first, and
        where they suffice, no results come. Raises InputError for a part that was damaged since it was judged.
        """
        now = scoring_of(self._facts)
        for number in numbers:
            about = about_results(self._folder.results(number))
            self._about.append(about)
            is_as_judged = about.get("scoring") == now
            if rows and rows.suffice and is_as_judged:
                self._take_rows(number, rows)
            else:
                stored = self._stored(number)
                results = stored if is_as_judged else self._again(stored)
                yield from rows.passed(number, results) if rows else results
            if tallies:
                tallies.merge(self._counted(number))

    def _stored(self, number: int) -> Iterator[CaseResult]:
        """As they were judged."""
        path = self._folder.results(number)
        with _same_command(path):
            yield from read_results(path)

    def _take_rows(self, number: int, rows: "FoldedRows") -> None:
        """Only these, since nothing else is made of the results: none is read without need."""
        path = self._folder.results(number)
        with _same_command(path):
            rows.take(number, path)

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


@contextmanager
def _same_command(path: Path) -> Iterator[None]:
    try:
        yield
    except DamagedPartError as error:
        raise InputError(f"{path}: cannot be read; run the same command again ({error})") from error


class FoldedRows:
    """Rows of the first sheet, in the order of the fold: those that were rendered where a shard was judged.

    Others are rendered here: of parts that were there before, or that follow on one that is not.
    """

    def __init__(self, rendered: RenderedCases, facts: RunFacts, folder: Path) -> None:
        """`folder` has the files of the rows."""
        self.rendered = rendered
        self._facts = facts
        self._folder = folder
        self._cases = 0
        self._render: Callable[[int, Sequence[CaseResult]], Rendered] | None = None

    @property
    def suffice(self) -> bool:
        """Whether nobody needs a result whose row is there."""
        return self.rendered.suffice

    def passed(self, number: int, results: Iterator[CaseResult]) -> Iterator[CaseResult]:
        """The results of a shard, some at a time, each after its row was handed over."""
        for some in self._taken(number, results, list):
            yield from some

    def take(self, number: int, path: Path) -> None:
        """Hand over the rows of a shard whose results are at `path`. Raises DamagedPartError."""
        for _ in self._taken(number, read_lines(path), partial(StoredResults, path)):
            pass

    def _taken(
        self, number: int, stored: Iterator[Any], results_of: Callable[[list[Any]], Sequence[CaseResult]]
    ) -> Iterator[Sequence[CaseResult]]:
        path = RowsFile.of(self._folder, number)
        with path.open("rb") if path.is_file() else BytesIO() as file:
            while some := list(islice(stored, cases_at_a_time(self._facts))):
                results = results_of(some)
                self.rendered.take(self._read(file, len(some)) or self._made(results), results)
                self._cases += len(some)
                yield results
        path.unlink(missing_ok=True)

    def _read(self, file: IO[bytes], cases: int) -> Rendered | None:
        """The next rows of a file; None if it has none, or not those of so many cases that come now."""
        with suppress(OSError, ValueError):
            rendered: Rendered
            before, count, rendered = decode(tuple[int, int, Any], read_record(file) or b"")
            return rendered if (before, count) == (self._cases, cases) else None
        return None

    def _made(self, results: Sequence[CaseResult]) -> Rendered:
        if self._render is None:
            from rag_eval.report.renderer import open_renderer

            self._render = open_renderer(self.rendered.spec)
        return self._render(self._cases, results)
