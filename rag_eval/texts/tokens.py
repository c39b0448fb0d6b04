"""How many tokens a text is for a model: about, where an estimate is wanted, and at most, where a bound is promised;
and contexts cut to what the judge can take.

No tokenizer is at hand: which one a deployment uses is not known, and those of OpenAI download their vocabularies.
"""

import re
from dataclasses import replace

from rag_eval.records import Case, Row


def estimated_tokens(text: str) -> float:
    """About as many tokens as models count.

    A quarter of the UTF-8 bytes, and one for each Chinese, Japanese or Korean character. With tiktoken's cl100k_base
    and o200k_base as the two ends, twelve languages are in between or at most 12% outside (tests/test_tokens.py).
    """
    if text.isascii():
        return len(text) / 4
    return (_bytes_of(text) + sum(map(len, _EAST_ASIAN.findall(text)))) / 4


def most_tokens(text: str) -> int:
    """No model whose vocabulary is built on bytes counts more: every token of it is at least one UTF-8 byte.

    Rare scripts reach the bound: a cuneiform sign is four bytes and four tokens.
    """
    return len(text) if text.isascii() else _bytes_of(text)


def cut_to_tokens(text: str, tokens: float) -> str:
    """The longest beginning of a text that is estimated at no more than so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated_tokens(text[:middle]) <= tokens else (low, middle - 1)
    return text[:low]


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


_EAST_ASIAN = re.compile("[\u1100-\u11ff\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+")
"""Chinese characters, kana, Hangul and their punctuation, of three bytes each: with the bytes, one token."""


INSTRUCTION_TOKENS = 1_500
"""At most so many tokens of a prompt are not texts of its case: instructions, examples and the form of the reply."""


HISTORY = "history"
"""First word of a note on earlier turns that the judge did not see."""


class Shortener:
    """Leaves out the first turns of a conversation, and the last chunks of a context, which are of the lowest rank."""

    def __init__(self, most_tokens: int | None, most_of_history: int | None = None) -> None:
        """`most_tokens` is what a whole prompt may hold, `most_of_history` what the earlier turns may; None cuts
        nothing."""
        self._most = most_tokens
        self._most_of_history = most_of_history

    def __bool__(self) -> bool:
        """Whether there is anything to be cut at all."""
        return self._most is not None or self._most_of_history is not None

    def row(self, row: Row) -> Row:
        return replace(row, cases=tuple(map(self.case, row.cases))) if self else row

    def case(self, case: Case) -> Case:
        """The case with as many of its last turns, and then as many chunks, as fit."""
        return self._with_fewer_chunks(self._with_fewer_turns(case))

    def _with_fewer_turns(self, case: Case) -> Case:
        """The last turn is cut if it alone is too long."""
        if self._most_of_history is None or not case.history:
            return case
        room = float(self._most_of_history)
        kept = len(case.history)
        while kept and (room := room - estimated_tokens(case.history[kept - 1].content)) >= 0:
            kept -= 1
        if not kept:
            return case
        last = case.history[-1]
        cut = replace(last, content=cut_to_tokens(last.content, self._most_of_history))
        return replace(case, history=case.history[kept:] or (cut,))

    def _with_fewer_chunks(self, case: Case) -> Case:
        """The first chunk is cut if it alone is too long."""
        if self._most is None or not case.chunks:
            return case
        others = (case.query, case.response, case.reference or "", *(turn.content for turn in case.history))
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

    def note(self, case: Case) -> str:
        """What is left out of the case's earlier turns and context, in words; empty when they are whole."""
        seen = self.case(case)
        return "; ".join(filter(None, (self._note_on_turns(case, seen), self._note_on_chunks(case, seen))))

    @staticmethod
    def _note_on_turns(case: Case, seen: Case) -> str:
        if seen.history == case.history:
            return ""
        whole = len(case.history)
        if seen.history[-1] != case.history[-1]:
            return f"{HISTORY} cut: the judge saw the beginning of the last of {whole} earlier turns"
        return f"{HISTORY} cut: the judge saw the last {len(seen.history)} of {whole} earlier turns"

    @staticmethod
    def _note_on_chunks(case: Case, seen: Case) -> str:
        kept = seen.chunks
        if kept == case.chunks or kept is None or case.chunks is None:
            return ""
        if kept[0] != case.chunks[0]:
            return f"context cut: the judge saw the beginning of chunk 1 of {len(case.chunks)}"
        return f"context cut: the judge saw chunks 1 to {len(kept)} of {len(case.chunks)}"
