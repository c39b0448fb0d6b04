"""Spreadsheets to cases: every file is really written and really read."""

import csv
import re
import runpy
import shutil
import struct
import sys
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
import xlwt
from conftest import Run
from files import ods_row, open_document, write_table
from hypothesis import given
from hypothesis import strategies as st
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table as OdfTable
from odf.table import TableCell, TableRow
from odf.text import P
from test_review import in_office

from rag_eval.errors import ExitCode, InputError, TableError
from rag_eval.records import Case
from rag_eval.tables.cells import cell_text, column_letter
from rag_eval.tables.delimited import TextForm
from rag_eval.tables.table import Table, describe, read_table

HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]


def rewrite(path: Path, part: str, old: str, new: str) -> None:
    """Change the XML of one part of a workbook by hand."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old.encode() in parts[part]
    parts[part] = parts[part].replace(old.encode(), new.encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def problems(path: Path, **options: Any) -> list[str]:
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    assert caught.value.exit_code == ExitCode.USAGE
    assert all("\n" not in problem for problem in caught.value.problems)
    return list(caught.value.problems)


def assert_each_matches(texts: Sequence[str], patterns: Sequence[str]) -> None:
    assert len(texts) == len(patterns), texts
    for text, pattern in zip(texts, patterns, strict=True):
        assert re.search(pattern, text), text


def cases(table: Table) -> list[Case]:
    return [case for row in table.rows for case in row.cases]


def roles(table: Table) -> dict[str, str]:
    return {use.letter: f"{use.role} {use.bot}" if use.bot else use.role for use in table.columns}


# Columns


def test_one_row_becomes_one_case_a_bot_from_left_to_right(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "answers.xlsx",
        HEADER,
        ["q", "gt", "a", "b", "c1 || c2"],
        ["r", None, None, " \u00a0", ""],
    )
    table = read_table(path)
    assert cases(table) == [
        Case(2, "A", "q", "a", "gt", ("c1", "c2")),
        Case(2, "B", "q", "b", "gt", ("c1", "c2")),
        Case(3, "A", "r", "", None, ()),
        Case(3, "B", "r", "", None, ()),
    ]
    assert (table.sheet, table.bots, table.chunks, table.warnings) == ("Sheet", ("A", "B"), 2, ())


def test_what_cannot_be_seen_is_blank(tmp_path: Path) -> None:
    """Zero-width spaces, joiners and byte order marks, as copied from web pages: no answer and nothing retrieved."""
    unseen = ["\u200b", "\ufeff \u00a0", "\u200c\u200d", "\u2060\u200e"]
    path = write_table(
        tmp_path / "answers.xlsx",
        HEADER,
        ["q", *unseen],
        unseen,
        ["r\u200b", "\u200bgt", "\u2067a", "b", "c"],
    )
    table = read_table(path)
    assert cases(table) == [
        Case(2, "A", "q", "", None, ()),
        Case(2, "B", "q", "", None, ()),
        Case(4, "A", "r\u200b", "\u2067a", "\u200bgt", ("c",)),
        Case(4, "B", "r\u200b", "b", "\u200bgt", ("c",)),
    ]
    assert table.blank_rows == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["Question", "GT", "BOT-A"], ["query", "reference", "response A"]),
        ([" in put ", "ground truth", "bot a"], ["query", "reference", "response a"]),
        (["PROMPT", "GroundTruth", "Bot_A"], ["query", "reference", "response A"]),
        (["Ｑｕｅｒｙ", "Ground\nTruth", "Bot\u00a0A"], ["query", "reference", "response A"]),
        (
            ["\ufeffQuery", "Ground\u200bTruth", "Bot\u00a0A\u200b", "\u200eBot_\u200bB", "Con\u00adtext"],
            ["query", "reference", "response A", "response B", "context"],
        ),
        (["Query", "Bot_\U0001f469\u200d\U0001f4bb"], ["query", "response \U0001f469\u200d\U0001f4bb"]),
        (["query", "Ground-Truth", "Bot__GPT 4"], ["query", "reference", "response GPT 4"]),
        (["Query", "Expected", "Bot_A", "Target_Date"], ["query", "reference", "response A", "not used"]),
        (["Query", "Target", "Bot_A", "Answer_Length"], ["query", "reference", "response A", "not used"]),
        (["Input_ID", "Query", "Bot_A", "Bottom_Line"], ["not used", "query", "response A", "not used"]),
        (
            ["Query", "Reference", "Bot_A", 2024, datetime(2024, 5, 1)],
            ["query", "reference", "response A", "not used", "not used"],
        ),
        (["Query", "Bot_Context", "Context"], ["query", "response Context", "context"]),
        (["Query", "Bot_日本", "Context_日本"], ["query", "response 日本", "context 日本"]),
    ],
)
def test_names_match_as_a_whole(tmp_path: Path, headers: list[object], expected: list[str]) -> None:
    """Whatever their case, width and separators, seen or not, and never by a part."""
    table = read_table(write_table(tmp_path / "answers.xlsx", headers, ["text"] * len(headers)))
    assert list(roles(table).values()) == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("Context", "context"),
        ("Context_GPT 4", "context GPT_4"),
        ("gpt-4 context", "context GPT_4"),
        ("GPT_4_Context", "context GPT_4"),
        ("Context_Bot_GPT_4", "context GPT_4"),
        ("Bot_GPT_4_Context", "context GPT_4"),
        ("Context_Other", "context of a bot without a column"),
        ("Contextual", "not used"),
    ],
)
def test_a_context_column_finds_its_bot(tmp_path: Path, context: str, expected: str) -> None:
    """An orphan is left out with a warning."""
    table = read_table(
        write_table(tmp_path / "answers.xlsx", ["Query", "Bot_GPT_4", context], ["q", "a", "c"])
    )
    assert roles(table)["C"] == expected
    assert cases(table)[0].chunks == (
        ("c",) if expected.startswith("context") and "without a column" not in expected else None
    )
    is_told = "without a column" in expected or expected == "not used"
    assert [context in warning for warning in table.warnings] == ([True] if is_told else [])


def test_a_blank_cell_of_a_bots_own_context_never_falls_back_to_the_shared_one(tmp_path: Path) -> None:
    rows = [["Query", "Bot_A", "Bot_B", "Context", "Context_B"], ["q", "a", "b", "shared", None]]
    assert [case.chunks for case in cases(read_table(write_table(tmp_path / "a.xlsx", *rows)))] == [
        ("shared",),
        (),
    ]


def test_bots_share_the_objects_of_what_they_share(tmp_path: Path) -> None:
    first, second = cases(
        read_table(write_table(tmp_path / "a.xlsx", HEADER, ["q", "gt", "a", "b", "c1 || c2"]))
    )
    assert first.chunks is second.chunks
    assert first.query is second.query
    assert first.reference is second.reference


@pytest.mark.parametrize(
    ("prefix", "headers", "bots"),
    [
        ("Bot_", ["Query", "bot a", "BOT-B"], ("a", "B")),
        ("Model", ["Query", "ModelA", "Model_B", "model c"], ("A", "B", "c")),
        ("My Answer_", ["Query", "my_answer_A", "MyAnswer B"], ("A", "B")),
        ("答え_", ["Query", "答え_A"], ("A",)),
        ("A.B(", ["Query", "a.b(x"], ("x",)),
    ],
)
def test_the_prefix_of_bot_columns_can_be_set(
    tmp_path: Path, prefix: str, headers: list[str], bots: tuple[str, ...]
) -> None:
    path = write_table(tmp_path / "answers.xlsx", headers, ["text"] * len(headers))
    assert read_table(path, prefix=prefix).bots == bots


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("Otázka, Bot_A", [r"No Query column found; name it Query, .* --map COLUMN=query \(found: 'Otázka' \(A\), '"]),
        ("Query, Poznámka", [r"No Bot_\* columns found, .*strip_prefix in \[bots\].*'Poznámka' \(B\)"]),
        ("user_input, query_text, Bot_A", [r"\(A\) and 'query_text' \(B\) could each be the query; .* \(query = user"]),
        ("Otázka, Poznámka", ["No Query column found", r"No Bot_\* columns found"]),
        ("Query, Bot_A, Question", [r"columns 'Query' \(A\) and 'Question' \(C\) could each be the query; rename"]),
        ("Query, Bot_A, GT, Expected", [r"'GT' \(C\) and 'Expected' \(D\) could each be the reference"]),
        ("Query, Bot_A, Context, CONTEXT", [r"\(C\) and 'CONTEXT' \(D\) could each be the context;"]),
        ("Query, Bot_A, Context_A, A_Context", [r"\(C\) and 'A_Context' \(D\) could each be the context of bot 'A'"]),
        ("Query, Bot_A 1, bot_a-1, Bot_Ａ_1", [r"and 'bot_a-1' \(C\) and 'Bot_Ａ_1' \(D\) .* response of bot 'A 1'"]),
        ("Query, Question, GT, Target", ["No column with responses", "be the query", "be the reference"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_header_is_said_at_once(
    tmp_path: Path, headers: str, expected: list[str]
) -> None:
    """With letters and names, and the remedy."""
    names = headers.split(", ")
    found = problems(write_table(tmp_path / "answers.xlsx", names, ["text"] * len(names)))
    assert all(problem.startswith("answers.xlsx, sheet 'Sheet': ") for problem in found)
    assert_each_matches(found, expected)


def test_of_several_names_of_the_query_the_first_is_used(tmp_path: Path) -> None:
    headers = ["question", "user_input", "query_text", "Bot_A"]
    assert read_table(write_table(tmp_path / "answers.xlsx", headers, ["text"] * 4)).bots == ("A",)


def test_without_any_header_no_row_is_said_to_look_like_one(tmp_path: Path) -> None:
    rows = [["Question number", "Answer"], ["Query", "What is a query?"], ["q", "Bot_A"]]
    found = problems(write_table(tmp_path / "answers.xlsx", *rows))
    assert not any("looks like" in problem for problem in found)


# Rows


def test_rows_keep_the_numbers_that_excel_shows(tmp_path: Path) -> None:
    """Blank rows are skipped and counted, text in unused columns makes no row, trailing rows do not count."""
    rows = [
        [],
        [],
        [*HEADER, "Notes"],
        [],
        ["q1"],
        [None, "", " ", "\u00a0"],
        [None] * 5 + ["a note"],
        ["q2"],
        [],
        [None] * 5 + ["x"],
    ]
    table = read_table(write_table(tmp_path / "answers.xlsx", *rows))
    assert [row.number for row in table.rows] == [5, 8]
    assert (table.blank_rows, table.cut_rows) == (3, 0)


def test_rows_beyond_the_limit_are_counted_and_not_checked(tmp_path: Path) -> None:
    rows = [HEADER, ["q1"], [], ["q2"], ["q3"], [], [None, "no query"]]
    table = read_table(write_table(tmp_path / "answers.xlsx", *rows), max_rows=2)
    assert [row.query for row in table.rows] == ["q1", "q2"]
    assert (table.blank_rows, table.cut_rows) == (1, 2)
    (warning,) = table.warnings
    assert (
        warning == "2 rows beyond the first 2 left out; raise max_rows in [evaluation] to have them judged."
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([[], [None, " "]], "is empty"),
        ([HEADER], r"no row below the header \(row 1\) contains a value"),
        ([[], HEADER, [], [" ", "\u00a0"]], r"no row below the header \(row 2\)"),
    ],
)
def test_a_sheet_without_rows_is_an_error(tmp_path: Path, rows: list[list[object]], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(write_table(tmp_path / "answers.xlsx", *rows))


def test_rows_without_a_query_are_all_named_up_to_twenty(tmp_path: Path) -> None:
    rows = [HEADER, ["q"], *[[None, None, "an answer"]] * 25]
    found = problems(write_table(tmp_path / "answers.xlsx", *rows))
    assert found[0].startswith(
        "answers.xlsx, sheet 'Sheet', row 3, column 'Query' (A): is blank, but the row is not;"
    )
    assert [problem.split(", ")[2] for problem in found[:20]] == [f"row {number}" for number in range(3, 23)]
    assert found[20:] == ["and 5 more like these"]


def test_all_rows_with_too_many_cells_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("Query,Bot_A\n" + 'q,"a"\n' * 3 + "q,a,b\n" * 1_005, encoding="utf-8")
    found = problems(path, max_rows=5_000)
    assert found[0].startswith("answers.csv, row 5 (line 5): 3 cells, but the header has 2;")
    assert (len(found), found[-1]) == (21, "and 985 more like these")


def test_problems_of_cells_are_reported_together_with_their_places(tmp_path: Path) -> None:
    """Error values and formulas that were never calculated are no blanks."""
    rows = [
        ["Query", "Bot_A", "Context", "Notes"],
        ["q", "#REF!", '["x", {"id": 1}]', "#N/A"],
        ["=A2", "a", "c", "=1/0"],
        ["q", '=CONCAT("a","b")', "c", ""],
    ]
    found = problems(write_table(tmp_path / "answers.xlsx", *rows))
    place = "answers.xlsx, sheet 'Sheet', row"
    assert found[0].startswith(f"{place} 2, column 'Bot_A' (B): the error value #REF!; ")
    assert found[1].startswith(
        f"{place} 2, column 'Context' (C): the JSON list contains an object without text"
    )
    assert found[2].startswith(
        f"{place} 3, column 'Query' (A): a formula without a stored result; open the file in Excel"
    )
    assert found[3].startswith(f"{place} 4, column 'Bot_A' (B): a formula without a stored result")
    assert len(found) == 4


def test_formulas_are_read_as_their_stored_results(tmp_path: Path) -> None:
    """A result that is an empty text is a blank cell, not a missing result."""
    path = write_table(tmp_path / "answers.xlsx", HEADER[:4], ["q", None, "=A2", "=B2"])
    part = "xl/worksheets/sheet1.xml"
    rewrite(path, part, '<c r="C2"><f>A2</f><v /></c>', '<c r="C2" t="str"><f>A2</f><v>stored</v></c>')
    rewrite(path, part, '<c r="D2"><f>B2</f><v /></c>', '<c r="D2" t="str"><f>B2</f><v></v></c>')
    assert [case.response for case in cases(read_table(path))] == ["stored", ""]


def test_a_formula_without_a_result_is_found_in_a_cell_without_a_place(tmp_path: Path) -> None:
    """The places of cells may be left out of the file; they then stand one after the other."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q", "=A2"])
    rewrite(path, "xl/worksheets/sheet1.xml", '<c r="B2"><f>', "<c><f>")
    assert_each_matches(problems(path), ["row 2, column 'Bot_A' \\(B\\): a formula without a stored result"])


