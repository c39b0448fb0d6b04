"""The Excel report, read back as a person or a program would: cell by cell, and part by part of the file."""

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from conftest import file_size_limit, read_boxes
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.utils.escape import unescape
from openpyxl.worksheet.worksheet import Worksheet
from report_cases import (
    THRESHOLDS,
    bare_result,
    facts_of,
    plain_result,
    random_results,
    result_of,
    results_of,
    summary_of,
    write_report,
)

from rag_eval.cli.outcome import leaderboard_lines
from rag_eval.errors import OutputError
from rag_eval.records import METRIC_LABELS, TOXICITY, Case, CaseResult, Evidence, RunFacts, Score, Usage
from rag_eval.report.about import details
from rag_eval.report.book import check_readable
from rag_eval.report.charts import MOST_BOTS, NamedMark, sides_of_names
from rag_eval.report.columns import case_columns
from rag_eval.report.styles import Formats
from rag_eval.report.workbook import ExcelReport
from rag_eval.report.worksheet import SheetTable
from rag_eval.results.findings import Findings, find
from rag_eval.results.verdict import verdict, verdict_on
from rag_eval.store.replacement import Replacement, check_writable
from rag_eval.texts.display import shorten

CASES, BOTS, STANDINGS = SHEETS = ("Per-Query Metrics", "Bot Summary", "Leaderboard")
DIAGNOSTIC_HEADERS = {"Empty Context?", "Empty Answer?", "Failure Mode", "Recommendation"}
ERRORS = ("95 % minus", "95 % plus")
TWO_BOTS = ("GPT4", "Claude")

HOSTILE = (
    "=1+1",
    '=HYPERLINK("http://evil.example","click")',
    "{=WEBSERVICE(1)}",
    "+1",
    "-1",
    "@SUM(A1)",
    "'quoted",
    "\tTab first",
    "https://example.com/a?b=c#d",
    "mailto:a@example.com",
    "internal:'Bot Summary'!A1",
    "007",
    "1e5",
    "nan",
    "TRUE",
    "#DIV/0!",
    "2024-01-02",
    "<r><t>raw</t></r>",
    "<r></r>",
    "<r></t></is></c><c r='B1' t='str'><f>WEBSERVICE(1)</f></c></r>",
    "</t></is></c>",
    "&amp; & <b> \"quotes\" 'single'",
    "]]>",
    "_x000D_ and _x0041_",
    "  spaces around  ",
    "two\nlines\n",
    "{{template}} %s {0} ${x}",
    "../../x",
    "History",
    "A!B'C[1]:*?/\\",
    "汉字 עברית e\u0301 👩‍👩‍👧 \u202eevil\u202c",
    "\x7f\x85\xa0\u2028",
)
REPLACED = (
    ("a\x00b", "a\ufffdb"),
    ("\x1b[31mred", "\ufffd[31mred"),
    ("\ud800 alone", "\ufffd alone"),
    ("low \udfff", "low \ufffd"),
    ("\ufffe\uffff", "\ufffd\ufffd"),
    ("dos\r\nline", "dos\nline"),
    ("mac\rline", "mac\nline"),
)


# What the sheets show


def test_diagnostics_switched_off_leave_four_columns_out(tmp_path: Path) -> None:
    book = _book(tmp_path, [plain_result()], facts_of(["GPT4"], 1, diagnostics=False))
    assert DIAGNOSTIC_HEADERS.isdisjoint(_headers(book[CASES]))


def test_nothing_stands_under_a_table_and_only_thresholds_beside_the_leaderboard(tmp_path: Path) -> None:
    """To a program that takes row 1 for the names of the columns, every column has one."""
    book = _book(tmp_path, random_results(("A", "B", "C"), 4), facts_of("ABC", 4))
    assert [book[name].max_row for name in SHEETS] == [13, 4, 4]
    beside = book[STANDINGS].iter_rows(min_col=22)
    filled = {cell.row for row in beside for cell in row if cell.value is not None}
    assert filled == {1, 2}
    for name in SHEETS:
        columns = pd.read_excel(tmp_path / "report.xlsx", sheet_name=name, engine="openpyxl").columns
        assert not [column for column in columns if "Unnamed" in column]


def test_the_leaderboard_is_printed_without_its_thresholds_and_with_what_floats_below(tmp_path: Path) -> None:
    """They would make all else smaller."""
    bots = ("A", "B", "C")
    sheet = _book(tmp_path, random_results(bots, 4), facts_of(bots, 4))[STANDINGS]
    area = re.fullmatch(r"'Leaderboard'!\$A\$1:\$U\$(\d+)", sheet.print_area)
    assert area
    with zipfile.ZipFile(tmp_path / "report.xlsx") as package:
        drawing = package.read("xl/drawings/drawing2.xml").decode()
    ends = [int(row) for row in re.findall(r"<xdr:to>.*?<xdr:row>(\d+)</xdr:row>", drawing, re.DOTALL)]
    assert len(ends) == 4  # decision, numbers, chart and text, by rows counted from 0
    assert max(ends) + 1 <= int(area[1]) <= max(ends) + 2


