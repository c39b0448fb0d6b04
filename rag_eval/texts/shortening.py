"""Contexts cut to what the judge can take."""

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_eval.texts.tokens import cut_to_tokens, estimated_tokens

if TYPE_CHECKING:
    from rag_eval.records import Case, Row

INSTRUCTION_TOKENS = 1_500
"""At most so many tokens of a prompt are not texts of its case: instructions, examples and the form of the reply."""


class Shortener:
    """Leaves out the last chunks of a context, which are those of the lowest rank, until a prompt fits."""

    def __init__(self, most_tokens: int | None) -> None:
        """`most_tokens` is what a whole prompt may hold; None cuts nothing."""
        self._most = most_tokens

    def __bool__(self) -> bool:
        """Whether there is anything to be cut at all."""
        return self._most is not None

    def row(self, row: "Row") -> "Row":
        return row if self._most is None else replace(row, cases=tuple(map(self.case, row.cases)))

    def case(self, case: "Case") -> "Case":
        """The case with as many chunks as fit beside its other texts, the first one cut if it alone is too long."""
        if self._most is None or not case.chunks:
            return case
        others = (case.query, case.response, case.reference or "")
        room = self._most - INSTRUCTION_TOKENS - sum(map(estimated_tokens, others))
        kept: list[str] = []
        for chunk in case.chunks:
            room -= estimated_tokens(chunk)
            if room < 0:
                break
            kept.append(chunk)
        if len(kept) == len(case.chunks):
            return case
        first = cut_to_tokens(case.chunks[0], room + estimated_tokens(case.chunks[0]))
        return replace(case, chunks=tuple(kept) or ((first,) if first.strip() else case.chunks))

    def note(self, case: "Case") -> str:
        """What is left out of the case's context, in words; empty when it is whole."""
        kept = self.case(case).chunks
        if kept == case.chunks or kept is None or case.chunks is None:
            return ""
        if kept[0] != case.chunks[0]:
            return f"context cut: the judge saw the beginning of chunk 1 of {len(case.chunks)}"
        return f"context cut: the judge saw chunks 1 to {len(kept)} of {len(case.chunks)}"