def test_a_damaged_list_is_text_with_a_warning_where_no_cell_is_a_list(tmp_path: Path) -> None:
    rows = [
        ["Query", "Bot_A", "Context"],
        ["q", "a", '["cut o'],
        ["q", "a", "[1] note"],
        ["q", "a", "['x' and 'y']"],
    ]
    path = write_table(tmp_path / "answers.xlsx", *rows)
    table = read_table(path)
    assert [case.chunks for case in cases(table)] == [('["cut o',), ("[1] note",), ("['x' and 'y']",)]
    assert table.warnings == (
        "Column 'Context' (C): what looks like a list cannot be read as one and was taken as plain text "
        'in row 2, 4; write lists as JSON: ["chunk 1", "chunk 2"].',
    )
    assert read_table(path, delimiter="||").warnings == ()


def test_a_damaged_list_is_an_error_among_lists(tmp_path: Path) -> None:
    """A list that Excel cut is said to be cut."""
    cut = '["' + "x" * 32_765
    rows = [["Query", "Bot_A", "Context"], ["q", "a", '["x", "y"]'], ["q", "a", "['cut o"], ["q", "a", cut]]
    assert_each_matches(
        problems(write_table(tmp_path / "answers.xlsx", *rows)),
        [
            r"row 3, column 'Context' \(C\): begins like a list and cannot be read as one; write it as JSON",
            r"row 4, column 'Context' \(C\): begins like a list and ends at 32,767 characters, where Excel cuts a text",
        ],
    )


def test_a_text_that_excel_probably_cut_is_warned_about(tmp_path: Path) -> None:
    rows = [["Query", "Bot_A"], ["q", "x" * 32_767], ["q", "x" * 32_766]]
    (warning,) = read_table(write_table(tmp_path / "answers.xlsx", *rows)).warnings
    assert "'Bot_A' (B): exactly 32,767 characters in row 2, so Excel probably cut" in warning


def test_a_context_in_several_columns_tells_what_is_wrong_with_their_cells(tmp_path: Path) -> None:
    """Numbers are texts; short rows, and texts of white space, have fewer chunks."""
    header, text = ["Query", "Bot_A", "Context 1", "Context 2"], "The shop opens at 9 am."
    whole = "x" * 32_767
    rows = [["q", "a", whole, text], ["q2", "a", 3.5], ["q3", "a", text, " "], ["q4", "a"]]
    table = read_table(write_table(tmp_path / "answers.xlsx", header, *rows))
    assert [case.chunks for case in cases(table)] == [(whole, text), ("3.5",), (text,), ()]
    one, cut = table.warnings
    assert one == "Columns 'Context 1' (C) and 'Context 2' (D) were read as one context."
    assert "'Context 1' (C): exactly 32,767 characters in row 2, so Excel probably cut" in cut
    path = write_table(tmp_path / "error.xlsx", header, ["q", "a", text, text], ["q", "a", text, "#N/A"])
    (problem,) = problems(path)
    assert "row 3, column 'Context 1' (C): in 'Context 2' (D), the error value #N/A; correct" in problem


def test_the_delimiter_reaches_the_cells(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "answers.xlsx", ["Query", "Bot_A", "Context"], ["q", "a", "one\ntwo || three"]
    )
    assert cases(read_table(path, delimiter="\n"))[0].chunks == ("one", "two || three")


def test_merged_cells_of_the_table_are_warned_about(tmp_path: Path) -> None:
    """And those of a heading above it, or in unused columns, are not."""
    rows = [[], [*HEADER[:3], "Notes"], ["q1", "gt", "a"], ["q2", None, "b"]]
    path = write_table(tmp_path / "answers.xlsx", *rows)
    book = openpyxl.load_workbook(path)
    for area in ("A1:C1", "B3:B4", "D2:D4", "A9:C9"):
        book.active.merge_cells(area)
    book.save(path)
    (warning,) = read_table(path).warnings
    assert "(at B3)" in warning