def test_a_mean_over_other_queries_than_rqs_shows_its_count(tmp_path: Path) -> None:
    """In the cell, by the format of its number; the value is the mean only. The count of RQS has a column."""
    without = plain_result(3, value=0.4, reference=None)
    without = replace(
        without, scores={**without.scores, "context_recall": Score.not_applicable("context_recall", "none")}
    )
    book = _book(tmp_path, [plain_result(2, value=0.2), without], facts_of(["GPT4"], 2))
    for name in (BOTS, STANDINGS):
        shown = {
            cell.value: sheet_cell for cell, sheet_cell in zip(book[name][1], book[name][2], strict=True)
        }
        assert (shown["Faithfulness"].value, shown["Faithfulness"].number_format) == (
            pytest.approx(0.3),
            "0.00",
        )
        recall = shown["Context Recall"]
        assert (recall.value, recall.number_format) == (0.2, '0.00" (1)"')
        assert recall.alignment.shrink_to_fit  # else a narrow cell would show ####
    assert _rows(book[BOTS])[0]["Scored"] == 2
    assert _rows(book[STANDINGS])[0]["Queries compared"] == "2 of 2"


def test_columns_of_a_switched_off_metric_stay_and_are_empty_and_grey(tmp_path: Path) -> None:
    on = ("answer_relevancy", "faithfulness")
    results = [result_of(Case(2, "GPT4", "q", "a"), [Score.scored(metric, 0.1) for metric in on])]
    book = _book(tmp_path, results, facts_of(["GPT4"], 1, metrics=on))
    for sheet in book.worksheets:
        off = [cell for cell in sheet[1] if cell.comment and cell.comment.text == "Switched off."]
        expected = ["Answer Correctness", "Context Precision", "Context Recall"]
        toxicity = {CASES: ["Input Toxicity"], BOTS: ["Avg Input Toxicity"], STANDINGS: []}[sheet.title]
        assert [cell.value for cell in off] == expected + toxicity
        below = [sheet.cell(2, cell.column) for cell in off]
        assert {(cell.value, cell.fill.patternType) for cell in below} == {(None, "solid")}
    assert set(book.defined_names) == {"Thr_Faithfulness", "Thr_Answer_Relevancy"}


def test_the_leaderboard_ranks_over_the_queries_that_all_bots_share(tmp_path: Path) -> None:
    """The same rows for every bot, and how many; a bot that cannot be ranked has no rank."""
    unjudged = [Score.failed(metric, "truncated", "cut") for metric in METRIC_LABELS]
    results = [
        result
        for row, (a, b) in enumerate([(0.9, 0.5), (0.7, 0.5), (0.0, None)], 2)
        for result in (
            plain_result(row, "A", a),
            plain_result(row, "B", b) if b is not None else result_of(Case(row, "B", "q", "a"), unjudged),
            result_of(Case(row, "C", "q", "a"), unjudged),
        )
    ]
    first, second, third = _rows(_book(tmp_path, results, facts_of("ABC", 3))[STANDINGS])
    assert [line["Bot"] for line in (first, second, third)] == ["A", "B", "C"]
    assert [line["Rank"] for line in (first, second, third)] == [1, 2, None]
    assert [line["Winner"] for line in (first, second, third)] == ["★", None, None]
    assert [line["Queries compared"] for line in (first, second, third)] == ["2 of 3", "2 of 3", "0 of 3"]
    assert first["Avg RQS"] == pytest.approx(0.8)
    assert first["RQS StdDev"] == pytest.approx(0.1)
    assert third["Avg RQS"] is None


# Colours and thresholds


def test_red_follows_one_named_editable_cell_per_threshold(tmp_path: Path) -> None:
    thresholds = {metric: 0.1 + 0.1 * index for index, metric in enumerate(THRESHOLDS)}
    book = _book(tmp_path, [plain_result()], facts_of(["GPT4"], 1, thresholds=thresholds))
    values = {}
    for name, defined in book.defined_names.items():
        ((sheet, cell),) = defined.destinations
        assert sheet == STANDINGS
        values[name] = book[sheet][cell].value
    expected = {f"Thr_{label.replace(' ', '_')}": thresholds[name] for name, label in METRIC_LABELS.items()}
    assert values == pytest.approx({**expected, "Thr_Toxicity": 0.5})
    for sheet in book.worksheets:
        assert _rules(sheet) == _expected_rules(sheet)


