"""The notes of a sheet: the weightiest of each kind are kept, and only those are put into words."""

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from xlsxwriter import Workbook

from rag_eval.records import Evidence, Score
from rag_eval.report.notes import Note, NoteKind, SheetNotes, note_on

LIMIT = int(NoteKind.LOW.limit)


def kept(weights: list[float], words: Callable[[int], str | Callable[[], str]] = str) -> dict[int, str]:
    """By row, the notes of that weight which a sheet has in the end."""
    book = Workbook(io.BytesIO())
    sheet = book.add_worksheet()
    notes = SheetNotes(sheet)
    for row, weight in enumerate(weights):
        sheet.write_number(row, 0, weight)
        notes.add(row, 0, Note(words(row), NoteKind.LOW, weight))
    found = {row: cells[0].text for row, cells in sheet.comments.items()}
    book.close()
    return found


@pytest.mark.slow
@hypothesis_settings(max_examples=8)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=LIMIT - 2, max_size=LIMIT + 60))
def test_the_weightiest_stay_and_of_equal_ones_the_first(weights: list[float]) -> None:
    best = sorted(range(len(weights)), key=lambda row: (-weights[row], row))[:LIMIT]
    assert kept(weights) == {row: str(row) for row in best}


@pytest.mark.parametrize("more", [0, 1, 5000])
def test_a_note_that_is_not_kept_is_never_put_into_words(more: int) -> None:
    built: list[int] = []

    def words(row: int) -> Callable[[], str]:
        def text() -> str:
            built.append(row)
            return f"note {row}"

        return text

    assert len(kept([0.0] * (LIMIT + more), words)) == LIMIT
    assert built == list(range(LIMIT))


@pytest.mark.parametrize(
    ("reason", "has_note"), [("", False), (" \n\t", False), ("\x1c", True), ("\x0b ", True), ("why", True)]
)
def test_a_low_score_without_evidence_has_a_note_if_its_reason_shows(reason: str, has_note: bool) -> None:
    """A character that a workbook cannot hold is shown by another one."""
    assert (note_on(Score.scored("faithfulness", 0.1, reason), 0.3) is not None) is has_note


def test_a_note_says_what_was_not_found_in_sentences_that_are_supported() -> None:
    """The offline judge supports each of them, and still the whole text is below the threshold."""
    missing = Evidence("sentence", "Loans last four weeks.", "supported", True, "not in the chunks: last")
    evidence = (missing, Evidence("sentence", "They are free.", "supported", True))
    note = note_on(Score.scored("faithfulness", 0.6, "", evidence), 0.62)
    assert note is not None
    assert note.text == (
        "0.60, below 0.62\n1 of 2 sentences: supported\n– Loans last four weeks. (not in the chunks: last)"
    )
    assert note_on(Score.scored("faithfulness", 0.6, "", evidence[1:]), 0.62) is None


def test_a_note_lists_what_speaks_against_a_score_by_verdict() -> None:
    """Short texts one after the other, long ones below each other, and as many as 600 characters hold."""
    verdicts = ("not supported", "contradicted", "not supported")
    texts = ("Loans last four weeks...", "Dogs are welcome here, too.", "They are free.")
    evidence = [
        Evidence("statement", text, verdict, False) for text, verdict in zip(texts, verdicts, strict=True)
    ]
    evidence.append(Evidence("statement", "They can be extended.", "supported", True))
    evidence.append(Evidence("statement", "Tea is free.", "contradicted", False))
    evidence.append(Evidence("chunk", "Fees", "irrelevant", False, "it speaks of fees", rank=2))

    def note(*its: Evidence) -> list[str]:
        found = note_on(Score.scored("faithfulness", 0.1, "", its), 0.3)
        return found.text.split("\n") if found else []

    assert note(*evidence) == [
        "0.10, below 0.30",
        "1 of 1 chunk: irrelevant",
        "– #2 Fees (it speaks of fees)",
        "2 of 5 statements: contradicted",
        "– Dogs are welcome here, too.",
        "– Tea is free.",
        "2 of 5 statements: not supported",
        "Loans last four weeks..., They are free.",
    ]
    its = [Evidence("statement", "w" * width, "wrong", False) for width in (97, 97, 97, 97, 97, 98)]
    assert len("\n".join(note(*its)[2:])) == 600
    longer = [*its[1:], its[-1]]
    assert note(*longer)[2:] == [*(f"– {'w' * 97}" for _ in range(4)), f"– {'w' * 98}", "… and 1 more"]
    long = note(Evidence("s" * 41, "t" * 161, "v" * 61, False, "r" * 121))[1:]
    assert long == [f"1 of 1 {'s' * 39}…: {'v' * 59}…", f"– {'t' * 159}… ({'r' * 119}…)"]
    full = note(Evidence("s" * 40, "t" * 160, "v" * 60, False, "r" * 120))[1:]
    assert full == [f"1 of 1 {'s' * 40}: {'v' * 60}", f"– {'t' * 160} ({'r' * 120})"]