def test_a_query_that_is_blank_because_it_is_merged_is_said_to_be(tmp_path: Path) -> None:
    """One query over the rows of several answers, as people lay out a table."""
    path = write_table(tmp_path / "answers.xlsx", HEADER, ["q1", "gt", "a"], [None, "gt", "b"])
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("A2:A3")
    book.save(path)
    assert_each_matches(problems(path), ["row 3, column 'Query' .* is blank", r"Merged cells .*\(at A2\)"])


@pytest.mark.parametrize(("area", "place"), [("A:B", "A1"), ("3:3", "A3"), ("B3:B3", "B3")])
def test_a_merged_area_may_be_a_whole_row_or_column(tmp_path: Path, area: str, place: str) -> None:
    """Such an area has no bounds in its other direction."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q1", "a"], ["q2", "b"])
    merged = f'</sheetData><mergeCells count="1"><mergeCell ref="{area}"/></mergeCells>'
    rewrite(path, "xl/worksheets/sheet1.xml", "</sheetData>", merged)
    (warning,) = read_table(path).warnings
    assert f"(at {place})" in warning


def test_hidden_rows_and_columns_are_read(tmp_path: Path) -> None:
    path = write_table(tmp_path / "answers.xlsx", HEADER[:3], ["q1", None, "a"], ["q2", None, "b"])
    book = openpyxl.load_workbook(path)
    book.active.row_dimensions[2].hidden = True
    book.active.column_dimensions["C"].hidden = True
    book.save(path)
    assert [case.response for case in cases(read_table(path))] == ["a", "b"]


# Texts and values

TEXTS = [
    "None", "N/A", "NA", "null", "nan", "NaN", "TRUE", "007", "1e5", "'quoted", "  inner  spaces  ", "=no formula",
    "line\nbreak", "e\u0301", "日本語", "😀 👩‍👩‍👧", "עברית", "x" * 32_767, "<b>&amp;</b>", "tab\there",
]  # fmt: skip


def test_text_stays_exactly_as_it_is_in_a_workbook(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "answers.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Query", "Bot_A"])
        for number, text in enumerate(TEXTS, 1):
            sheet.write_string(number, 0, "q")
            sheet.write_string(number, 1, text)
    assert [case.response for case in cases(read_table(tmp_path / "answers.xlsx"))] == TEXTS


def test_text_stays_exactly_as_it_is_in_a_csv_file(tmp_path: Path) -> None:
    """Beyond the length that Excel can hold, too."""
    texts = [*TEXTS, "y" * 300_000]
    limit = csv.field_size_limit()
    path = write_table(tmp_path / "answers.csv", ["Query", "Bot_A"], *(["q", text] for text in texts))
    assert [case.response for case in cases(read_table(path))] == texts
    assert csv.field_size_limit() == limit, (
        "the csv module's limit is the whole process's: it must be put back"
    )


STRINGS = [
    ("<t>one</t>", "one"),
    ('<t xml:space="preserve"> one </t>', " one "),
    ("<t/>", ""),
    ("", ""),
    ("<r><t>one </t></r><r><rPr><b/></rPr><t>bold</t></r>", "one bold"),
    ("<r><t>東京</t></r><rPh sb='0' eb='2'><t>トウキョウ</t></rPh><phoneticPr fontId='1'/>", "東京"),
    ("<t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh>", "東京"),
    # What Excel spells out, since XML cannot hold it, as copied from slides and PDFs.
    ("<t>a_x000D_\nb</t>", "a\r\nb"),
    ("<t>c1_x000D_\n_x000D_\nc2</t>", "c1\r\n\r\nc2"),
    ("<t>a_x000B_b</t>", "a\vb"),
    ("<t>a_x000b_b</t>", "a\vb"),
    ("<t>_x005F_x000D_</t>", "_x000D_"),
    ("<t>fax005F_us _x12_ _xyz1_</t>", "fax005F_us _x12_ _xyz1_"),
    ("<t>_xD83D_</t>", "_xD83D_"),
]


@pytest.mark.parametrize(("xml", "text"), STRINGS)
def test_a_text_is_decoded_without_formats_and_reading_aids(tmp_path: Path, xml: str, text: str) -> None:
    """Whether the text stands in its cell, as openpyxl writes it, or in the list of shared ones, as Excel does."""
    inline = write_table(tmp_path / "inline.xlsx", ["Query", "Bot_A"], ["q", "text of the cell"])
    rewrite(inline, "xl/worksheets/sheet1.xml", "<t>text of the cell</t>", xml)
    shared = tmp_path / "shared.xlsx"
    with xlsxwriter.Workbook(shared) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Query", "Bot_A"])
        sheet.write_row(1, 0, ["q", "text of the cell"])
    rewrite(shared, "xl/sharedStrings.xml", "<t>text of the cell</t>", xml)
    for path in (inline, shared):
        assert [case.response for case in cases(read_table(path))] == [text]


def test_lines_that_excel_spells_out_are_blank_between_chunks(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "answers.xlsx", ["Query", "Bot_A", "Context"], ["q", "a", "c1_x000D_\n_x000D_\nc2"]
    )
    assert cases(read_table(path))[0].chunks == ("c1", "c2")


def test_an_error_value_in_the_header_is_the_name_of_no_column(tmp_path: Path) -> None:
    path = write_table(tmp_path / "answers.xlsx", ["Query", "#REF!", "Bot_A", "#N/A"], ["q", "x", "a", "y"])
    table = read_table(path)
    assert [use.header for use in table.columns] == ["Query", "Bot_A"]
    assert cases(table)[0].response == "a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("  as it is ", "  as it is "),
        (True, "TRUE"),
        (False, "FALSE"),
        (42, "42"),
        (42.0, "42"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000"),
        (1234567890123456.0, "1234567890123456"),
        (1e21, "1e+21"),
        (float("nan"), ""),
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 13, 30), "2024-05-01 13:30:00"),
        (time(3, 4), "03:04:00"),
        (timedelta(hours=30, seconds=5), "30:00:05"),
        (timedelta(minutes=-90), "-1:30:00"),
        (["Straße", 1], '["Straße", 1]'),
        ([{"text": "a", "when": date(2024, 5, 1)}], '[{"text": "a", "when": "2024-05-01"}]'),
        (b"caf\xc3\xa9", "café"),
    ],
)
def test_values_have_one_text(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_values_of_a_workbook_are_read_as_their_text(tmp_path: Path) -> None:
    """As stored, not as shown, but for times without seconds."""
    values = [
        True,
        42.0,
        0.25,
        date(2024, 5, 1),
        datetime(2024, 5, 1, 13, 30),
        time(3, 4),
        time(0, 4),
        time(3, 4, 5),
        timedelta(hours=30),
    ]
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], *(["q", value] for value in values))
    assert [case.response for case in cases(read_table(path))] == [
        "TRUE", "42", "0.25", "2024-05-01", "2024-05-01 13:30:00", "03:04", "00:04", "03:04:05", "30:00:00",
    ]  # fmt: skip


@given(st.integers(0, 16_383))
def test_column_letters_are_those_of_excel(index: int) -> None:
    assert column_letter(index) == openpyxl.utils.get_column_letter(index + 1)


# Sheets


def workbook_of(path: Path, sheets: dict[str, str]) -> Path:
    """A workbook with the given sheets and states; each holds its own name as the answer."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, state in sheets.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = state
        sheet.append(["Query", "Bot_A"])
        sheet.append(["q", name])
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("sheets", "wanted", "chosen", "warnings"),
    [
        ({"one": "visible"}, None, "one", []),
        ({"one": "visible", "two": "visible"}, None, "one", ["Sheet 'one' was read.*not read: 'two'"]),
        (
            {"old": "hidden", "one": "visible", "x": "veryHidden"},
            None,
            "one",
            ["Hidden sheets were not read: 'old', 'x'"],
        ),
        ({"one": "visible", "two": "visible", "old": "hidden"}, "TWO", "two", []),
        ({"one": "visible", "old": "hidden"}, "old", "old", []),
    ],
)
def test_the_first_visible_sheet_is_read_unless_one_is_named(
    tmp_path: Path, sheets: dict[str, str], wanted: str | None, chosen: str, warnings: list[str]
) -> None:
    """What was not read is said."""
    table = read_table(workbook_of(tmp_path / "answers.xlsx", sheets), sheet=wanted)
    assert (table.sheet, cases(table)[0].response) == (chosen, chosen)
    assert_each_matches(table.warnings, warnings)


def test_an_unknown_sheet_is_an_error_that_lists_the_sheets(tmp_path: Path) -> None:
    path = workbook_of(tmp_path / "answers.xlsx", {"one": "visible", "old": "hidden"})
    assert problems(path, sheet="Q4") == ["answers.xlsx: no sheet 'Q4'; it has 'one', 'old'"]


def test_a_cover_sheet_leads_to_the_sheets_behind_it(tmp_path: Path) -> None:
    path = workbook_of(tmp_path / "answers.xlsx", {"Cover": "visible", "Q3": "visible"})
    book = openpyxl.load_workbook(path)
    book["Cover"]["A1"] = "Results"
    book.save(path)
    assert "not read: 'Q3' (see --sheet)" in problems(path)[-1]