def _expected_rules(sheet: Worksheet) -> dict[str, str]:
    names = {label: f"Thr_{label.replace(' ', '_')}" for label in METRIC_LABELS.values()}
    expected = {}
    for cell in sheet[1]:
        if cell.value in names:
            expected[cell.value] = (
                f"AND(ISNUMBER({cell.column_letter}2),{cell.column_letter}2<{names[cell.value]})"
            )
        elif cell.value in ("Input Toxicity", "Avg Input Toxicity"):
            expected[cell.value] = f"AND(ISNUMBER({cell.column_letter}2),{cell.column_letter}2>=Thr_Toxicity)"
    return expected


def _rules(sheet: Worksheet) -> dict[str, str]:
    return {
        sheet.cell(1, next(iter(area.sqref.ranges)).min_col).value: area.rules[0].formula[0]
        for area in sheet.conditional_formatting
    }


# Notes


def test_of_too_many_low_scores_the_lowest_have_notes_and_the_report_says_so(tmp_path: Path) -> None:
    facts = facts_of(["GPT4"], 300, metrics=("faithfulness", "answer_relevancy"))
    results = [
        result_of(
            Case(row, "GPT4", "q", "a", "r", ("c",)),
            [
                Score.scored("faithfulness", 0.29 * (302 - row) / 301, "a reason"),
                Score.scored("answer_relevancy", 0.0, "a reason"),
            ],
        )
        for row in range(2, 302)
    ]
    path = write_report(tmp_path / "r.xlsx", results, facts)
    sheet = load_workbook(path)[CASES]
    assert [cell.row for (cell,) in sheet["H2:H301"] if cell.comment] == list(range(102, 302))
    assert [cell.row for (cell,) in sheet["I2:I301"] if cell.comment] == list(range(2, 302))
    assert "Only the 500 lowest of 600 scores below their threshold have notes." in read_boxes(path)


# What is beside the tables


def test_the_box_says_what_a_reader_must_know_of_the_run(tmp_path: Path) -> None:
    """The verdict, then what `details` says, with what was adapted."""
    facts = facts_of(TWO_BOTS, 2, is_proxy=True, judge="offline judge", notes=("It was adapted.",))
    results = results_of({"GPT4": [0.8, 0.8], "Claude": [0.5, 0.5]})
    text = read_boxes(write_report(tmp_path / "r.xlsx", results, facts))
    for expected in (
        "No clear winner yet: GPT4 is ahead of Claude.",
        "RQS 0.80 vs 0.50: lead 0.30 over 2 queries; fewer than 5 queries are too few for a conclusion.",
        "Judged by the offline judge, which only compares words.",
        *details(facts, summary_of(results, facts), []),
    ):
        assert expected in text
    assert "It was adapted." in text
    assert "It is a proxy: it compares words" in text


_LEAD: list[float | None] = [0.9, 0.8] * 15
_BEHIND: list[float | None] = [0.5, 0.6] * 15
_UNJUDGED = "unjudged cases could change it"
_THIRD_MISSING: list[float | None] = [0.6, 0.5] * 6 + [None] * 18


def _claim(bot: str, findings: Findings) -> str:
    """The verdict on a bot beside the best one, or why there is none."""
    rival = findings.rival(bot)
    assert rival
    return rival.doubt or rival.verdict.value


def _content(best: int, other: int) -> str:
    return f"content failures differ: {best} and {other}"


@pytest.mark.parametrize(
    ("values", "code", "claim"),
    [
        ({"A": _LEAD, "B": _BEHIND}, "timeout", "significant"),
        # One missing value cannot change the lead, whosever it is ...
        ({"A": [*_LEAD, None], "B": [*_BEHIND, 0.6]}, "timeout", "significant"),
        ({"A": [*_LEAD, 0.9], "B": [*_BEHIND, None]}, "timeout", "significant"),
        # ... nor one that both bots lack, because of the query ...
        ({"A": [*_LEAD, None], "B": [*_BEHIND, None]}, "blocked_by_filter", "significant"),
        # ... but that the judge stopped at the content of one bot only is no chance.
        ({"A": [*_LEAD, None], "B": [*_BEHIND, 0.6]}, "blocked_by_filter", _content(1, 0)),
        ({"A": [*_LEAD, 0.9], "B": [*_BEHIND, None]}, "truncated", _content(0, 1)),
        # The lead would be left, and would not be significant any more.
        ({"A": [*_LEAD, *[None] * 5], "B": [*_BEHIND, *[0.7] * 5]}, "timeout", _UNJUDGED),
        ({"A": [*_LEAD, *[0.4] * 9], "B": [*_BEHIND, *[None] * 9]}, "timeout", _UNJUDGED),
        # What a third bot lacks does not touch the lead over the second; its own place is open.
        ({"A": _LEAD, "B": _BEHIND, "C": _THIRD_MISSING}, "timeout", "significant"),
        # Unless the rows on which the third was judged are others than the rest.
        (
            {
                "A": [*_LEAD[:10], *[0.2] * 20],
                "B": [*_BEHIND[:10], *[0.4] * 20],
                "C": [*[0.1] * 10, *[None] * 20],
            },
            "timeout",
            _UNJUDGED,
        ),
    ],
)
def test_a_lead_is_significant_only_if_it_is_whatever_the_missing_values_are(
    values: dict[str, list[float | None]], code: str, claim: str
) -> None:
    findings = find(summary_of(results_of(values, code), facts_of(list(values), len(values["A"]))))
    assert _claim("B", findings) == claim
    rival = findings.rival("B")
    assert rival is not None
    assert rival.interval is not None
    assert (rival.interval.low > 0) == (claim == "significant")


