"""More cases than a sheet can have: which are written, how they are marked, and what a baseline makes of them."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from openpyxl import load_workbook
from report_cases import facts_of, plain_result, write_output

from rag_eval.cli.outcome import RunOutcome
from rag_eval.errors import InputError
from rag_eval.records import CaseResult
from rag_eval.report.json_file import JsonReport
from rag_eval.report.outputs import Outputs
from rag_eval.report.tables import CASES
from rag_eval.report.workbook import CaseSpool, ExcelReport
from rag_eval.results.baseline import BaselineComparison, read_past_run
from rag_eval.results.paired import Direction
from rag_eval.results.row_choice import ScoredCases
from rag_eval.results.tallies import Tallies


def results_of(rows: int, bots: str = "AB") -> list[CaseResult]:
    """The RQS falls with the row; that of each further bot is a little lower."""
    return [
        replace(plain_result(row, bot), rqs=1 - row / (rows + 10) - number / 1_000)
        for row in range(2, rows + 2)
        for number, bot in enumerate(bots)
    ]


def chosen(results: list[CaseResult], capacity: int, bots: str = "AB") -> list[tuple[int, str, str]]:
    spool = CaseSpool(bots, capacity)
    for result in results:
        spool.add(result)
    found = [(result.case.row, result.case.bot, spool.reason) for result in spool.chosen()]
    spool.close()
    return found


def test_every_case_is_chosen_if_all_fit() -> None:
    found = chosen(results_of(5), 10)
    assert found == [(row, bot, "") for row in range(2, 7) for bot in "AB"]


def test_half_of_the_cases_are_the_worst_of_each_bot_and_half_are_random() -> None:
    found = chosen(results_of(100), 40)
    assert len(found) == 40
    assert found == sorted(found, key=lambda each: (each[0], each[1]))  # in the order of the input
    rows = {why: {row for row, _, of in found if of == why} for why in ("random", "worst")}
    assert all(
        (row, bot, "random") in found for row in rows["random"] for bot in "AB"
    )  # every bot of a query
    # Both bots are worst on the same last rows. A worst row that is drawn as well counts as a random one.
    assert rows["worst"] == set(range(min(rows["worst"]), 102)) - rows["random"]
    assert 0 <= len(rows["random"]) - 10 <= len(set(range(92, 102)) & rows["random"])


def test_a_sheet_that_cannot_have_all_has_what_a_person_can_read() -> None:
    """10,000 of the worst and 10,000 random ones, and all cases of a row or none."""
    rows, scores = np.repeat(np.arange(50_000), 2), np.random.default_rng(1).random(100_000)
    spool, cases = CaseSpool("AB", 90_000), ScoredCases(rows, np.tile([0, 1], 50_000), scores)
    reasons = cases.fitting(spool.most)
    assert 2 * (len(reasons) - reasons.count("")) == spool.most == 20_000
    assert 10_000 <= 2 * reasons.count("random") < 13_000
    spool.close()


def test_each_bot_brings_its_own_worst_query() -> None:
    """A is worst on the last rows, B on the first."""
    results = [
        replace(each, rqs=1 - (each.rqs or 0)) if each.case.bot == "B" else each for each in results_of(300)
    ]
    found = {row for row, *_ in chosen(results, 60)}
    assert {*range(2, 9), *range(295, 302)} <= found


def test_sheet_and_page_choose_by_the_same_rule() -> None:
    rows, bots = np.repeat(np.arange(50), 2), np.tile([0, 1], 50)
    floats = np.random.default_rng(1).random(100)
    turns = [
        list(ScoredCases(rows, bots, scores).by_turns()) for scores in (floats, (floats * 10_000).astype(int))
    ]
    assert turns[0] == turns[1]
    assert [why for _, why in turns[0][:6]] == ["worst", "worst", "random"] * 2
    assert {row for row, why in turns[0] if why == "random"} == set(range(50))
    assert list(ScoredCases(rows[:0], bots[:0], floats[:0]).by_turns()) == []


def test_random_queries_are_drawn_from_all_whatever_their_score() -> None:
    """A random case stays random even if it is among the worst: else the random ones would be the better ones."""
    rising = [replace(each, rqs=1 - (each.rqs or 0)) for each in results_of(100)]
    rows = [
        {row for row, _, why in chosen(results, 40) if why == "random"}
        for results in (results_of(100), rising)
    ]
    fewer, more = sorted(rows, key=len)
    assert fewer <= more  # the same order; how many fit depends on how many of them are among the worst
    assert len(more - fewer) <= 2


def test_a_case_without_an_rqs_is_not_among_the_worst() -> None:
    results = [replace(each, rqs=None) if each.case.row > 90 else each for each in results_of(100, "A")]
    worst = [row for row, _, why in chosen(results, 10, "A") if why == "worst"]
    assert len(worst) >= 4
    assert max(worst) == 90


@pytest.mark.parametrize(("cases", "is_cut"), [(10, False), (11, True)])
def test_the_note_names_the_numbers(cases: int, is_cut: bool) -> None:
    spool = CaseSpool("A", 10)
    for result in results_of(cases, "A"):
        spool.add(result)
    assert bool(spool.cut_note) is is_cut
    if is_cut:
        assert spool.cut_note.startswith("Sheet Per-Query Metrics has at most 10 of 11 cases")
    spool.close()


def cut_report(path: Path, results: list[CaseResult], rows: int) -> Path:
    facts = facts_of("AB", rows)
    return write_output(ExcelReport(path, facts, sheet_rows=rows + 1), results, facts)


@pytest.mark.slow
def test_a_cut_sheet_says_why_each_case_is_there_and_no_mean_changes(tmp_path: Path) -> None:
    results = results_of(60)
    book = load_workbook(cut_report(tmp_path / "cut.xlsx", results, 60))
    whole = load_workbook(
        write_output(ExcelReport(tmp_path / "all.xlsx", facts_of("AB", 60)), results, facts_of("AB", 60))
    )
    header, *lines = book[CASES.name].values
    assert len(lines) == 60
    reasons = [str(line[header.index("Selection")]) for line in lines]
    assert sorted({reason: reasons.count(reason) for reason in reasons}) == ["random", "worst"]
    assert reasons.count("random") > 20
    assert "Selection" not in next(whole[CASES.name].values)
    for sheet in book.sheetnames[1:]:
        assert list(book[sheet].values) == list(whole[sheet].values)


@pytest.mark.slow
def test_two_runs_of_equal_quality_show_no_change_since_a_cut_sheet(tmp_path: Path) -> None:
    """Compared with the whole sheet, the second run would look better: the worst lines do not stay the worst."""
    chance = random.Random(5)
    first, second = (
        [plain_result(row, bot, chance.random()) for row in range(2, 402) for bot in "AB"] for _ in range(2)
    )
    path = cut_report(tmp_path / "cut.xlsx", first, 400)
    past = read_past_run(path)
    assert past.is_cut
    random_ones = len(past.values)
    assert 200 <= random_ones < 280
    comparison = BaselineComparison(past, facts_of("AB", 400))
    for result in second:
        comparison.add(result)
    means = {change.bot: change for change in comparison.changes() if change.name == "rqs"}
    assert {bot: (change.queries, change.direction) for bot, change in means.items()} == {
        "A": (random_ones // 2, Direction.UNDECIDED),
        "B": (random_ones // 2, Direction.UNDECIDED),
    }
    assert comparison.differences() == (
        f"The baseline's sheet does not contain all its cases: only its {random_ones} random ones are compared.",
    )


@pytest.mark.slow
def test_a_repeated_query_is_not_compared_with_another_of_its_cases_in_a_cut_sheet(tmp_path: Path) -> None:
    """Each query comes twice: first with a good answer, then with a bad one. The same run again shows no change."""
    results = [
        plain_result(row, "A", 0.9 if row < 202 else 0.2, query=f"Question {row % 200}?")
        for row in range(2, 402)
    ] + [plain_result(row, "A", 0.5) for row in range(402, 602)]
    facts = facts_of("A", 600)
    path = write_output(ExcelReport(tmp_path / "cut.xlsx", facts, sheet_rows=301), results, facts)
    comparison = BaselineComparison(read_past_run(path), facts)
    for result in results:
        comparison.add(result)
    assert {change.direction for change in comparison.changes()} == {Direction.SAME}
    compared = {change.queries for change in comparison.changes()}
    (repeated,) = (each for each in comparison.differences() if "more than once" in each)
    assert 20 < max(compared) < 100
    assert re.fullmatch(r"Not compared, because their query occurs more than once: \d+ cases\.", repeated)


def test_an_abandoned_report_leaves_no_spooled_case_behind(tmp_path: Path) -> None:
    facts = facts_of("AB", 60)
    report = ExcelReport(tmp_path / "r.xlsx", facts, sheet_rows=10)
    report.add(plain_result(2, "A"))
    report.discard()
    assert list(tmp_path.iterdir()) == []


def test_the_run_tells_of_a_cut_sheet_on_terminal_sheet_and_in_json(tmp_path: Path) -> None:
    facts, results = facts_of("AB", 60), results_of(60)
    report = ExcelReport(tmp_path / "r.xlsx", facts, sheet_rows=61)
    outputs = Outputs([report, JsonReport(tmp_path / "r.json", facts, {})])
    tallies = Tallies(facts)
    for result in results:
        outputs.add(result)
        tallies.add(result)
    summary = tallies.summary()
    outcome = RunOutcome.written(outputs, summary, tallies.findings(summary), facts)
    (note,) = outcome.facts.left_out
    said: list[str] = []
    outcome.tell(lambda line, **_: said.append(line), None)
    assert note in said
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["end"]["left_out"] == [note]
    with ZipFile(tmp_path / "r.xlsx") as file:
        texts = "".join(file.read(name).decode() for name in file.namelist() if "drawing" in name)
    assert "60 of 120 cases" in texts


@pytest.mark.parametrize(
    ("megabytes", "problem"), [(600, "times its size"), (9_000, "more than the 8192 MB allowed")]
)
def test_a_baseline_may_unpack_to_more_than_an_input(tmp_path: Path, megabytes: int, problem: str) -> None:
    """A full sheet of short texts unpacks to 1.5 GB. Only the directory is read here, which refuses a small file."""
    with ZipFile(tmp_path / "r.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.infolist()[0].file_size = megabytes * 2**20
    with pytest.raises(InputError, match=problem):
        read_past_run(tmp_path / "r.xlsx")