# Workbooks that lie


def test_a_wrong_dimension_loses_no_row(tmp_path: Path) -> None:
    path = write_table(tmp_path / "answers.xlsx", HEADER[:3], ["q1", "", "a"], ["q2", "", "b"])
    rewrite(path, "xl/worksheets/sheet1.xml", '<dimension ref="A1:C3"', '<dimension ref="A1:A2"')
    assert [case.response for case in cases(read_table(path))] == ["a", "b"]


def test_a_stray_cell_in_the_last_corner_costs_nothing(tmp_path: Path) -> None:
    """A reader of the whole rectangle would need memory for 17 thousand million cells."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q", "a"])
    book = openpyxl.load_workbook(path)
    book.active["XFD1048576"] = "stray"
    book.save(path)
    table = read_table(path)
    assert (len(table.rows), table.blank_rows, table.cut_rows) == (1, 0, 0)


def test_a_workbook_that_unpacks_to_too_much_is_refused_unread(tmp_path: Path) -> None:
    """The directory alone decides; here it announces 600 MB."""
    with zipfile.ZipFile(tmp_path / "answers.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.infolist()[0].file_size = 600 * 2**20
    assert "would unpack to 600 MB, more than the 500 MB allowed" in problems(tmp_path / "answers.xlsx")[0]


@pytest.mark.slow
def test_a_zip_bomb_is_refused_unread(tmp_path: Path) -> None:
    """120 MB of nothing in some 100 KB."""
    with zipfile.ZipFile(tmp_path / "answers.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", bytes(120 * 2**20))
    assert "more than 200 times its size" in problems(tmp_path / "answers.xlsx")[0]


def test_a_small_workbook_may_be_as_repetitive_as_it_likes(tmp_path: Path) -> None:
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], *[["q", "x" * 32_000]] * 100)
    assert 200 * path.stat().st_size < 100 * 32_000, "not the file that this test is about"
    assert len(read_table(path).rows) == 100


OLE = bytes.fromhex("d0cf11e0a1b11ae1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"", "is an empty file.*export or download it again"),
        ("a.csv", b" \n ", "is an empty file"),
        (
            "a.xlsx",
            b"<html><table><tr><td>Query</td></tr></table>",
            "is an HTML or XML page, not an Excel workbook;",
        ),
        (
            "a.xls",
            b'\xef\xbb\xbf<?xml version="1.0"?><Workbook/>',
            "is an HTML or XML page, not an old Excel",
        ),
        ("a.csv", b"<!DOCTYPE html>", "is an HTML or XML page, not a text file"),
        ("a.xlsx", b"Query,Bot_A\nq,a\n", "is a text file, not an Excel workbook; rename it to .csv"),
        ("a.xls", b"Query\tBot_A\nq\ta\n", "is a text file, not an old Excel"),
        ("a.xlsx", OLE + bytes(512), "is an old Excel .*rename it to .xls"),
        (
            "a.xlsx",
            OLE + bytes(512) + "EncryptedPackage".encode("utf-16-le"),
            "password.*remove the password",
        ),
        ("a.xls", OLE + bytes(512), "is damaged or incomplete"),
        ("a.xlsx", b"PK\x03\x04 and then nothing", "is a damaged or incomplete file"),
        ("a.xlsx", b"PAR1", "is a Parquet file.*rename it to .parquet"),
        ("a.csv", b"a\0b", "is a file of an unknown kind, not a text file"),
        ("a.parquet", b"PAR1 and then nothing", "is damaged or incomplete"),
        (
            "a.docx",
            b"PK\x03\x04",
            r"cannot read files of type '.docx'; use one of .xlsx .xlsm .xls .ods .csv .tsv .parquet",
        ),
        ("a", b"Query", "cannot read files of type ''"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_one_clear_error(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    found = problems(tmp_path / name)
    assert found[0].startswith(f"{name}: ")
    assert_each_matches(found, [message])


def test_a_workbook_in_another_formats_clothes_is_recognised(tmp_path: Path) -> None:
    """Both are zip files."""
    write_table(tmp_path / "answers.xlsx", HEADER).rename(tmp_path / "answers.ods")
    assert problems(tmp_path / "answers.ods") == [
        "answers.ods: is an Excel workbook, not an OpenDocument file; rename it to .xlsx"
    ]


def test_what_openpyxl_would_lose_on_saving_is_no_concern_of_the_reader(tmp_path: Path) -> None:
    """Its warnings are switched off; here they would be errors."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q", "a"])
    extension = '<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}" /></extLst></worksheet>'
    rewrite(path, "xl/worksheets/sheet1.xml", "</worksheet>", extension)
    assert len(read_table(path).rows) == 1


@pytest.mark.parametrize(
    "missing", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels"]
)
def test_a_workbook_without_one_of_its_parts_is_damaged(tmp_path: Path, missing: str) -> None:
    """One line, whatever the library makes of it."""
    path = write_table(tmp_path / "answers.xlsx", HEADER, ["q"])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != missing}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert problems(path)[0].startswith("answers.xlsx: ")


