"""All files of a run as one: told of every result, finished or discarded together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from rag_eval.errors import LockedError, OutputError
from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.column import Place
from rag_eval.results.findings import Findings
from rag_eval.results.summary import Summary


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What is known at the end: what the tables are made of that are written then."""

    facts: RunFacts
    summary: Summary
    findings: Findings
    places: Mapping[str, Place] = field(default_factory=dict)
    """By measure: the header of the column with its scores in a workbook; none in other outputs."""
    limits: Sequence[str] = ()
    """What the workbook has no room for, one sentence each."""


class Receiver(Protocol):
    """Is told of every result, in order."""

    def add(self, result: CaseResult) -> None: ...


class Output(Receiver, Protocol):
    """One file, or one folder of files."""

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path: ...
    def discard(self) -> None: ...


@runtime_checkable
class _BoundedOutput(Protocol):
    """An output that may not hold everything."""

    @property
    def left_out(self) -> Sequence[str]:
        """What does not fit, one sentence each; known once it is finished."""
        ...


class Outputs:
    """As many as were asked for, the report first. As a context it discards them when something goes wrong.

    Only the report must succeed: what else cannot be written is discarded and becomes one of the `problems`, so that a
    run that was paid for has its report.
    """

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = list(outputs)
        self.problems: list[OutputError | LockedError] = []

    @classmethod
    def opened(cls, factories: Sequence[Callable[[], Output]]) -> Self:
        """Open one after the other; if one cannot be, none stays open."""
        with cls(()) as opened:
            for factory in factories:
                opened._outputs.append(factory())
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.discard()

    def add(self, result: CaseResult) -> None:
        self._each(lambda output: output.add(result))

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> list[Path]:
        """Where each of them is, in order. Later ones learn from the facts what earlier ones left out."""
        places: list[Path] = []

        def finish(output: Output) -> None:
            places.append(output.finish(summary, findings, replace(facts, left_out=self.left_out)))

        self._each(finish)
        return places

    def _each(self, act: Callable[[Output], None]) -> None:
        for output in tuple(self._outputs):
            try:
                act(output)
            except (OutputError, LockedError) as problem:
                if output is self._outputs[0]:
                    raise
                self._outputs.remove(output)
                output.discard()
                self.problems.append(problem)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What does not fit into the outputs, one sentence each; complete once all are finished."""
        bounded = (output for output in self._outputs if isinstance(output, _BoundedOutput))
        return tuple(sentence for output in bounded for sentence in output.left_out)

    def discard(self) -> None:
        """Leave nothing behind of those that are not finished."""
        for output in self._outputs:
            output.discard()