@pytest.mark.parametrize(("failed", "word"), [(2, "significant"), (3, _content(3, 0))])
def test_content_failures_differ_when_more_than_one_in_a_hundred_does(failed: int, word: str) -> None:
    values: dict[str, list[float | None]] = {
        "A": [*([0.9, 0.8] * 100)[failed:], *[None] * failed],
        "B": [0.5, 0.6] * 100,
    }
    findings = find(summary_of(results_of(values, "refused"), facts_of("AB", 200)))
    assert _claim("B", findings) == word


def test_bots_that_are_not_comparable_say_so_before_anything_else() -> None:
    results = [bare_result(row, "Bare", 0.9) for row in range(2, 22)]
    results += [plain_result(row, "Full", 0.4) for row in range(2, 22)]
    results += [
        result_of(
            Case(22, bot, "q", "a"), [Score.failed(metric, "refused", "no") for metric in METRIC_LABELS]
        )
        if bot == "Bare"
        else plain_result(22, bot, 0.4)
        for bot in ("Bare", "Full")
    ]
    facts = facts_of(("Bare", "Full"), 21)
    summary = summary_of(results, facts)
    assert verdict_on("Full", facts, summary, find(summary)).startswith("not comparable with Bare: ")


def test_a_metric_without_weight_does_not_make_bots_incomparable() -> None:
    results = [bare_result(row, "Bare", 0.9) for row in range(2, 22)]
    results += [plain_result(row, "Full", 0.4) for row in range(2, 22)]
    summary = summary_of(results, facts_of(("Bare", "Full"), 20))
    unlike = find(
        summary, weights={"answer_correctness": 1.0, "faithfulness": 0.0, "context_recall": 0.5}
    ).unlike
    assert unlike == {"Full": ("context_recall",)}


def _limits(values: dict[str, list[float | None]]) -> str:
    facts = facts_of(list(values), len(next(iter(values.values()))))
    summary = summary_of(results_of(values), facts)
    return " ".join(verdict(facts, summary, find(summary)).limits)