def test_a_strict_workbook_is_told_from_one_without_sheets(tmp_path: Path) -> None:
    """Excel can save so, and nothing but the names in the file differ."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q", "a"])
    common, strict = "http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml"
    rewrite(path, "xl/workbook.xml", f"{common}/spreadsheetml/2006/main", f"{strict}/spreadsheetml/main")
    assert problems(path) == [
        "answers.xlsx: is saved as 'Strict Open XML Spreadsheet'; save it as 'Excel Workbook (.xlsx)'"
    ]


def test_a_workbook_whose_rows_are_out_of_order_is_damaged(tmp_path: Path) -> None:
    """No row is dropped for it, and no two rows have the same number."""
    path = write_table(tmp_path / "answers.xlsx", ["Query", "Bot_A"], ["q1", "a"], ["q2", "b"])
    rewrite(path, "xl/worksheets/sheet1.xml", '<row r="3"', '<row r="2"')
    assert_each_matches(problems(path), [r"^answers.xlsx: is damaged .*row 2 is below row 2\)"])


def test_a_truncated_workbook_is_damaged(tmp_path: Path) -> None:
    """Wherever it was cut."""
    path = write_table(tmp_path / "answers.xlsx", HEADER, ["q"])
    whole = path.read_bytes()
    for length in range(10, len(whole), 500):
        path.write_bytes(whole[:length])
        assert_each_matches(problems(path), ["^answers.xlsx: is a damaged or incomplete file"])


@pytest.mark.parametrize("name", ["nowhere.xlsx", "folder.xlsx"])
def test_what_cannot_be_opened_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.xlsx").mkdir()
    assert str(tmp_path / name) in problems(tmp_path / name)[0]


# Other formats


@pytest.mark.parametrize(
    ("separator", "named"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")]
)
@pytest.mark.parametrize(
    ("encoding", "called"), [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16")]
)
def test_separator_and_encoding_of_a_csv_file_are_found_and_stated(
    tmp_path: Path, separator: str, named: str, encoding: str, called: str
) -> None:
    rows = (["Query", "Bot_A, the first", "Context"], ["Größe?", "a,b;c|d\te", "one\n\ntwo"])
    table = read_table(write_table(tmp_path / "answers.csv", *rows, encoding=encoding, separator=separator))
    assert cases(table) == [Case(2, "A, the first", "Größe?", "a,b;c|d\te", None, ("one", "two"))]
    assert f"answers.csv (separated by {named}, {called}): 1 row" in describe(table)[0]


def test_a_tsv_file_is_separated_by_tabs(tmp_path: Path) -> None:
    (tmp_path / "answers.tsv").write_text("Query\tBot_A, or B, or C\nq\ta\n", encoding="utf-8")
    assert read_table(tmp_path / "answers.tsv").bots == ("A, or B, or C",)


def test_a_csv_file_of_an_older_windows_is_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_bytes("Query;Bot_A\nGröße?;“5 €”\n".encode("cp1252"))
    table = read_table(tmp_path / "answers.csv")
    assert cases(table)[0].response == "“5 €”"
    assert_each_matches(table.warnings, ["Windows-1252; check accented letters"])


def test_a_csv_file_in_an_unknown_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_bytes(b"Query;Bot_A\nq;\x81\xff\n")
    assert "neither UTF-8 nor Windows-1252; save it as 'CSV UTF-8'" in problems(tmp_path / "answers.csv")[0]


@pytest.mark.parametrize(
    ("encoding", "separator", "said"),
    [
        ("latin-1", "^", "separated by '^', iso8859-1"),
        ("utf-16-le", ";", "separated by semicolons, utf-16-le"),
        ("utf-16-be", "|", "separated by vertical bars, utf-16-be"),
        ("UTF8", "tab", "separated by tabs, UTF-8"),
        ("utf-8-sig", r"\t", "separated by tabs, UTF-8"),
        ("utf_16", "\t", "separated by tabs, UTF-16"),
        ("cp1252", ",", "separated by commas, Windows-1252"),
        ("shift_jis", "TAB", "separated by tabs, shift_jis"),
    ],
)
@pytest.mark.parametrize("name", ["answers.csv", "answers.tsv"])
def test_encoding_and_separator_of_a_text_file_can_be_given(
    tmp_path: Path, name: str, encoding: str, separator: str, said: str
) -> None:
    """What is given counts, whatever would have been found out, and is said."""
    form = TextForm.parse(encoding, separator)
    word = "日本" if encoding == "shift_jis" else "Größe"
    rows = (["Query", "Bot_A, B; C"], [word, "one, two; three"])
    path = write_table(tmp_path / name, *rows, encoding=encoding, separator=form.separator)
    table = read_table(path, form=form)
    assert [(case.bot, case.query, case.response) for case in cases(table)] == [
        ("A, B; C", word, "one, two; three")
    ]
    assert f"{name} ({said}): 1 row" in describe(table)[0]
    assert table.warnings == ()


@pytest.mark.parametrize(
    ("first", "separator"),
    [("sep=;", ";"), ('"sep=;"', ";"), ("SEP=|\r", "|"), ("sep=\t", "\t"), ("sep=,", ",")],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_first_line_for_excel_names_the_separator(
    tmp_path: Path, first: str, separator: str, encoding: str
) -> None:
    """It is no row, so the header is row 1, as Excel shows it; lines are those of the file."""
    rows = [["Query", "Bot_A; B, C"], ["q", "a"], ["r", "b"]]
    lines = [first, *(separator.join(f'"{cell}"' for cell in row) for row in rows)]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(lines), encoding=encoding)
    assert [(case.row, case.bot, case.response) for case in cases(read_table(path))] == [
        (2, "A; B, C", "a"),
        (3, "A; B, C", "b"),
    ]
    path.write_text("\n".join([*lines, f"s{separator}b{separator}c"]), encoding=encoding)
    assert_each_matches(problems(path), [r"row 4 \(line 5\): 3 cells"])


def test_a_given_separator_or_encoding_replaces_what_would_be_found_out(tmp_path: Path) -> None:
    """Both change how the very same file is read."""
    (tmp_path / "a.csv").write_bytes("Query;Bot_A,x\nGröße;a,b\n".encode("latin-1"))
    by_itself = read_table(tmp_path / "a.csv", form=TextForm.parse("cp850", ";"))
    assert (by_itself.bots, cases(by_itself)[0].query) == (("A,x",), "Gr÷▀e")
    assert (
        "in one cell, separated by semicolons"
        in problems(tmp_path / "a.csv", form=TextForm.parse(None, "|"))[0]
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffQuery,Bot_A\nq,a\n".encode(encoding))
    assert read_table(tmp_path / "a.csv", form=TextForm.parse(encoding, None)).bots == ("A",)


@pytest.mark.parametrize(
    ("encoding", "separator", "message"),
    [
        ("utf-9", None, r"^--encoding: 'utf-9' is not a known encoding; expected one such as utf-8"),
        ("base64", None, "'base64' is not a known encoding"),
        ("undefined", None, "'undefined' is not a known encoding"),
        ("", None, "'' is not a known encoding"),
        ("utf-8\0", None, "is not a known encoding"),
        (None, ";;", "^--sep: ';;' cannot separate cells; expected one character"),
        (None, "", "'' cannot"),
        (None, '"', "cannot"),
        (None, "\n", "cannot"),
        (None, "\0", "cannot"),
        (None, r"\n", "cannot"),
    ],
)
def test_what_cannot_be_an_encoding_or_separator_is_an_error(
    encoding: str | None, separator: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        TextForm.parse(encoding, separator)
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        (b"Query,Bot_A\nq,\xe9\n", "utf-8", 2),
        ("Query,Bot_A\nq,a\nq,ü\nq,b\n".encode(), "ascii", 3),
        (b"Query,Bot_A\n" + b"q,a\n" * 20_000 + b"q,\x81\n", "cp1252", 20_002),
        (b"Query,Bot_AB\n\xff\n", "utf-8", 2),
        (b"Query,Bot_A\nq,cut \xc3", "utf-8", 2),
        ("Query,Bot_A\nq,a\n".encode("utf-16-le") + b"\x00\xd8q\x00", "utf-16-le", 3),
        (b"Query,Bot_A\nq,a\n", "utf-16", 1),
    ],
)
def test_a_file_that_is_not_written_in_the_given_encoding(
    tmp_path: Path, content: bytes, encoding: str, line: int
) -> None:
    """An error with the line, never a guess."""
    (tmp_path / "a.csv").write_bytes(content)
    (problem,) = problems(tmp_path / "a.csv", form=TextForm.parse(encoding, ","))
    assert re.match(rf"a\.csv, line {line}: is not written in {encoding}; .*--encoding", problem)


def test_a_workbook_knows_its_own_encoding_and_separator(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.xlsx", ["Query", "Bot_A"], ["q", "a"])
    assert read_table(path, form=TextForm.parse("cp1252", ";")).warnings == (
        "--encoding has no effect on .xlsx files.",
        "--sep has no effect on .xlsx files.",
    )


def test_the_options_of_text_files(run_cli: Run, tmp_path: Path) -> None:
    """From the command line; what is wrong with them is found before anything is looked at."""
    (tmp_path / "in.csv").write_bytes("Query^Bot_A\nGröße?^a, b\n".encode("cp850"))
    options = ("--judge", "offline", "--encoding", "cp850", "--sep", "^")
    ended = run_cli("in.csv", "-o", "r.xlsx", *options)
    assert ended.code == 0
    assert "in.csv (separated by '^', cp850): 1 row, 1 bot (A)" in ended.out
    (tmp_path / "config.ini").write_text("nonsense")
    for options, said in ((("--sep", ";;"), "--sep: ';;'"), (("--encoding", "x"), "--encoding: 'x'")):
        refused = run_cli("nowhere.csv", *options)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
        assert refused.err.count("rag-eval:") == 1


def test_dropped_items_of_lists_are_counted_and_placed(tmp_path: Path) -> None:
    """Those of a cell that bots share count once; the first row and column are named."""
    header = ["Query", "Bot_A", "Bot_B", "Context", "Context_B"]
    path = write_table(
        tmp_path / "a.xlsx",
        header,
        ["q", "a", "b", '["one"]', "two ||  || three"],
        ["q", "a", "b", '["one", null, " "]', '["", "two"]'],
        ["q", "a", "b", "[null]", ""],
    )
    table = read_table(path)
    assert (table.dropped_items, table.chunks) == (4, 5)
    assert_each_matches(
        table.warnings,
        [
            r"^4 items of JSON lists .* dropped, being null or blank; the first in row 3, column 'Context' \(D\)\.$"
        ],
    )


def test_rows_of_a_csv_file_are_records(tmp_path: Path) -> None:
    """Data starts at row 2, a cell of several lines is one row, blank lines count."""
    (tmp_path / "answers.csv").write_text('Query,Bot_A\n"q\n1",a\n\nq2,b,,\nq3\n', encoding="utf-8")
    table = read_table(tmp_path / "answers.csv")
    assert [(case.row, case.query, case.response) for case in cases(table)] == [
        (2, "q\n1", "a"),
        (4, "q2", "b"),
        (5, "q3", ""),
    ]
    assert table.blank_rows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'Query,Bot_A\n"a\nb",c\nq,well, no\n',
            r"row 3 \(line 4\): 3 cells, but the header has 2; .*double quotes",
        ),
        (
            'Query,Bot_A\nq,"never closed\nq2,b\n',
            r"row 2 \(line 3\): a text that begins with a double quote has no end; check the quotes",
        ),
        ('Query,Bot_A\nq,"a" b\n', r"row 2 \(line 2\): ',' expected after '\"'; check the quotes"),
    ],
)
def test_a_torn_row_of_a_csv_file_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "answers.csv").write_text(text, encoding="utf-8")
    assert_each_matches(problems(tmp_path / "answers.csv"), [f"^answers.csv, {message}"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Query,Bot_A,Context\nq,one\nline,c\nr,b,c\n",
            [r"Fewer cells than the header has: row 2, 3\. .*a line break split"],
        ),
        ("Query,Bot_A,Context\nq,a,\n\nr,,\n,,\n", []),
        ("Query,Bot_A,,\nq,a\n", []),
    ],
)
def test_a_row_that_ends_before_the_header_does_is_warned_about(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    """It may be half of one that was torn at a line end; blank cells and blank rows are nothing unusual."""
    (tmp_path / "answers.csv").write_text(text, encoding="utf-8")
    assert_each_matches(read_table(tmp_path / "answers.csv").warnings, expected)


def test_formats_without_sheets_refuse_a_sheet_name(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("Query,Bot_A\nq,a\n", encoding="utf-8")
    assert "have no sheets; leave out --sheet 'Q3'" in problems(tmp_path / "answers.csv", sheet="Q3")[0]


def test_an_old_excel_file_is_read(tmp_path: Path) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Q3")
    book.add_sheet("Hid").visibility = 1
    rows = [["Query", "Bot_A", "Context"], ["first", "yes", 42], [], ["007", "NA", 0.1]]
    for number, row in enumerate(rows, 1):
        for place, cell in enumerate(row, 1):
            sheet.write(number, place, cell)
    sheet.merge(4, 5, 2, 2)
    book.save(str(tmp_path / "answers.xls"))
    table = read_table(tmp_path / "answers.xls")
    assert cases(table) == [
        Case(3, "A", "first", "yes", None, ("42",)),
        Case(5, "A", "007", "NA", None, ("0.1",)),
    ]
    assert [use.letter for use in table.columns] == ["B", "C", "D"]
    assert (table.sheet, table.blank_rows) == ("Q3", 1)
    assert_each_matches(table.warnings, ["Hidden sheets were not read: 'Hid'", r"Merged cells.*\(at C5\)"])


def test_an_open_document_file_is_read(tmp_path: Path) -> None:
    blank = '<table:table-row table:number-rows-repeated="3"><table:table-cell/></table:table-row>'
    path = open_document(
        tmp_path / "answers.ods", blank + ods_row("Query", "Bot_A") + blank + ods_row("007", "日本")
    )
    table = read_table(path)
    assert cases(table) == [Case(8, "A", "007", "日本")]
    assert (table.sheet, table.blank_rows) == ("Q3", 3)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("PT12H30M00S", "12:30"),  # may be a time of day
        ("PT12H30M05S", "12:30:05"),
        ("PT30H00M05.25S", "30:00:05"),
        ("PT9600H00M00S", "9600:00:00"),
        ("-PT03H00M00S", "-3:00:00"),
    ],
)
def test_durations_of_an_open_document_file_are_those_of_a_workbook(
    tmp_path: Path, written: str, text: str
) -> None:
    cell = f'<table:table-cell office:value-type="time" office:time-value="{written}"/></table:table-row>'
    rows = (
        ods_row("Query", "Bot_A") + ods_row("q").replace("</table:table-row>", cell) + ods_row("q", "PT30H")
    )
    path = open_document(tmp_path / "answers.ods", rows)
    assert [case.response for case in cases(read_table(path))] == [text, "PT30H"]


def test_an_open_document_file_with_a_stray_cell_far_away_is_an_error(tmp_path: Path) -> None:
    """The reader would hold the whole rectangle, so it is counted first."""
    far = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row>'
    corner = '<table:table-row><table:table-cell table:number-columns-repeated="16383"/>' + ods_row(
        "x"
    ).removeprefix("<table:table-row>")
    path = open_document(tmp_path / "answers.ods", ods_row("Query", "Bot_A") + far + corner)
    assert "its content takes more than 100 MB of memory" in problems(path)[0]


BAD = {
    "#DIV/0!": "the error value #DIV/0!; correct the formula or clear the cell",
    "": "a formula without a stored result; open the file in Excel and save it",
}


def test_errors_of_an_old_excel_file_are_those_of_a_workbook(tmp_path: Path) -> None:
    """As constants, as results of formulas, and with formulas that were never calculated."""
    book = xlwt.Workbook()
    sheet, other = book.add_sheet("Q3"), book.add_sheet("Other")
    for place, name in enumerate(("Query", "Bot_A", "Bot_B", "Note")):
        sheet.write(1, 1 + place, name)
        other.write(0, place, name)
    codes = (0x00, 0x07, 0x0F, 0x17, 0x1D, 0x24, 0x2A)
    for row, code in enumerate(codes, 2):
        sheet.write(row, 1, "q")
        sheet.row(row).set_cell_error(2, code)
        sheet.row(row).set_cell_error(4, code)
    sheet.write(9, 1, "q")
    sheet.write(9, 2, xlwt.Formula("1/0"))
    sheet.write(9, 3, xlwt.Formula('"a"&"b"'))
    sheet.row(12).set_cell_error(3, 0x07)
    other.write(1, 0, "q")
    other.write(1, 1, "a")
    book.save(str(tmp_path / "answers.xls"))
    shown = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")
    place = "answers.xls, sheet 'Q3', row"
    assert problems(tmp_path / "answers.xls") == [
        *(
            f"{place} {row}, column 'Bot_A' (C): the error value {text}; correct the formula or clear the cell"
            for row, text in enumerate(shown, 3)
        ),
        f"{place} 10, column 'Bot_A' (C): {BAD['']}",
        f"{place} 10, column 'Bot_B' (D): {BAD['']}",
        f"{place} 13, column 'Bot_B' (D): {BAD['#DIV/0!']}",
        f"{place} 13, column 'Query' (B): is blank, but the row is not; add the query or clear the row",
    ]
    assert [case.response for case in cases(read_table(tmp_path / "answers.xls", sheet="Other"))] == ["a", ""]


@pytest.mark.parametrize(
    ("result", "response"),
    [
        (b"\x02\x00\x07\x00\x00\x00\xff\xff", BAD["#DIV/0!"]),
        (b"\x00\x00\x00\x00\x00\x00\xff\xff", BAD[""]),
        (b"\x01\x00\x01\x00\x00\x00\xff\xff", "TRUE"),
        (struct.pack("<d", 42), "42"),
    ],
    ids=["error", "text that is not there", "flag", "number"],
)
def test_results_of_formulas_in_an_old_excel_file(tmp_path: Path, result: bytes, response: str) -> None:
    """Xlwt itself stores none, so one is put into its file."""
    book = xlwt.Workbook()
    book.owner = "Anna"
    sheet = book.add_sheet("Q3")
    for place, (name, cell) in enumerate({"Query": "q", "Bot_A": xlwt.Formula("A1"), "Bot_B": "b"}.items()):
        sheet.write(0, place, name)
        sheet.write(1, place, cell)
    path = tmp_path / "answers.xls"
    book.save(str(path))
    (case, _) = cases(read_table(path))
    assert case.response == ""  # the result that xlwt writes is an empty text, which others write as well
    path.write_bytes(path.read_bytes().replace(b"\x03\x00\x00\x00\x00\x00\xff\xff", result))
    if ";" in response:
        assert problems(path) == [f"answers.xls, sheet 'Q3', row 2, column 'Bot_A' (B): {response}"]
    else:
        assert cases(read_table(path))[0].response == response


OF_LIBREOFFICE = 'office:value-type="string" office:string-value="" calcext:value-type="error"'


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (f'table:formula="of:=1/0" {OF_LIBREOFFICE}><text:p>#DIV/0!</text:p>', BAD["#DIV/0!"]),
        (f"{OF_LIBREOFFICE}><text:p>Err:502</text:p>", BAD["#DIV/0!"].replace("#DIV/0!", "Err:502")),
        (f"{OF_LIBREOFFICE}>", "the error value; correct the formula or clear the cell"),
        (
            f'table:formula="of:=1/0" {OF_LIBREOFFICE}><office:annotation><text:p>Why?</text:p></office:annotation>'
            "<text:p>#DIV/0!</text:p>",
            BAD["#DIV/0!"],
        ),
        (
            'table:formula="of:=1/0" office:value-type="float" office:value="0"><text:p>#DIV/0!</text:p>',
            BAD["#DIV/0!"],
        ),
        ('table:formula="of:=[.A2]">', BAD[""]),
        ('table:formula="of:=[.A2]"><office:annotation><text:p>Why?</text:p></office:annotation>', BAD[""]),
        ('table:formula="of:=[.A2]"><text:p/>', ""),
        ('table:formula="of:=[.A2]" office:value-type="string"><text:p>an answer</text:p>', ""),
        ('office:value-type="string"><text:p>#DIV/0!</text:p>', ""),
    ],
)
def test_errors_of_an_open_document_file_are_those_of_a_workbook(
    tmp_path: Path, cell: str, problem: str
) -> None:
    """Repeated ones, those behind blank cells and rows, and those in columns without a use. A text is none."""
    bad = f'<table:table-cell table:number-columns-repeated="2" {cell}</table:table-cell>'
    query = '<table:table-cell office:value-type="string"><text:p>q</text:p></table:table-cell>'
    blank = '<table:table-row table:number-rows-repeated="3"><table:table-cell/></table:table-row>'
    aside = '<table:table-row><table:table-cell table:number-columns-repeated="6"/>'
    twice = '<table:table-row table:number-rows-repeated="2"><table:table-cell/>'
    rows = [blank, ods_row("", "Query", "Bot_A", "Bot_B"), ods_row("", "q", "a", "b"), blank]
    rows += [f"{aside}{bad}</table:table-row>", f"{twice}{query}{bad}</table:table-row>"]
    path = open_document(tmp_path / "answers.ods", "".join(rows))
    if not problem:
        assert [case.row for case in cases(read_table(path))] == [5, 5, 10, 10, 11, 11]
        return
    assert problems(path) == [
        f"answers.ods, sheet 'Q3', row {row}, column {name}: {problem}"
        for row in (10, 11)
        for name in ("'Bot_A' (C)", "'Bot_B' (D)")
    ]


def test_a_formula_that_odfpy_wrote_has_no_result(tmp_path: Path) -> None:
    document, sheet = OpenDocumentSpreadsheet(), OdfTable(name="Q3")
    for texts in (("Query", "Bot_A"), ("q", None)):
        row = TableRow()
        for text in texts:
            cell = TableCell(valuetype="string") if text else TableCell(formula="of:=[.A2]")
            if text:
                cell.addElement(P(text=text))
            row.addElement(cell)
        sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    document.save(str(tmp_path / "answers.ods"))
    assert problems(tmp_path / "answers.ods") == [
        f"answers.ods, sheet 'Q3', row 2, column 'Bot_A' (B): {BAD['']}"
    ]


@pytest.mark.slow
def test_broken_formulas_that_libreoffice_saved_are_found(tmp_path: Path) -> None:
    rows = [
        ["Query", "Bot_A", "Bot_B", "Context"],
        ["q", "=1/0", "=NA()", "c"],
        ["q", '="a"&"b"', '=IF(1,"","x")', "=NOSUCH(1)"],
        ["q", "=B2", '=INDIRECT("Nope!A1")', "c"],
    ]
    path = write_table(tmp_path / "answers.xlsx", *rows)
    for saved in (in_office(path, "xls"), in_office(path, "ods")):
        assert [re.sub(r".*(row.*) \(.*error value (.*);.*", r"\1 \2", each) for each in problems(saved)] == [
            "row 2, column 'Bot_A' #DIV/0!",
            "row 2, column 'Bot_B' #N/A",
            "row 3, column 'Context' #NAME?",
            "row 4, column 'Bot_A' #DIV/0!",
            "row 4, column 'Bot_B' #REF!",
        ]


def test_a_parquet_file_is_read(tmp_path: Path) -> None:
    """Lists are contexts as they are, and missing values are blank."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "Query": ["007", "q2", None],
        "Bot_A": ["NA", None, None],
        "score": [1.5, float("nan"), None],
        "Context": [["one", "two || 2"], [], None],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "answers.parquet")
    table = read_table(tmp_path / "answers.parquet")
    assert cases(table) == [
        Case(2, "A", "007", "NA", None, ("one", "two || 2")),
        Case(3, "A", "q2", "", None, ()),
    ]


