"""What short texts are read as, to the letter: amounts by value, words in their compared form, sentences, citations,
refusals.

`texts_read.txt` has each text, as JSON writes it, and below it what is read. `python tests/test_texts_read.py` writes
that anew after a change that is wanted; read what differs before you keep it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.texts.amounts import amounts, may_have_amount
from rag_eval.texts.brackets import marks
from rag_eval.texts.citations import citing_sentences, habit_of
from rag_eval.texts.source_lists import asks_for_sources, names_sources, without_sources
from rag_eval.texts.words import names, numbers, read, read_claim, read_sentences, sentences, stems_of

RECORDED = Path(__file__).parent / "texts_read.txt"
PLAIN = ("Loans last four weeks.", "Dogs are not allowed.", "The library opens at 9.")
CHUNKS = ("Loans last four weeks.", "[2] Dogs are not allowed.", "The library opens at 9.")


def recorded() -> dict[str, list[str]]:
    """Each text, and what was read of it."""
    blocks = RECORDED.read_text(encoding="utf-8").strip("\n").split("\n\n")
    return {json.loads(text): read for text, *read in map(str.splitlines, blocks)}


TEXTS = recorded()


def told(text: str) -> Iterator[str]:
    """What is read of a text; nothing that is plain."""
    for each in amounts(text):
        values = sorted(f"{dimension} {_plain(value)}" for dimension, value in each.values)
        yield f"  {' '.join(each.text.split())} = {'; '.join(values)}"
    if not may_have_amount(text):
        yield "  no amount"
    yield f"  stems: {' '.join(stems_of(text))}"
    yield f"  content: {' '.join(sorted(read(text).stems))}"
    if found := numbers(read(text).stems):
        yield f"  numbers: {' '.join(sorted(found))}"
    if found := [" ".join(name) for each in read_sentences(text) for name in names(each)]:
        yield f"  names: {', '.join(found)}"
    if len(sentences(text)) > 1:
        yield f"  sentences: {' | '.join(sentences(text))}"
    if without_sources(text) != text:
        yield f"  without sources: {without_sources(text)!r}"
    if names_sources(text) or asks_for_sources(text):
        yield f"  names sources: {names_sources(text)}, asks for them: {asks_for_sources(text)}"
    if is_refusal(read_claim(text).whole):
        yield "  refuses"
    if any(sign in text for sign in "[(【^"):
        habit = habit_of(text, CHUNKS)
        yield f"  of plain chunks: {habit_of(text, PLAIN)}"
        yield f"  marks: {[tuple(mark) for mark in marks(text, leads=False, chunks=CHUNKS)]}, {habit}"
        yield from (
            f"  cites: {tuple(each)}"
            for each in citing_sentences(text, CHUNKS, habit.base, leads=habit.leads)
        )


def _plain(value: object) -> str:
    parts = value if isinstance(value, tuple) else (value,)
    return " ".join(str(part) for part in parts if part != "")


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_as_it_was(text: str) -> None:
    assert [*told(text)] == TEXTS[text]


if __name__ == "__main__":
    found = [[json.dumps(text, ensure_ascii=False), *told(text), ""] for text in TEXTS]
    RECORDED.write_text("\n".join(line for lines in found for line in lines), encoding="utf-8")
