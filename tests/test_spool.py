"""More cases than a sheet can have: which are written, how they are marked, and what a baseline makes of them."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from openpyxl import load_workbook
from report_cases import facts_of, plain_result, summary_of, write_output

from rag_eval.cli.outcome import Ending
from rag_eval.records import CaseResult
from rag_eval.report.outputs import Outputs
from rag_eval.report.spool import CaseSpool, cut_note
from rag_eval.report.workbook import CASES, ExcelReport
from rag_eval.report.worksheet import SHEET_ROWS
from rag_eval.results.baseline import BaselineComparison, Direction, read_past_run
from rag_eval.results.summary import Summary
from rag_eval.results.tallies import Tallies


def results_of(rows: int, bots: str = "AB") -> list[CaseResult]:
    """The RQS falls with the row; that of each further bot is a little lower."""
    return [
        replace(plain_result(row, bot), rqs=1 - row / (rows + 10) - number / 1_000)
        for row in range(2, rows + 2)
        for number, bot in enumerate(bots)
    ]


def chosen(
    folder: Path, results: list[CaseResult], capacity: int, bots: str = "AB"
) -> list[tuple[int, str, str]]:
    spool = CaseSpool(str(folder), bots, capacity)
    for result in results:
        spool.add(result)
    found = [(result.case.row, result.case.bot, spool.reason) for result in spool.chosen()]
    spool.close()
    return found


def test_every_case_is_chosen_if_all_fit(tmp_path: Path) -> None:
    found = chosen(tmp_path, results_of(5), 10)
    assert found == [(row, bot, "") for row in range(2, 7) for bot in "AB"]


def test_half_is_random_queries_and_half_the_worst_of_each_bot(tmp_path: Path) -> None:
    found = chosen(tmp_path, results_of(100), 40)
    assert len(found) == 40
    assert found == sorted(found, key=lambda each: (each[0], each[1]))  # in the order of the input
    random_rows = {bot: {row for row, of, why in found if of == bot and why == "random"} for bot in "AB"}
    assert random_rows["A"] == random_rows["B"]
    assert len(random_rows["A"]) == 10
    for bot in "AB":
        worst = [row for row, of, why in found if of == bot and why == "worst"]
        left = [row for row in range(101, 1, -1) if row not in random_rows[bot]]
        assert sorted(worst, reverse=True) == left[:10]


def test_random_queries_are_drawn_from_all_whatever_their_score(tmp_path: Path) -> None:
    """A random case stays random even if it is among the worst: else the random ones would be the better ones."""
    (tmp_path / "other").mkdir()
    rising = [replace(each, rqs=1 - (each.rqs or 0)) for each in results_of(100)]
    rows = [
        {row for row, _, why in chosen(folder, results, 40) if why == "random"}
        for folder, results in ((tmp_path, results_of(100)), (tmp_path / "other", rising))
    ]
    assert rows[0] == rows[1]


def test_a_case_without_an_rqs_is_not_among_the_worst(tmp_path: Path) -> None:
    results = [replace(each, rqs=None) if each.case.row > 90 else each for each in results_of(100, "A")]
    worst = [row for row, _, why in chosen(tmp_path, results, 10, "A") if why == "worst"]
    assert len(worst) == 5
    assert max(worst) == 90


@pytest.mark.parametrize(("cases", "is_cut"), [(10, False), (11, True)])
def test_the_note_names_the_numbers(cases: int, is_cut: bool) -> None:
    note = cut_note(cases, 10)
    assert bool(note) is is_cut
    if is_cut:
        assert note.startswith("Sheet Per-Query Metrics has at most 10 of 11 cases")


def cut_report(path: Path, results: list[CaseResult], rows: int) -> Path:
    facts = facts_of("AB", rows)
    return write_output(ExcelReport(path, facts, sheet_rows=rows + 1), results, facts)


def test_a_cut_sheet_says_why_each_case_is_there_and_no_mean_changes(tmp_path: Path) -> None:
    results = results_of(60)
    book = load_workbook(cut_report(tmp_path / "cut.xlsx", results, 60))
    whole = load_workbook(
        write_output(ExcelReport(tmp_path / "all.xlsx", facts_of("AB", 60)), results, facts_of("AB", 60))
    )
    header, *lines = book[CASES].values
    assert len(lines) == 60
    reasons = [line[header.index("Selection")] for line in lines]
    assert (reasons.count("random"), reasons.count("worst")) == (30, 30)
    assert "Selection" not in next(whole[CASES].values)
    for sheet in book.sheetnames[1:]:
        assert list(book[sheet].values) == list(whole[sheet].values)


def test_two_runs_of_equal_quality_show_no_change_since_a_cut_sheet(tmp_path: Path) -> None:
    """Compared with the whole sheet, the second run would look better: the worst lines do not stay the worst."""
    chance = random.Random(5)
    first, second = (
        [plain_result(row, bot, chance.random()) for row in range(2, 402) for bot in "AB"] for _ in range(2)
    )
    path = cut_report(tmp_path / "cut.xlsx", first, 400)
    past = read_past_run(path)
    assert (len(past.values), past.is_cut) == (200, True)
    comparison = BaselineComparison(past, facts_of("AB", 400))
    for result in second:
        comparison.add(result)
    means = {change.bot: change for change in comparison.changes() if change.name == "rqs"}
    assert {bot: (change.queries, change.direction) for bot, change in means.items()} == {
        "A": (100, Direction.UNDECIDED),
        "B": (100, Direction.UNDECIDED),
    }
    assert (
        "The baseline's sheet does not have all its cases: only its 200 random ones are compared."
        in comparison.differences()
    )


def test_an_abandoned_report_leaves_no_spooled_case_behind(tmp_path: Path) -> None:
    facts = facts_of("AB", 60)
    report = ExcelReport(tmp_path / "r.xlsx", facts, sheet_rows=10)
    report.add(plain_result(2, "A"))
    report.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("cases", "is_told"), [(SHEET_ROWS - 1, False), (SHEET_ROWS, True)])
def test_the_run_notes_a_cut_sheet_for_terminal_sheet_and_json(cases: int, is_told: bool) -> None:
    facts = facts_of("A", cases, notes=("Something else.",))

    class OfManyCases(Tallies):
        def summary(self) -> Summary:
            summary = summary_of([plain_result(2, "A")], facts)
            return replace(summary, bots=tuple(replace(bot, total_queries=cases) for bot in summary.bots))

    ending = Ending.of(Outputs([]), OfManyCases(facts), lambda _: facts)
    assert ending.facts.notes[-1] == "Something else."
    assert ("(column Selection)" in ending.facts.notes[0]) is is_told