def test_a_parquet_file_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "answers.parquet").write_bytes(b"PAR1" + struct.pack("<i", 0))
    assert problems(tmp_path / "answers.parquet") == [
        "answers.parquet: reading Parquet needs pyarrow; install it with pip install '.[parquet]' in RAG Eval's folder"
    ]


# Documents, human labels and kept columns


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("Gold_Docs", "gold documents"),
        ("gold doc ids", "gold documents"),
        ("GoldDocuments", "gold documents"),
        ("Gold", "not used"),
        ("Retrieved_Docs", "retrieved documents"),
        ("Retrieved Doc-IDs", "retrieved documents"),
        ("Retrieved_Docs_GPT-4", "retrieved documents GPT_4"),
        ("gpt 4 retrieved docs", "retrieved documents GPT_4"),
        ("Bot_GPT_4_Retrieved_Documents", "retrieved documents GPT_4"),
        ("Bot_Retrieved_Docs", "response Retrieved_Docs"),
        ("Retrieved_Docs_Other", "retrieved documents of a bot without a column"),
        ("Human_Faithfulness", "human label"),
        ("human answer-correctness", "human label"),
        ("Human_AnswerCorrectness_gpt 4", "human label GPT_4"),
        ("Human_Context_Recall_Bot_GPT_4", "human label GPT_4"),
        ("Human_on topic", "human label"),
        ("Human_On_Topic_GPT_4", "human label GPT_4"),
        ("Human_on_topic_too", "human label"),
        ("Human_Faithfulness_Other", "human label of a bot without a column"),
        ("Human_Faithfullness", "not used"),
        ("Humanity", "not used"),
    ],
)
def test_columns_of_documents_and_labels_are_known_by_name(tmp_path: Path, header: str, role: str) -> None:
    """Bound to bots like contexts; one that looks like them but fits nowhere is left out with a warning."""
    path = write_table(tmp_path / "a.xlsx", ["Query", "Bot_GPT_4", header], ["q", "a", "1"])
    table = read_table(path, criteria=["on-topic", "on-topic too"])
    assert roles(table)["C"] == role
    is_doubtful = "without a column" in role or header == "Human_Faithfullness"
    assert [f"'{header}' (C) looks like" in warning for warning in table.warnings] == [True] * is_doubtful


