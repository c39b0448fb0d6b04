"""The sheet with one row per query."""

import csv
import io
from dataclasses import replace
from pathlib import Path

from conftest import Run
from openpyxl import load_workbook
from report_cases import facts_of, plain_result, write_output

from rag_eval.report.workbook import ExcelReport


def test_one_row_per_query_says_where_the_bots_differ(tmp_path: Path) -> None:
    facts = facts_of("AB", 3)
    results = [
        replace(plain_result(2, "A", 0.9, response="Yes."), rqs=0.75),
        replace(plain_result(2, "B", 0.2, response="No."), rqs=0.25),
        replace(plain_result(3, "A"), rqs=0.5),
        replace(plain_result(3, "B"), rqs=None),
        replace(plain_result(4, "B"), rqs=0.5),
    ]
    report = ExcelReport(tmp_path / "r.xlsx", facts, {"side_by_side"})
    sheet = load_workbook(write_output(report, results, facts))["Side by Side"]
    assert list(sheet.values) == [
        ("Row", "Query", "Ground Truth", "Bots differ", "A RQS", "A Failure Mode", "A Response",
         "B RQS", "B Failure Mode", "B Response"),
        (2, "Question 2?", "The answer.", 0.5, 0.75, "OK", "Yes.", 0.25,
         "Retrieval Failure | Hallucination | Low Quality", "No."),
        (3, "Question 3?", "The answer.", None, 0.5, "OK", "An answer.", None, "OK", "An answer."),
        (4, "Question 4?", "The answer.", None, None, None, None, 0.5, "OK", "An answer."),
    ]  # fmt: skip


def test_the_sheet_is_there_on_request(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("Query,Bot_A,Bot_B\nWhy?,Because.,So.\n")
    (tmp_path / "config.ini").write_text("[report]\nside_by_side = true\n")
    assert run_cli("in.csv", "--judge", "offline", "-o", "r.xlsx", "--csv", "tables").code == 0
    sheet = load_workbook(tmp_path / "r.xlsx")["Side by Side"]
    text = (tmp_path / "tables" / "side-by-side.csv").read_text(encoding="utf-8-sig")
    header, line = csv.reader(io.StringIO(text), quoting=csv.QUOTE_NONNUMERIC)
    assert [header, [value or None for value in line]] == [
        list(row) if row[0] == "Row" else [value or None for value in row] for row in sheet.values
    ]