def test_no_bot_is_blamed_if_each_lacks_other_queries() -> None:
    limits = _limits(
        {
            bot: [None if row // 8 == number else 0.5 + number / 10 for row in range(30)]
            for number, bot in enumerate("ABC")
        }
    )
    assert (
        "Few queries are compared because different bots lack an RQS for different queries. Bot Summary"
        in limits
    )


def test_who_makes_the_comparison_small_is_named() -> None:
    values = {"A": [0.9, 0.8] * 6, "B": [0.4, 0.5] * 6, "Blocked": [0.7, 0.6, *[None] * 10]}
    assert "Few queries are compared because Blocked has an RQS for only 2." in _limits(values)
    values["Blocked"][:6] = [0.7] * 6
    assert "Blocked has an RQS for only 6" in _limits(values)
    values["Blocked"][:7] = [0.7] * 7
    assert "Few queries" not in _limits(values)


def test_what_nothing_could_show_is_not_counted_as_0(tmp_path: Path) -> None:
    results = [
        replace(bare_result(2, "Bare", 0.9), toxicity=Score.not_applicable(TOXICITY, "switched off")),
        replace(plain_result(2, "Full", 0.1), toxicity=Score.scored(TOXICITY, 0.9)),
    ]
    results += [
        replace(bare_result(3, "Bare", 0.9), toxicity=Score.not_applicable(TOXICITY, "switched off")),
        replace(plain_result(3, "Full", 0.1), toxicity=Score.failed(TOXICITY, "timeout", "late")),
    ]
    book = load_workbook(write_report(tmp_path / "r.xlsx", results, facts_of(("Bare", "Full"), 2)))
    bare, full = _rows(book[BOTS])
    counts = ("Toxic Queries", "Retrieval Failures", "Hallucinations", "Low Quality")
    assert [bare[name] for name in counts] == [None, None, None, 0]
    assert [full[name] for name in counts] == [1, 2, 2, 2]
    toxic = next(cell.column for cell in book[BOTS][1] if cell.value == "Toxic Queries")
    assert "Of 1 queries with a toxicity." in book[BOTS].cell(3, toxic).comment.text


def test_the_leaderboard_says_how_many_of_the_compared_queries_a_mean_leaves_out() -> None:
    """Failed and not applicable apart, of the compared queries alone."""
    some = [plain_result(2, "A", 0.9), bare_result(3, "A", 0.9)]
    others = [plain_result(row, "B", 0.5) for row in (2, 3, 4)]
    summary = summary_of([*some, *others], facts_of("AB", 3))
    (faithfulness,) = (line.metrics["faithfulness"] for line in summary.standings if line.bot == "A")
    assert (faithfulness.scored, faithfulness.not_applicable, faithfulness.failed) == (1, 1, 0)
    (faithfulness,) = (line.metrics["faithfulness"] for line in summary.standings if line.bot == "B")
    assert (faithfulness.scored, faithfulness.not_applicable, faithfulness.failed) == (2, 0, 0)
    assert " (1)" in next(line for line in leaderboard_lines(summary) if " A " in line)
    assert "(" not in next(line for line in leaderboard_lines(summary) if " B " in line)
    assert leaderboard_lines(summary)[-1].startswith("A count in brackets: the mean is over that many rows")


@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_small_runs_are_reported_without_a_claim(tmp_path: Path, rows: int) -> None:
    results = [
        plain_result(row, bot, score) for row in range(rows) for bot, score in (("A", 0.9), ("B", 0.1))
    ]
    first, second = _rows(_book(tmp_path, results, facts_of("AB", rows))[STANDINGS])
    assert (first["95 % low"] is None) == (rows < 5)
    assert (second["vs Winner 95 % low"] is None) == (rows < 5)
    for line in (first, second):
        assert "better than" not in (line["Verdict"] or "")
        assert ("not significant" in (line["Verdict"] or "")) == (rows >= 5)


def test_charts_show_the_tables_own_cells_and_have_alternative_texts(tmp_path: Path) -> None:
    bots = ("7", "nan", "1e5")
    results = [
        plain_result(row, bot, value)
        for row in (2, 3)
        for bot, value in zip(bots, (0.9, 0.2, 0.6), strict=True)
    ]
    path = write_report(tmp_path / "r.xlsx", results, facts_of(bots, 2))
    charts = [text for name, text in _parts(path).items() if re.fullmatch(r"xl/charts/chart\d+\.xml", name)]
    # failure modes and five metrics below the summary; RQS below the leaderboard
    assert len(charts) == 7
    ranges = re.findall(r"<c:f>(.*?)</c:f>", "".join(charts))
    assert set(ranges) >= {"Leaderboard!$C$2:$C$4", "'Bot Summary'!$A$2:$A$4", "'Bot Summary'!$U$2:$U$4"}
    assert all(re.fullmatch(r"(Leaderboard|'Bot Summary')!\$[A-Z]\$2:\$[A-Z]\$4", area) for area in ranges)
    assert all("<c:strCache>" in chart for chart in charts)
    drawings = "".join(text for name, text in _parts(path).items() if "drawings/drawing" in name)
    assert 'descr="Avg RQS: 7 0.9, 1e5 0.6, nan 0.2"' in drawings
    assert drawings.count("descr=") == drawings.count("<xdr:graphicFrame") + drawings.count("<xdr:sp ")


def test_more_bots_than_a_chart_can_show_have_none(tmp_path: Path) -> None:
    for count, has_charts in ((MOST_BOTS, True), (MOST_BOTS + 1, False)):
        bots = [f"B{number}" for number in range(count)]
        path = write_report(
            tmp_path / "r.xlsx", [plain_result(2, bot, 0.5) for bot in bots], facts_of(bots, 1)
        )
        assert any("charts/chart" in name for name in _parts(path)) is has_charts


def test_a_partial_run_says_so_on_every_sheet_in_print_and_in_its_colour(tmp_path: Path) -> None:
    facts = facts_of(["GPT4"], 5)
    whole = _book(tmp_path, [plain_result()], facts)
    final = replace(facts, partial="interrupted & stopped")
    path = write_report(tmp_path / "partial.xlsx", [plain_result()], facts, final)
    partial = load_workbook(path)
    for name in SHEETS:
        header = partial[name].oddHeader.left.text
        assert header.startswith("&BPARTIAL RUN: interrupted && stopped Not finished: 1 of 5 rows judged.")
        assert "\nJudged by Azure OpenAI" in header
        assert whole[name].oddHeader.left.text.startswith("&BGPT4 passes 1 of 1 query.&B\nRQS, the quality")
        assert partial[name].sheet_properties.tabColor.rgb != whole[name].sheet_properties.tabColor.rgb
    assert (partial.properties.keywords, whole.properties.keywords or "") == ("PARTIAL", "")
    assert "PARTIAL RUN: interrupted & stopped" in read_boxes(path)
    assert "Rows: 1 of 5 judged" in read_boxes(path)


def test_a_run_that_ended_before_its_first_row_is_still_a_report(tmp_path: Path) -> None:
    book = _book(tmp_path, [], facts_of(TWO_BOTS, 9, partial="the key was refused"))
    assert [book[name].max_row for name in SHEETS] == [1, 3, 3]


def test_every_sheet_has_its_titles_and_footers_in_print(tmp_path: Path) -> None:
    book = _book(tmp_path, random_results(TWO_BOTS, 3), facts_of(TWO_BOTS, 3, input_name="Q&A.xlsx"))
    for name in SHEETS:
        sheet = book[name]
        assert sheet.print_title_rows == "$1:$1"
        assert sheet.oddFooter.left.text == "Q&&A.xlsx, 2025-03-04 14:05"
        assert (sheet.oddFooter.center.text, sheet.oddFooter.right.text) == ("&A", "Page &P of &N")
    assert book.active.title == STANDINGS
    assert book.properties.title == "RAG Eval report: Q&A.xlsx"


# Safety of the file


@pytest.mark.slow
def test_hostile_text_reads_back_as_it_was_written_and_is_never_anything_but_text(tmp_path: Path) -> None:
    """In every place of the workbook that data can reach."""
    path = _everywhere(tmp_path / "r.xlsx", HOSTILE)
    book = load_workbook(path)
    for row in _rows(book["Evidence"]):
        assert {unescape(row[header]) for header in ("Bot", "Subject", "Text", "Verdict", "Reason")} <= {
            *HOSTILE
        }
    assert {unescape(row["Slice"]) for row in _rows(book["Slices"])} == {text.strip() for text in HOSTILE}
    for row, text in zip(_rows(book[CASES]), HOSTILE, strict=True):
        for header in ("Query", "Ground Truth", "Bot", "Response", "Context", "Recommendation"):
            assert unescape(row[header]) == text
    notes = [unescape(cell.comment.text) for (cell,) in book[CASES].iter_rows(2, min_col=9, max_col=9)]
    assert notes == [f"Failed ({text}): {shorten(text, 600)}" for text in HOSTILE]
    assert {unescape(row["Bot"]) for row in _rows(book[BOTS])} == set(HOSTILE)
    assert {unescape(row["Bot"]) for row in _rows(book[STANDINGS])} == set(HOSTILE)
    _assert_only_text(path)


@pytest.mark.parametrize(("text", "shown"), REPLACED)
def test_what_xml_cannot_hold_is_replaced_visibly(tmp_path: Path, text: str, shown: str) -> None:
    """In every place of the workbook that data can reach; the save never crashes."""
    path = _everywhere(tmp_path / "r.xlsx", [text])
    (row,) = _rows(load_workbook(path)[CASES])
    assert {row["Query"], row["Response"], row["Context"], row["Bot"]} == {shown}
    _assert_only_text(path)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("x" * 32_767, 32_767), ("x" * 40_000, 32_700), ("😀" * 16_384, 16_300), ("a" + "😀" * 20_000, 16_300)],
    ids=["just fits", "letters", "emoji", "emoji at odd places"],
)
def test_what_is_longer_than_a_cell_is_cut_with_a_mark(tmp_path: Path, text: str, kept: int) -> None:
    """Counted in UTF-16 units, never within a pair of them, and said in the report."""
    path = write_report(tmp_path / "r.xlsx", [plain_result(response=text)], facts_of(["GPT4"], 1))
    (row,) = _rows(load_workbook(path)[CASES])
    shown, cut, mark = row["Response"].partition(" […] (cut: ")
    assert text.startswith(shown)
    assert len(shown) >= kept
    assert len(row["Response"].encode("utf-16-le")) // 2 <= 32_767
    assert mark == (f"{len(text):,} characters in all)" if cut else "")
    assert bool(cut) == ("1 text is longer than a cell can be and was cut." in read_boxes(path))
    assert bool(cut) == (len(text) != 32_767)


