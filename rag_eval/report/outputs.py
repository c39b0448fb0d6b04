"""All files of a run as one: told of every result, finished or discarded together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, Self

from rag_eval.records import CaseResult, RunFacts
from rag_eval.results.findings import Findings
from rag_eval.results.summary import Summary


class Output(Protocol):
    """One file, or one folder of files."""

    def add(self, result: CaseResult) -> None: ...
    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path: ...
    def discard(self) -> None: ...


class Outputs:
    """As many as were asked for, the report first. As a context it discards them when something goes wrong."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = outputs

    @classmethod
    def opened(cls, factories: Sequence[Callable[[], Output]]) -> Self:
        """Open one after the other; if one cannot be, none stays open."""
        outputs: list[Output] = []
        with cls(outputs) as opened:
            for factory in factories:
                outputs.append(factory())
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.discard()

    def add(self, result: CaseResult) -> None:
        for output in self._outputs:
            output.add(result)

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> list[Path]:
        """Where each of them is, in order."""
        return [output.finish(summary, findings, facts) for output in self._outputs]

    def discard(self) -> None:
        """Leave nothing behind of those that are not finished."""
        for output in self._outputs:
            output.discard()
