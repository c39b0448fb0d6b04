"""The sentences on a run, to the letter: what it took, what was judged, what its cells and notes hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_cases import facts_of, result_of, summary_of

from rag_eval.cli.facts import usage_line
from rag_eval.cli.outcome import RunOutcome
from rag_eval.cli.people import People
from rag_eval.errors import NOT_RUN, ExitCode, RunStoppedError
from rag_eval.records import METRIC_LABELS, TOXICITY, Case, CaseResult, Evidence, Score, Usage
from rag_eval.report.about import details
from rag_eval.report.core_sheets import _page_header
from rag_eval.report.notes import Note, NoteKind, lines_of, note_on
from rag_eval.results.findings import find
from rag_eval.results.verdict import RunVerdict
from rag_eval.texts.display import CELL_LIMIT, cut_to_cell, fits_cell, join_chunks, printable, shorten


def run_of(*values: float | None) -> list[CaseResult]:
    """One case a row of one bot; None is a failed one."""
    return [
        result_of(
            Case(row, "A", "q", "a"),
            [
                Score.failed(name, "truncated", "cut") if value is None else Score.scored(name, value)
                for name in METRIC_LABELS
            ],
        )
        for row, value in enumerate(values, 2)
    ]


USAGE = Usage(
    requests=9, calls=5, cached=1234, failed=3, prompt_tokens=1000, completion_tokens=20, cost=0.12345
)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"is_proxy": True}, "No judge calls: the offline judge costs nothing. Duration: 1.2 s."),
        (
            {"usage": replace(USAGE, cost=None)},
            "Judge calls: 5 answered, 1234 cached, 3 failed (9 requests, 1000 + 20 tokens), "
            "cost unknown. Duration: 1.2 s.",
        ),
        (
            {"usage": replace(USAGE, failures={NOT_RUN: 2, "truncated": 1}), "currency": "EUR"},
            "Judge calls: 5 answered, 1234 cached, 1 failed, 2 not made "
            "(9 requests, 1000 + 20 tokens), cost 0.1235 EUR. Duration: 1.2 s.",
        ),
    ],
)
def test_what_a_run_took_in_one_line(changes: dict[str, object], line: str) -> None:
    assert usage_line(replace(facts_of("A", 1), seconds=1.23, **changes)) == line  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "paragraph"),
    [
        (
            {
                "usage": replace(USAGE, failures={NOT_RUN: 2, "truncated": 1}),
                "seconds": 59.6,
                "currency": "EUR",
            },
            "Judge calls: 5 answered, 1,234 cached, 1 failed (truncated 1), 2 not made; 9 requests; 1,000 prompt "
            "and 20 completion tokens. Cost 0.1235 EUR. Duration: 1 min 0 s.",
        ),
        ({"usage": Usage(), "seconds": 3599.4}, "Judge calls: none. Duration: 59 min 59 s."),
        ({"usage": Usage(cached=1), "seconds": 0.4}, "Cost unknown. Duration: 0.4 s."),
        ({"seconds": 7260.0}, "Duration: 2 h 1 min."),
        (
            {"cut_rows": 1200, "blank_rows": 3},
            "Rows: 3 of 3 judged, 3 blank, 1,200 left out beyond max_rows (answers.xlsx, sheet Q3).",
        ),
        ({"sheet": ""}, "Rows: 3 of 3 judged (answers.xlsx)."),
        ({}, "Coverage: 2 of 3 cases have an RQS (66.7%). Not judged: A 1."),
        ({"notes": tuple(f"note {n}" for n in range(13))}, "… and 1 more notes."),
        (
            {},
            "Judge: Azure OpenAI, deployment gpt-4o, at example.azure.com, 2025-03-04 14:05 UTC, RAG Eval 0.1.0.",
        ),
        (
            {},
            "Red: below the threshold (Answer Correctness 0.3, Faithfulness 0.3, Answer Relevancy 0.3, Context "
            "Precision 0.3, Context Recall 0.3); a toxicity at or above 0.5.",
        ),
    ],
)
def test_what_is_to_be_known_of_a_run(changes: dict[str, object], paragraph: str) -> None:
    facts = replace(facts_of("A", 3), **changes)  # type: ignore[arg-type]
    results = run_of(0.5, None, 0.5)
    told = details(facts, replace(summary_of(results, facts), judged=3), ())
    assert [each for each in told if paragraph in each] != [], told


def test_the_first_twelve_notes_are_told() -> None:
    facts = facts_of("A", 1, notes=tuple(f"note {n}" for n in range(14)))
    told = details(facts, summary_of(run_of(0.5), facts), ())
    assert [each for each in told if "note" in each][:13] == [*facts.notes[:12], "… and 2 more notes."]


def test_a_toxicity_that_is_not_judged_makes_no_cell_red() -> None:
    facts = facts_of("A", 1, metrics=tuple(METRIC_LABELS))
    off = Score.not_applicable(TOXICITY, "switched off")
    told = details(facts, summary_of([replace(run_of(0.5)[0], toxicity=off)], facts), ())
    (red,) = (each for each in told if each.startswith("Red: "))
    assert "Context Recall 0.3). " in red


def test_how_the_input_was_read_is_told() -> None:
    """Shape, the role of each column and whose it is, how cells were split, what was selected and left out, and why."""

    def column(header: str, role: str, bot: str | None = None, why: str = "") -> dict[str, object]:
        return {"letter": "A", "header": header, "role": role, "bot": bot, "metric": "", "why": why}

    reading = {
        "shape": "one row per query, one column per bot",
        "columns": [
            column("Frage", "query"),
            column("Bot_A", "response", "A"),
            column("Context_A", "context", "A"),
            column("notes", "not used"),
            column("truth", "not used", why="'Gold' is the reference"),
        ],
        "context_cells": {"JSON list": 1200, "paragraphs": 3},
        "selection": ["lang = de", "rows 2-9"],
        "warnings": [
            "Column 'truth' (E) looks like the reference and was not used, because x. To use it, add --map."
        ],
    }
    facts = replace(facts_of("A", 3), reading=reading)
    told = details(facts, summary_of(run_of(0.5), facts), ())
    place = next(number for number, each in enumerate(told) if each.startswith("Input: "))
    assert told[place : place + 2] == [
        "Input: one row per query, one column per bot; Frage = query, Bot_A = response of A, "
        "Context_A = context of A. Not used: notes, truth ('Gold' is the reference). "
        "Context cells: JSON list (1,200), paragraphs (3). Selected: lang = de; then rows 2-9.",
        "Column 'truth' (E) looks like the reference and was not used, because x.",
    ]


@pytest.mark.parametrize(
    ("values", "least", "passed", "code"),
    [
        ((0.5, None), 0.5, True, ExitCode.COMPLETE),
        ((0.5, None), 0.51, True, ExitCode.LOW_COVERAGE),
        ((0.5, None), 0.51, False, ExitCode.LOW_COVERAGE),
        ((0.5, 0.5), 1.0, False, ExitCode.GATE_FAILED),
        ((0.5, 0.5), 1.0, True, ExitCode.COMPLETE),
        ((None, None), 0.0, True, ExitCode.COMPLETE),
    ],
)
def test_the_exit_code_of_a_run_that_ended(
    values: tuple[float | None, ...], least: float, passed: bool, code: ExitCode
) -> None:
    facts = facts_of("A", 2)
    summary = summary_of(run_of(*values), facts)
    outcome = RunOutcome(summary, find(summary), facts, ())
    assert outcome.exit_code(None, least, passed=passed) is code
    stopped = RunStoppedError("x", "y")
    stopped.exit_code = ExitCode.TERMINATED
    assert outcome.exit_code(stopped, least, passed=passed) is ExitCode.TERMINATED


def statement(
    text: str, verdict: str = "not supported", favourable: bool = False, reason: str = ""
) -> Evidence:
    return Evidence("statement", text, verdict, favourable, reason)


@pytest.mark.parametrize(
    ("score", "threshold", "note"),
    [
        (Score.scored("faithfulness", 0.3, "why"), 0.3, None),
        (Score.scored("faithfulness", 0.2, "why"), None, None),
        (Score.scored("faithfulness", 0.2), 0.3, None),
        (Score.scored("faithfulness", 0.2, "why"), 0.3, Note("0.20, below 0.30\nwhy", NoteKind.LOW, -0.2)),
        (
            Score.failed("faithfulness", "truncated", "cut"),
            0.3,
            Note("Failed (truncated): cut", NoteKind.FAILED),
        ),
        (
            Score.not_applicable("faithfulness", "none"),
            0.3,
            Note("Not applicable: none", NoteKind.NOT_APPLICABLE),
        ),
        (
            Score.scored(
                "faithfulness",
                0.2,
                "",
                (statement("A."), statement("B.", "supported", True), statement("C.")),
            ),
            0.3,
            Note("0.20, below 0.30\n2 of 3 statements: not supported\nA., C.", NoteKind.LOW, -0.2),
        ),
        (
            Score.scored("faithfulness", 0.0, "", (statement("A statement of 25 letters", reason="no"),)),
            0.3,
            Note(
                "0.00, below 0.30\n1 of 1 statement: not supported\n– A statement of 25 letters (no)",
                NoteKind.LOW,
                -0.0,
            ),
        ),
        (
            Score.scored(
                "faithfulness",
                0.0,
                "",
                (
                    Evidence("chunk", "cats " * 60, "useless", False, rank=2),
                    Evidence("chunk", "x", "useful", True, rank=1),
                ),
            ),
            0.3,
            Note(f"0.00, below 0.30\n1 of 2 chunks: useless\n– #2 {'cats ' * 31}cats…", NoteKind.LOW, -0.0),
        ),
    ],
)
def test_the_note_on_a_score(score: Score, threshold: float | None, note: Note | None) -> None:
    found = note_on(score, threshold)
    assert (found and (found.text, found.kind, found.weight)) == (
        note and (note.text, note.kind, note.weight)
    )


@pytest.mark.parametrize(
    ("count", "listed", "left"),
    [(1, 1, ""), (6, 6, ""), (7, 7, ""), (8, 7, "\n… and 1 more"), (20, 7, "\n… and 13 more")],
)
def test_a_note_lists_as_much_as_it_holds(count: int, listed: int, left: str) -> None:
    """Seven lines of 82 characters with six line ends are 580 of the 600."""
    evidence = tuple(statement("x" * 80) for _ in range(count))
    note = note_on(Score.scored("faithfulness", 0.0, "", evidence), 0.3)
    assert note
    assert len(note.text) < 700
    assert note.text.count("– ") == listed
    assert note.text.partition("x" * 80)[2].endswith(left or "x") or count == 1


def test_lines_are_counted_by_paragraph() -> None:
    assert [lines_of(["", "x" * 52, "x" * 53], 52), lines_of([], 52), lines_of(["x"], 52)] == [4, 0, 1]


def test_texts_are_made_fit_for_a_cell() -> None:
    assert printable("a\r\nb\rc\x00\ud800\uffff") == "a\nb\nc\ufffd\ufffd\ufffd"
    assert [fits_cell("x" * 32_767), fits_cell("x" * 32_768)] == [True, False]  # what Excel takes
    assert [fits_cell("😀" * (CELL_LIMIT // 2)), fits_cell("😀" * (CELL_LIMIT // 2 + 1))] == [True, False]
    assert cut_to_cell("x" * CELL_LIMIT) == "x" * CELL_LIMIT
    cut = cut_to_cell("x" * 40_000)
    mark = " […] (cut: 40,000 characters in all)"
    assert cut == "x" * (CELL_LIMIT - len(mark)) + mark
    assert [shorten("a  b\nc", 5), shorten("abcdef", 6), shorten("abcdefg", 6), shorten("abcd efg", 6)] == [
        "a b c", "abcdef", "abcde…", "abcd…"
    ]  # fmt: skip
    assert [join_chunks(()), join_chunks(("a",)), join_chunks(("a", "b"))] == ["", "a", "[1] a\n\n[2] b"]


@pytest.mark.parametrize(
    ("changes", "path", "is_journal_kept", "warnings"),
    [
        (
            {"usage": Usage(failures={"timeout": 1, "over_limit": 2})},
            "r.xlsx",
            True,
            ["Some cases were not judged. Run the same command again to judge them."],
        ),
        (
            {"usage": Usage(failures={"refused": 1, "unparseable": 1})},
            "r.xlsx",
            True,
            [
                "Some cases were not judged. Add --retry-errors to the same command to retry refused, blocked or "
                "unreadable replies."
            ],
        ),
        ({}, "r.xlsx", False, []),
        ({"partial": "interrupted by the user"}, "r.xlsx", False, ["PARTIAL: interrupted by the user"]),
        (
            {"usage": Usage(failures={"refused": 1, "timeout": 1})},
            "r (1).xlsx",
            True,
            [
                "Some cases were not judged. Run the same command again to judge them; add --retry-errors to retry "
                "refused, blocked or unreadable replies.",
                "r.xlsx is open in another program; the report was saved next to it.",
            ],
        ),
        ({"is_proxy": True}, "r.xlsx", True, []),
    ],
)
def test_what_the_user_must_know_of_the_outputs(
    changes: dict[str, Any], path: str, is_journal_kept: bool, warnings: list[str]
) -> None:
    facts = facts_of("A", 1, **changes)
    summary = summary_of(run_of(0.5), facts)
    outcome = RunOutcome(summary, find(summary), facts, [Path(path), Path("r.json")])
    assert list(outcome.warnings(Path("r.xlsx"), is_journal_kept=is_journal_kept)) == warnings


def test_a_partial_run_changes_no_thresholds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.ini"
    path.write_text("[thresholds]\n")
    facts = facts_of("A", 1, partial="interrupted by the user", has_labels=True)
    assert list(People(None, path).calibrate(None, facts)) == []
    assert path.read_text() == "[thresholds]\n"
    assert capsys.readouterr().err == (
        f"rag-eval: {path}: not changed, since the run is partial; run the same command again to complete it\n"
    )
    assert list(People(None, None).calibrate(None, facts)) == []


@pytest.mark.parametrize(
    ("decision", "numbers", "judge", "header"),
    [
        ("A is better.", "0.9 vs 0.8.", "By m & n.", "&L&B&13A is better.&B\n&9 0.9 vs 0.8.\n&8By m && n."),
        ("1 is better.", "Lead", "", "&L&B&13 1 is better.&B\n&9Lead\n&8"),
        # Of 237 characters, 120 are kept free after the decision, and up to 60 after the numbers.
        ("d" * 200, "n" * 13, "j" * 20, f"&L&B&13{'d' * 116}…&B\n&9{'n' * 13}\n&8{'j' * 20}"),
        ("d", "n" * 300, "j" * 20, f"&L&B&13d&B\n&9{'n' * 215}…\n&8{'j' * 20}"),
        ("d", "n" * 300, "j" * 90, f"&L&B&13d&B\n&9{'n' * 175}…\n&8{'j' * 59}…"),
        ("d", f"one; {'two ' * 60}; three", "j" * 90, f"&L&B&13d&B\n&9one.\n&8{'j' * 90}"),
        ("d" * 150, "n" * 150, "j" * 90, f"&L&B&13{'d' * 116}…&B\n&9{'n' * 59}…\n&8{'j' * 59}…"),
    ],
)
def test_the_head_of_a_printed_page_has_room_for_each_line(
    decision: str, numbers: str, judge: str, header: str
) -> None:
    told = _page_header(facts_of("A", 1), RunVerdict(decision, numbers, (judge,)))
    assert (told, len(told) <= 255) == (header, True)