def test_documents_are_read_in_rank_order_and_normalised(tmp_path: Path) -> None:
    """A column that is not there is None, a blank cell is (); a bot's own column counts before the shared one."""
    uuid = "27c682dc-c97b-4c3e-b41c-999c65264a6d"
    header = ["Query", "Gold_Docs", "Bot_A", "Bot_B", "Retrieved_Docs", "B_Retrieved_Docs"]
    rows = [
        header,
        ["q", f"<urn:uuid:{uuid.upper()}>", "a", "b", "x::chunk-1 || y || x::chunk-2", f"['{uuid}']"],
    ]
    rows.append(["r", None, "a", "b", 7, None])
    first, second, third, fourth = cases(read_table(write_table(tmp_path / "a.xlsx", *rows)))
    assert (first.gold_ids, first.retrieved_ids) == ((uuid,), ("x", "y"))
    assert (second.gold_ids, second.retrieved_ids) == ((uuid,), (uuid,))
    assert (third.gold_ids, third.retrieved_ids) == ((), ("7",))
    assert (fourth.gold_ids, fourth.retrieved_ids) == ((), ())
    (plain,) = cases(read_table(write_table(tmp_path / "b.xlsx", ["Query", "Bot_A"], ["q", "a"])))
    assert (plain.gold_ids, plain.retrieved_ids, plain.human, plain.columns) == (None, None, {}, {})


def test_labels_are_numbers_for_metrics_and_yes_or_no_for_criteria(tmp_path: Path) -> None:
    header = ["Query", "Bot_A", "Bot_B", "Human_Faithfulness", "Human_grounded_A", "Human_grounded_B"]
    values = [
        (0.25, "Yes", False),
        (" 1 ", " FAIL ", 1),
        ("0,5", True, "pass"),
        (0, 0, None),
        (None, None, "no"),
    ]
    rows = [header, *[["q", "a", "b", *three] for three in values]]
    table = read_table(write_table(tmp_path / "a.xlsx", *rows), criteria=["grounded"])
    assert [dict(case.human) for case in cases(table)] == [
        {"faithfulness": 0.25, "grounded": 1.0},
        {"faithfulness": 0.25, "grounded": 0.0},
        {"faithfulness": 1.0, "grounded": 0.0},
        {"faithfulness": 1.0, "grounded": 1.0},
        {"faithfulness": 0.5, "grounded": 1.0},
        {"faithfulness": 0.5, "grounded": 1.0},
        {"faithfulness": 0.0, "grounded": 0.0},
        {"faithfulness": 0.0},
        {},
        {"grounded": 0.0},
    ]


@pytest.mark.parametrize(
    ("header", "cell", "message"),
    [
        ("Human_Faithfulness", 1.5, "'1.5' is not a label; expected a number from 0 to 1"),
        ("Human_Faithfulness", -0.1, "'-0.1' is not a label"),
        ("Human_Faithfulness", "0,8,1", "'0,8,1' is not a label"),
        ("Human_Faithfulness", "1,5", "'1,5' is not a label"),
        ("Human_Faithfulness", "maybe", "'maybe' is not a label"),
        ("Human_Faithfulness", "nan", "'nan' is not a label"),
        ("Human_Faithfulness", "0_1", "'0_1' is not a label"),
        ("Human_Faithfulness", "#N/A", "the error value #N/A"),
        (
            "Human_grounded",
            0.5,
            r"'0.5' is not a label; expected yes or no \(or true, false, pass, fail, 1, 0\)",
        ),
        ("Human_grounded", "maybe", "'maybe' is not a label"),
        ("Gold_Docs", "a, b", r"'a, b' is not a list of document ids; expected \["),
        ("Retrieved_Docs_A", "nan", "'nan' is not a list of document ids"),
    ],
)
def test_a_label_or_list_of_ids_that_cannot_be_read_is_a_problem(
    tmp_path: Path, header: str, cell: object, message: str
) -> None:
    """With its place, and once a cell however many bots share it."""
    path = write_table(tmp_path / "a.xlsx", ["Query", "Bot_A", "Bot_B", header], ["q", "a", "b", cell])
    found = problems(path, criteria=["grounded"])
    assert_each_matches(found, [rf"^a\.xlsx, sheet 'Sheet', row 2, column '{header}' \(D\): {message}"])


def test_a_row_with_only_labels_and_kept_texts_is_blank(tmp_path: Path) -> None:
    """Their values are then not even looked at; documents without a query are a row without a query."""
    header = ["Query", "Bot_A", "Human_Faithfulness", "Category", "Gold_Docs"]
    rows = [header, ["q", "a", 1, "x"], [None, None, 7, "x"], ["r", "a", None, "x"]]
    table = read_table(write_table(tmp_path / "a.xlsx", *rows), keep=["Category"])
    assert ([row.number for row in table.rows], table.blank_rows) == ([2, 4], 1)
    path = write_table(tmp_path / "b.xlsx", *rows, [None, None, None, None, "d1"])
    assert_each_matches(problems(path, keep=["Category"]), [r"row 5, column 'Query' \(A\): is blank"])


def test_columns_can_be_kept_for_later(tmp_path: Path) -> None:
    """By the names that were asked for, as text, blank as ''; a column with a use of its own keeps that too."""
    rows = [["Query", "Bot_A", "Product line", "Level", "Notes"], ["q", "a", " legal ", 3, "n"], ["r", "a"]]
    path = write_table(tmp_path / "a.xlsx", *rows)
    table = read_table(path, keep=["product_line", "Level", "Bot_A"])
    assert [case.columns for case in cases(table)] == [
        {"product_line": " legal ", "Level": "3", "Bot_A": "a"},
        {"product_line": "", "Level": "", "Bot_A": "a"},
    ]
    assert list(roles(table).values()) == ["query", "response A", "kept", "kept", "not used"]
    assert [use.header for use in table.columns if use.is_judged] == ["Query", "Bot_A"]