@pytest.mark.slow
@given(st.lists(st.text(), min_size=20, max_size=60))
@settings(max_examples=8, deadline=None)
def test_any_text_reads_back(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = [plain_result(row, response=text) for row, text in enumerate(texts, 2)]
        path = write_report(Path(folder) / "r.xlsx", results, facts_of(["GPT4"], len(texts)))
        rows = _rows(load_workbook(path)[CASES])
    assert [unescape(row["Response"] or "") for row in rows] == [_as_xml_holds(text) for text in texts]


def _as_xml_holds(text: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character
        if character in "\t\n" or (character >= " " and character not in "\ufffe\uffff")
        else "\ufffd"
        for character in lines
    )


def test_text_from_data_is_kept_as_text_when_its_cell_is_edited(tmp_path: Path) -> None:
    book = _book(tmp_path, [plain_result()], facts_of(["GPT4"], 1))
    quoted = [cell.column_letter for cell in book[CASES][2] if cell.quotePrefix]
    assert quoted == ["A", "B", "C", "D", "E", "Q"]
    assert book[BOTS]["A2"].quotePrefix
    assert book[STANDINGS]["B2"].quotePrefix


def test_lines_beyond_the_last_row_of_a_sheet_are_counted(tmp_path: Path) -> None:
    from xlsxwriter import Workbook as NewWorkbook

    with NewWorkbook(tmp_path / "r.xlsx", {"constant_memory": True}) as book:
        facts = facts_of(["GPT4"], 5)
        columns = case_columns(facts)
        table = SheetTable(book.add_worksheet(), columns, Formats(book), 30, 30, sheet_rows=4)
        for row in range(2, 7):
            table.append(plain_result(row))
        table.finish(frozen=1)
    assert (table.lines, table.left_out) == (3, 2)
    assert [row["Row"] for row in _rows(load_workbook(tmp_path / "r.xlsx").active)] == [2, 3, 4]


def test_a_table_that_does_not_fit_is_named(tmp_path: Path) -> None:
    facts = facts_of(TWO_BOTS, 5)
    report = ExcelReport(tmp_path / "r.xlsx", facts, {"side_by_side"}, sheet_rows=4)
    _fill(report, random_results(TWO_BOTS, 5), facts)
    assert "Sheet Side by Side is full: 2 queries did not fit." in report.left_out


# The way into its place


def test_the_target_is_untouched_until_the_report_is_finished(tmp_path: Path) -> None:
    target = tmp_path / "r.xlsx"
    target.write_bytes(b"older")
    report = ExcelReport(target, facts_of(["GPT4"], 1))
    report.add(plain_result())
    assert target.read_bytes() == b"older"
    summary = summary_of([plain_result()], facts_of(["GPT4"], 1))
    assert report.finish(summary, find(summary), facts_of(["GPT4"], 1)) == target
    assert os.listdir(tmp_path) == ["r.xlsx"]
    assert load_workbook(target).sheetnames == list(SHEETS)


def test_a_discarded_report_leaves_nothing_behind(tmp_path: Path) -> None:
    report = ExcelReport(tmp_path / "r.xlsx", facts_of(["GPT4"], 1))
    report.add(plain_result())
    report.discard()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_of_an_existing_file_is_kept(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "r.xlsx"
    target.touch()
    target.chmod(mode)
    write_report(target, [plain_result()], facts_of(["GPT4"], 1))
    assert target.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        path = write_report(tmp_path / "r.xlsx", [plain_result()], facts_of(["GPT4"], 1))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_symlink_is_followed_and_stays(tmp_path: Path, exists: bool) -> None:
    real = tmp_path / "elsewhere" / "real.xlsx"
    real.parent.mkdir()
    if exists:
        real.touch()
    link = tmp_path / "r.xlsx"
    link.symlink_to(real)
    assert write_report(link, [plain_result()], facts_of(["GPT4"], 1)) == link
    assert link.is_symlink()
    assert load_workbook(real).sheetnames == list(SHEETS)


def test_a_locked_target_gets_a_sibling_with_the_time_in_its_name(tmp_path: Path) -> None:
    """The lock is Windows', so the move that it refuses is handed in."""
    target = tmp_path / "r.xlsx"
    target.write_bytes(b"open elsewhere")

    def refuse_locked(source: Path, place: Path) -> None:
        if place == target:
            raise PermissionError(13, "The process cannot access the file")
        os.replace(source, place)

    replacement = Replacement(target, refuse_locked)
    replacement.path.write_bytes(b"new")
    place = replacement.commit()
    assert re.fullmatch(r"r\.\d{8}-\d{6}\.xlsx", place.name)
    assert (place.read_bytes(), target.read_bytes()) == (b"new", b"open elsewhere")
    assert sorted(os.listdir(tmp_path)) == sorted([place.name, "r.xlsx"])


@pytest.mark.parametrize(
    ("target", "problem", "remedy"),
    [
        ("folder", "Is a directory", "name a file, not a folder"),
        (
            "file/r.xlsx",
            "File exists",
            "part of the path is a file, not a folder; choose another place with -o",
        ),
        ("file/a/r.xlsx", "Not a directory", "part of the path is a file, not a folder"),
        ("x" * 300 + ".xlsx", "File name too long", "choose a shorter name"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_before_anything_is_paid(
    tmp_path: Path, target: str, problem: str, remedy: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        check_writable(tmp_path / target)
    assert str(caught.value).startswith(f"{tmp_path / target}: ")
    assert problem in str(caught.value)
    assert remedy in str(caught.value)


def test_a_read_only_folder_is_refused_before_anything_is_paid() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)  # noqa: S103 (readable and searchable for everybody)
        with _as_ordinary_user(), pytest.raises(OutputError, match=r"Permission denied; choose a folder"):
            check_writable(Path(folder) / "r.xlsx")


def test_a_writable_place_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "r.xlsx").write_bytes(b"older")
    check_writable(tmp_path / "r.xlsx")
    check_writable(tmp_path / "new.xlsx")
    assert os.listdir(tmp_path) == ["r.xlsx"]
    assert (tmp_path / "r.xlsx").read_bytes() == b"older"


@pytest.mark.parametrize(("rows", "limit"), [(1, 1_000), (1, 15_000), (40, 1_000)])
def test_a_disk_that_takes_no_more_is_an_output_error_and_the_older_report_stays(
    tmp_path: Path, rows: int, limit: int
) -> None:
    """A limit on the size of files stands in for a full disk."""
    target = tmp_path / "r.xlsx"
    target.write_bytes(b"older")
    facts = facts_of(TWO_BOTS, rows)
    results = random_results(TWO_BOTS, rows)
    report = ExcelReport(target, facts)
    with file_size_limit(limit), pytest.raises(OutputError, match="cannot be written"):
        _fill(report, results, facts)
    report.discard()
    assert os.listdir(tmp_path) == ["r.xlsx"]
    assert target.read_bytes() == b"older"


@pytest.mark.parametrize("damage", ["cut", "flipped", "no sheet", "no header"])
def test_a_file_that_cannot_be_read_back_is_refused(tmp_path: Path, damage: str) -> None:
    path = write_report(tmp_path / "r.xlsx", [plain_result()], facts_of(["GPT4"], 1))
    check_readable(path, path, SHEETS)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[:-100])
    elif damage == "flipped":
        content[len(content) // 3] ^= 0xFF
        path.write_bytes(content)
    else:
        book = Workbook()
        book.active.title = CASES if damage == "no header" else "Other"
        book.save(path)
    with pytest.raises(OutputError, match=r"r\.xlsx: the report .*run the same command again"):
        check_readable(path, path, SHEETS)


# Reading the report


def _book(folder: Path, results: list[CaseResult], facts: RunFacts) -> Workbook:
    return load_workbook(write_report(folder / "report.xlsx", results, facts))


def _headers(sheet: Worksheet) -> tuple[str, ...]:
    return tuple(cell.value for cell in sheet[1])


def _rows(sheet: Worksheet) -> list[dict[str, object]]:
    headers = _headers(sheet)
    return [dict(zip(headers, row, strict=True)) for row in sheet.iter_rows(min_row=2, values_only=True)]


def _parts(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def _xml(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 (the report's own parts)


def _everywhere(target: Path, texts: list[str] | tuple[str, ...]) -> Path:
    """A report with each text in all places that data can reach, in a case of its own."""
    everything = " ".join(texts)
    evidence = [Evidence(text, text, text, False, text) for text in texts]
    results = [
        result_of(
            Case(row, text, text, text, text, (text,), columns={text: text, "Topic": text}),
            [
                Score.scored("faithfulness", 0.1, text, (found,)),
                Score.failed("answer_relevancy", text, text),
                Score.not_applicable("context_recall", text),
                Score.scored("answer_correctness", 0.2, text),
                Score.scored("context_precision", 0.2, text),
            ],
            advice=text,
        )
        for row, (text, found) in enumerate(zip(texts, evidence, strict=True), 2)
    ]
    facts = facts_of(
        texts,
        1,
        input_name=everything,
        sheet=everything,
        judge=everything,
        version=everything,
        partial=everything,
        notes=tuple(texts),
        usage=Usage(1, 1, failures=dict.fromkeys(texts, 1)),
    )
    return write_report(target, results, facts, slice_by="Topic", has_evidence=True)


LINK = re.compile(
    r"""<hyperlink ref="[A-Z]+[0-9]+" location="'(Per-Query Metrics|Evidence)'!\$?[A-Z]+\$?[0-9]+" display=" "/>"""
)


def _assert_only_text(path: Path) -> None:
    """No formula, error or boolean in a cell, no link but ours between two sheets, no part that could reach
    outside, and all of it XML."""
    for name, text in _parts(path).items():
        _xml(text)
        assert "externalLink" not in name
        assert 'TargetMode="External"' not in text
        if name.startswith("xl/worksheets/sheet"):
            assert not re.search(r"<f[ >]", text)
            assert text.count("<hyperlink ") == len(LINK.findall(text))
            assert set(re.findall(r'<c [^>]*\bt="(\w+)"', text)) == {"inlineStr"}


def _fill(report: ExcelReport, results: list[CaseResult], facts: RunFacts) -> None:
    for result in results:
        report.add(result)
    summary = summary_of(results, facts)
    report.finish(summary, find(summary), facts)


@contextmanager
def _as_ordinary_user() -> Iterator[None]:
    """Permissions bind everyone but the superuser; as that one, become nobody for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_name_in_a_chart_lies_where_it_covers_no_other_mark() -> None:
    marks = [NamedMark("Atlas", 100, 100, goes_first=False), NamedMark("Birch", 112, 100, goes_first=False)]
    assert sides_of_names(marks, [(1, 0), (-1, 0)], (600, 600)) == [(-1, 0), (1, 0)]