def test_a_column_to_keep_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.xlsx", ["Query", "Bot_A", "Top ic", "TOPIC"], ["q", "a"])
    assert_each_matches(
        problems(path, keep=["Category", "Topic", "TOPIC"]),
        [
            r"^a\.xlsx, sheet 'Sheet': 'Category' \(\[report\] slice_by or rubric\) is not a column; "
            r"name one of 'Query' \(A\), .*'TOPIC' \(D\)$",
            r"'Topic' \(\[report\] slice_by or rubric\) could be several columns; "
            r"name one of 'Top ic' \(C\), 'TOPIC' \(D\)$",
        ],
    )


def test_two_columns_for_one_label_are_an_error(tmp_path: Path) -> None:
    header = ["Query", "Bot_A", "Human_Faithfulness_A", "human faithfulness a", "Gold_Docs", "Gold Doc Ids"]
    assert_each_matches(
        problems(write_table(tmp_path / "a.xlsx", header, ["q"])),
        [
            r"\(C\) and .* \(D\) could each be the human label for faithfulness of bot 'A'; rename",
            r"'Gold_Docs' \(E\) and 'Gold Doc Ids' \(F\) could each be the gold documents; rename",
        ],
    )


@pytest.mark.parametrize("header", ["Human_Faithfulness", "human faithfulness a"])
@pytest.mark.parametrize("criterion", ["faithfulness", "Faithfulness"])
def test_a_label_for_a_criterion_that_is_called_as_a_metric_is_refused(
    tmp_path: Path, header: str, criterion: str
) -> None:
    """Which of the two was meant would otherwise be settled by chance, and numbers compared with the other one."""
    path = write_table(tmp_path / "a.xlsx", ["Query", "Bot_A", header], ["q", "a", 1])
    assert_each_matches(
        problems(path, criteria=["polite", criterion]),
        [
            rf"\(C\) could be .* metric faithfulness or .* criterion '{criterion}'; give the criterion another id$"
        ],
    )
    assert read_table(path, criteria=["polite"]).columns[2].metric == "faithfulness"


def test_a_label_is_for_the_criterion_that_is_written_so(tmp_path: Path) -> None:
    """Of criteria that differ in case or separators alone; a header that fits none of them exactly is refused."""
    criteria = ["On-topic", "on_topic", "ontopic"]
    header = ["Query", "Bot_A", "Human_ontopic", "Human_on_topic_A", "human on-Topic"]
    path = write_table(tmp_path / "a.xlsx", header[:4], ["q", "a", "yes", "no"])
    assert [use.metric for use in read_table(path, criteria=criteria).columns[2:]] == ["ontopic", "on_topic"]
    assert_each_matches(
        problems(write_table(tmp_path / "b.xlsx", header, ["q", "a"]), criteria=criteria),
        [
            r"'human on-Topic' \(E\) could be .* 'On-topic', 'on_topic', 'ontopic'; write the id as the rubric does$"
        ],
    )


def test_cases_with_labels_can_still_be_told_apart_by_hash(tmp_path: Path) -> None:
    rows = [["Query", "Bot_A", "Human_Faithfulness"], ["q", "a", 1], ["q", "a", 0]]
    assert len(set(cases(read_table(write_table(tmp_path / "a.xlsx", *rows))))) == 2


# What the command line shows


def test_what_was_read_is_described_in_plain_lines(tmp_path: Path) -> None:
    """The mapping of the columns and the number of chunks are shown."""
    rows = [[*HEADER, "Notes\n(own)", "Context_C"], ["q1", "gt", "a", "b", "c1 || c2"], [], ["q2"], ["q3"]]
    assert describe(read_table(write_table(tmp_path / "answers.xlsx", *rows), max_rows=2)) == [
        "answers.xlsx, sheet 'Sheet': 2 rows, 2 bots (A, B), 2 context chunks",
        "  'Query' (A) -> query",
        "  'Ground_Truth' (B) -> reference",
        "  'Bot_A' (C) -> response of A",
        "  'Bot_B' (D) -> response of B",
        "  'Context' (E) -> context",
        "  'Notes (own)' (F) -> not used",
        "  'Context_C' (G) -> context of a bot without a column",
        "  context cells: '||' (1)",
        "1 blank row skipped",
    ]


def test_of_very_many_columns_without_use_only_some_are_described(tmp_path: Path) -> None:
    """An export of a survey tool has hundreds; those that are used are all named."""
    header = ["Query", *(f"Note {n}" for n in range(300)), "Bot_A"]
    lines = describe(read_table(write_table(tmp_path / "answers.xlsx", header, ["q"])))
    assert len(lines) == 1 + 2 + 20 + 1
    assert lines[1:3] == ["  'Query' (A) -> query", "  'Note 0' (B) -> not used"]
    assert lines[-2:] == ["  'Bot_A' (KP) -> response of A", "  280 more columns -> not used"]
    found = problems(write_table(tmp_path / "answers.xlsx", header[1:], ["q"]))
    assert found[0].endswith("'Note 39' (AN), and 261 more)")


def test_the_roles_of_documents_labels_and_kept_columns_are_described(tmp_path: Path) -> None:
    header = [
        "Query",
        "Bot_A",
        "Gold_Docs",
        "Retrieved_Docs_A",
        "Human_Faithfulness_A",
        "Topic",
        "Human_tone",
    ]
    path = write_table(tmp_path / "a.csv.xlsx", header, ["q", "a"])
    assert describe(read_table(path, keep=["Topic"], criteria=["tone"]))[3:] == [
        "  'Gold_Docs' (C) -> gold documents",
        "  'Retrieved_Docs_A' (D) -> retrieved documents of A",
        "  'Human_Faithfulness_A' (E) -> human label for faithfulness of A",
        "  'Topic' (F) -> kept",
        "  'Human_tone' (G) -> human label for tone",
    ]


def test_the_sample_is_what_its_script_writes(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(root / "scripts" / "make_sample.py", tmp_path / "scripts")
    runpy.run_path(str(script), run_name="__main__")
    assert list(read_table(tmp_path / "sample_rag_input.xlsx").rows) == list(
        read_table(root / "sample_rag_input.xlsx").rows
    )


@pytest.mark.parametrize(
    ("repeated", "warning"),
    [
        ([], None),
        ([["q 1", "g", "a 1", "c"]], "1 row repeats an earlier row with the same query, responses, "),
        ([["q 1", "g", "a 2", "c"], ["q 1", "g 2", "a 1", "c"], ["q 1", "g", "a 1", "c 2"]], None),
        ([["q 1", "g", "a 1", "c"], ["q 2", "g", "a 2", "c"]] * 8, "16 rows repeat an earlier row"),
    ],
)  # fmt: skip
def test_rows_that_repeat_earlier_ones_are_counted(
    tmp_path: Path, repeated: list[list[str]], warning: str | None
) -> None:
    """Each row twice would make an interval narrower by a third, and a difference significant."""
    header = ["Query", "Ground_Truth", "Bot_A", "Context"]
    rows = [[f"q {n}", "g", f"a {n}", "c"] for n in (1, 2, 3)]
    table = read_table(write_table(tmp_path / "in.csv", header, *rows, *repeated))
    found = [text for text in table.warnings if "an earlier row" in text]
    assert len(found) == (warning is not None)
    assert all(text.startswith(warning or "") for text in found)
    if len(repeated) > 10:
        assert "row 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, …. Repeated rows count again" in found[0]


@pytest.mark.parametrize(
    ("number", "again", "more", "is_told"),
    [
        (5, ["What is it?", "g", "c"], [], True),
        (4, ["What is it?", "g", "c"], [], False),
        (5, ["What is it?", "g", ""], [], True),
        (5, ["What is it?", " g ", "another c"], [], True),
        (5, ["What is it?", "another g", "c"], [], False),
        (5, ["What is that?", "g", "c"], [], False),
        (5, ["What is it?", "g", "c"], [[f"q {n}", "g", "c"] for n in range(44)], True),
        (5, ["What is it?", "g", "c"], [[f"q {n}", "g", "c"] for n in range(45)], False),
    ],
)
def test_answers_to_the_query_of_an_earlier_row_are_not_independent(
    number: int, again: list[str], more: list[list[str]], is_told: bool, tmp_path: Path
) -> None:
    """Ten takes of ten queries are no hundred queries. Told to be conversations, they are resampled together."""
    header = ["Query", "Ground_Truth", "Context", "Bot_A", "conversation_id"]
    rows = [["What is it?", "g", "c"], *[again] * number, *more]
    lines = [[*row, f"answer {place}"] for place, row in enumerate(rows)]
    said = f"{number} of {len(rows)} rows ask the query of an earlier row again, and have other responses: row 3, 4"
    apart, together = (
        read_table(write_table(tmp_path / "in.csv", names, *cells))
        for names, cells in ((header[:-1], lines), (header, [[*line, line[0]] for line in lines]))
    )
    assert [text.startswith(said) for text in apart.warnings if "ask the query" in text] == [True] * is_told
    assert not any("ask the query" in text for text in together.warnings)
