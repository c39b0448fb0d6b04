"""Small files that are made to cost much: each is refused with its place and a remedy, or read in proportion.

Sizes are such that a reader without the bound would need gigabytes, or hours; so a test fails by not ending.
"""

import csv
import json
import struct
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from files import ods_row, open_document, write_table
from python_calamine import CalamineWorkbook

from rag_eval.configuration.sources import parse_ini, read_text
from rag_eval.errors import InputError, SettingsError, TableError, first_of
from rag_eval.rubric import EvaluationRubric, load_rubric
from rag_eval.tables.cells import as_cell, parse_score
from rag_eval.tables.chunking import split_cell
from rag_eval.tables.content import _check_unpacked_size
from rag_eval.tables.document_ids import parse_ids
from rag_eval.tables.input_files import MAX_BOTS, MAX_CELL, MAX_COLUMNS, MAX_CONFIGURATION, Room, too_long
from rag_eval.tables.old_excel import (
    _container,
    _read_workbook,
    _scanned,
    _shared_lengths,
    _units,
    extract_workbook,
)
from rag_eval.tables.open_document import _count, check_open_document
from rag_eval.tables.package import Package
from rag_eval.tables.parquet import _check_metadata, _rows_of_a_batch, _Texts, open_parquet
from rag_eval.tables.record_files import open_records
from rag_eval.tables.sheets import _extent
from rag_eval.tables.table import read_table
from rag_eval.texts.injection import find_flags
from rag_eval.texts.redaction import KINDS, Redactor
from rag_eval.texts.words import compatible, read_claim, words

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
HOSTILE = "contains far more than the size of the file suggests; copy the table into a new workbook, or save it as .csv"
LONG = "has 1,000,001 characters, more than the 1,000,000 allowed; shorten it, or split it into several rows"

TOO_WIDE = (
    "has more than 5,000 cells; "
    "remove the columns that are not needed, or the separators at the ends of the lines"
)


def problems(read: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read()
    return list(caught.value.problems)


def table_problems(path: Path) -> list[str]:
    return problems(lambda: read_table(path, max_rows=10**6))


def records_problems(path: Path) -> list[str]:
    def read() -> None:
        with open_records(path) as records:
            for number, cells in records.rows(range(len(records.names))):
                for column, cell in enumerate(cells):
                    records.parsed(number, column, cell, str)

    return problems(read)


def zipped(path: Path, parts: dict[str, str | Iterable[str]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            with archive.open(name, "w") as part:
                for piece in [content] if isinstance(content, str) else content:
                    part.write(piece.encode())
    return path


def excel(
    path: Path, sheet: str, strings: str = "", further: dict[str, str | Iterable[str]] | None = None
) -> Path:
    """A workbook of the given XML of rows, shared strings and further parts."""
    override = '<Override PartName="/xl/{}.xml" ContentType="' + TYPES + '.{}+xml"/>'
    parts: dict[str, str | Iterable[str]] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f"{override.format('workbook', 'sheet.main')}{override.format('sharedStrings', 'sharedStrings')}</Types>",
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'relationships"><Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/sharedStrings.xml": f"<sst {MAIN}>{strings}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}><sheetData>{sheet}</sheetData></worksheet>",
    }
    return zipped(path, {**parts, **(further or {})})


def inline(*texts: str) -> str:
    cells = (f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in texts)
    return f"<row>{''.join(cells)}</row>"


def shared(*numbers: int) -> str:
    cells = (f'<c t="s"><v>{number}</v></c>' for number in numbers)
    return f"<row>{''.join(cells)}</row>"


# Cells


def test_the_longest_cell_is_the_limit_and_one_more_is_too_long() -> None:
    assert MAX_CELL == 1_000_000
    assert as_cell("a" * MAX_CELL) == "a" * MAX_CELL
    assert getattr(as_cell("a" * (MAX_CELL + 1)), "problem", "") == LONG == too_long(MAX_CELL + 1)


def write_excel(path: Path, *rows: list[str]) -> None:
    excel(path, "".join(inline(*row) for row in rows))


def write_shared(path: Path, *rows: list[str]) -> None:
    width = len(rows[0])
    texts = "".join(f"<si><r><t>{cell}</t></r></si>" for row in rows for cell in row)
    cells = [
        [f'<c t="s"><v>{number * width + n}</v></c>' for n in range(width)] for number in range(len(rows))
    ]
    excel(path, "".join(f"<row>{''.join(row)}</row>" for row in cells), texts)


def write_formula(path: Path, *rows: list[str]) -> None:
    cells = [[f'<c t="str"><f>A1</f><v>{cell}</v></c>' for cell in row] for row in rows]
    excel(path, "".join(f"<row>{''.join(row)}</row>" for row in cells))


def write_ods(path: Path, *rows: list[str]) -> None:
    open_document(path, "".join(ods_row(*row) for row in rows))


@pytest.mark.parametrize(
    ("name", "write", "sheet"),
    [
        ("a.csv", write_table, ""),
        ("a.tsv", write_table, ""),
        ("a.xlsx", write_excel, ", sheet 'S'"),
        ("a.xlsx", write_shared, ", sheet 'S'"),
        ("a.xlsx", write_formula, ", sheet 'S'"),
        ("a.ods", write_ods, ", sheet 'Q3'"),
        ("a.parquet", write_table, ""),
    ],
)
def test_an_overlong_cell_is_an_error_with_its_place_its_length_and_the_remedy(
    tmp_path: Path, name: str, write: Callable[..., object], sheet: str
) -> None:
    """In a used column; in others nobody looks at it."""
    long, most = "b" * (MAX_CELL + 1), "b" * MAX_CELL
    write(tmp_path / name, ["Query", "Bot_A", "Note"], ["q", "a", long], ["q", long, ""], ["q", most, ""])
    assert table_problems(tmp_path / name) == [f"{name}{sheet}, row 3, column 'Bot_A' (B): {LONG}"]


@pytest.mark.parametrize(
    ("name", "write", "place"),
    [
        ("r.csv", write_table, "row 2"),
        ("r.tsv", write_table, "row 2"),
        ("r.xlsx", write_excel, "sheet 'S', row 2"),
        ("r.parquet", write_table, "row 2"),
        ("r.json", write_table, "row 1"),
        ("r.jsonl", write_table, "row 1"),
    ],
)  # fmt: skip
def test_an_overlong_cell_of_a_file_of_records_is_an_error(
    tmp_path: Path, name: str, write: Callable[..., object], place: str
) -> None:
    write(tmp_path / name, ["qid", "doc_ids"], ["1", "b" * (MAX_CELL + 1)])
    assert records_problems(tmp_path / name) == [f"{name}, {place}, column 'doc_ids' (B): {LONG}"]


def test_the_limit_of_the_csv_module_is_put_back(tmp_path: Path) -> None:
    """It is one for the whole process, which may be somebody else's."""
    for name in ("r.csv", "r.tsv"):
        write_table(tmp_path / name, ["qid", "doc_ids"], ["1", '"' + "b" * 200_000])
        before = csv.field_size_limit()
        with open_records(tmp_path / name) as records:
            assert [len(cells[1]) for _, cells in records.rows([0, 1])] == [200_001]
        assert csv.field_size_limit() == before == 131_072


# Columns, bots, rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_more_columns_than_allowed(tmp_path: Path, name: str) -> None:
    header = ["Query", "Bot_A", *(f"c{number}" for number in range(MAX_COLUMNS - 2))]
    write = write_table if name == "a.csv" else write_excel
    write(tmp_path / name, header, ["q", "a"])
    assert len(read_table(tmp_path / name).columns) == MAX_COLUMNS == 5_000
    write(tmp_path / name, [*header, "one more"], ["q", "a"])
    expected = {
        "a.csv": f"a.csv, line 1: {TOO_WIDE}",
        "a.xlsx": "a.xlsx, sheet 'S': has 5,001 columns, more than the 5,000 allowed; remove those that are not needed",
    }
    assert table_problems(tmp_path / name) == [expected[name]]


@pytest.mark.parametrize("name", ["r.json", "r.parquet", "r.xlsx"])
def test_more_columns_than_allowed_in_a_file_of_records(tmp_path: Path, name: str) -> None:
    header = [f"c{number}" for number in range(MAX_COLUMNS + 1)]
    if name == "r.json":
        (tmp_path / name).write_text(json.dumps([dict.fromkeys(header, 1)]))
    else:
        (write_table if name == "r.parquet" else write_excel)(tmp_path / name, header, header)
    expected = {
        "r.json": "r.json, record 1: the records have more than 5,000 fields together; remove",
        "r.parquet": "r.parquet: has 5,001 columns, more than the 5,000 allowed; remove",
        "r.xlsx": "r.xlsx, sheet 'S': has 5,001 columns, more than the 5,000 allowed; remove",
    }
    assert records_problems(tmp_path / name) == [f"{expected[name]} those that are not needed"]


def test_more_bots_than_allowed(tmp_path: Path) -> None:
    bots = [f"Bot_{number}" for number in range(MAX_BOTS)]
    write_table(tmp_path / "a.csv", ["Query", *bots], ["q"])
    assert len(read_table(tmp_path / "a.csv").bots) == MAX_BOTS == 200
    write_table(tmp_path / "a.csv", ["Query", *bots, "Bot_x"], ["q"])
    assert table_problems(tmp_path / "a.csv") == [
        "a.csv: has 201 bots, more than the 200 allowed; compare fewer of them at a time"
    ]


def test_the_name_of_a_bot_is_no_text(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["Query", "Bot_" + "b" * 200], ["q", "a"])
    assert read_table(tmp_path / "a.csv").bots == ("b" * 200,)
    write_table(tmp_path / "a.csv", ["Query", "Bot_" + "b" * 1_001], ["q", "a"])
    assert table_problems(tmp_path / "a.csv") == [
        f"a.csv: the name of bot '{'b' * 40}…' has 1,001 characters, more than the 1,000 allowed; shorten it"
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("," * 6_000, 1),
        ("Query,Bot_A\n" + "," * 6_000, 2),
        ('Query,Bot_A\n"a\n",' + "," * 6_000 + '"b"\n', 3),
        ('Query,Bot_A\n"' + "," * 6_000 + '\n",' + "," * 6_000, 3),
        ('Query,Bot_A\n"a""' + ",,," * 2_000 + '",' + "," * 6_000, 2),
        ("\n\nQuery,Bot_A\n" + "a," * 5_000, 4),
    ],
)
def test_a_line_of_separators_is_refused_before_it_is_cut(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert table_problems(tmp_path / "a.csv") == [f"a.csv, line {line}: {TOO_WIDE}"]
    if not text.startswith("\n"):  # without a header there is nothing to be read
        assert records_problems(tmp_path / "a.csv") == [f"a.csv, line {line}: {TOO_WIDE}"]


def test_separators_inside_quotes_are_no_cells(tmp_path: Path) -> None:
    text = "," * 6_000 + '"' + "," * 6_000 + "\n" + "," * 6_000
    write_table(tmp_path / "a.csv", ["Query", "Bot_A"], [text, "a"], ["q", "b"], ["," * 6_000, "c"])
    table = read_table(tmp_path / "a.csv")
    assert [(row.query, row.cases[0].response) for row in table.rows] == [
        (text, "a"),
        ("q", "b"),
        ("," * 6_000, "c"),
    ]
    with open_records(tmp_path / "a.csv") as records:
        assert list(records.rows([0])) == [(2, [text]), (3, ["q"]), (4, ["," * 6_000])]


def test_blank_lines_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n" * 100_000 + "Query,Bot_A\n" + "\n" * 100_000 + "q,a\n" + "\n" * 9)
    table = read_table(tmp_path / "a.csv")
    assert (table.rows[0].number, table.blank_rows) == (200_002, 100_000)
    with open_records(tmp_path / "a.csv") as records:
        assert records.names == ["Query", "Bot_A"]
        assert list(records.rows([0])) == [(200_002, ["q"])]
    with open_records(tmp_path / "a.csv") as records, pytest.raises(TableError) as caught:
        list(records.rows([0], if_blank="is blank"))
    assert list(caught.value.problems) == ["a.csv, row 100002: is blank"]


def test_only_the_first_problems_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Query,Bot_A\n" + ",a\n" * 5_000)
    found = problems(lambda: read_table(tmp_path / "a.csv", max_rows=10_000))
    assert (len(found), found[0]) == (
        21,
        "a.csv, row 2, column 'Query' (A): is blank, but the row is not; add the query or clear the row",
    )
    assert found[-1] == "and 4,980 more like these"
    assert first_of(["a"] * 20) == ["a"] * 20
    assert first_of(["a"] * 21) == [*["a"] * 20, "and 1 more like these"]
    assert first_of([], 30) == ["and 10 more like these"]


@pytest.mark.slow
def test_rows_and_cases_need_room_themselves(tmp_path: Path) -> None:
    """Many bots and many rows with nothing but a query: 100,000 cases of 10 kB."""
    bots = [f"Bot_{number}" for number in range(MAX_BOTS)]
    write_table(tmp_path / "a.csv", ["Query", *bots], *[["q"]] * 3_000)
    assert table_problems(tmp_path / "a.csv") == [
        "a.csv: its content takes more than 100 MB of memory, far more than its size on disk; split the file, or lower "
        "max_rows in [evaluation]"
    ]
    assert len(read_table(tmp_path / "a.csv", max_rows=100).rows) == 100


def test_room_is_a_hundred_megabytes_and_forty_times_the_file() -> None:
    room = Room("a.csv", 1_000)
    room.take(100_040_000)
    with pytest.raises(TableError, match=r"^a\.csv: its content takes more than 100 MB"):
        room.take(1)


@pytest.mark.slow
def test_a_context_that_rows_share_is_cut_once(tmp_path: Path) -> None:
    """Cutting it for each row would need 40 GB."""
    text = "b || " * 100_000
    strings = "".join(f"<si><t>{each}</t></si>" for each in ("Query", "Bot_A", "Context", text, "x"))
    path = excel(tmp_path / "a.xlsx", shared(0, 1, 2) + shared(4, 4, 3) * 1_000, strings)
    table = read_table(path, max_rows=1_000)
    assert table.chunks == 100_000_000
    assert len({id(row.cases[0].chunks) for row in table.rows}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "text"),
    [("Context", '["' + "b" * 900_000), ("Retrieved_Docs", json.dumps([f"d{n}" for n in range(90_000)]))],
    ids=["a damaged list", "documents"],
)
def test_what_is_made_of_a_text_is_made_once_for_the_rows_that_share_it(
    tmp_path: Path, column: str, text: str
) -> None:
    """Otherwise each row takes the time of the whole text, and has ids of its own."""
    text = text.replace('"', "&quot;")
    strings = "".join(f"<si><t>{each}</t></si>" for each in ("Query", "Bot_A", column, text, "q"))
    table = read_table(
        excel(tmp_path / "a.xlsx", shared(0, 1, 2) + shared(4, 4, 3) * 3_000, strings), max_rows=10**6
    )
    made = {id(row.cases[0].chunks or row.cases[0].retrieved_ids) for row in table.rows}
    assert (len(table.rows), len(made)) == (3_000, 1)
    damaged = "taken as plain text in row 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …;"
    assert sum(damaged in warning for warning in table.warnings) == (column == "Context")


@pytest.mark.slow
def test_contexts_in_turn_need_room_for_each_cut(tmp_path: Path) -> None:
    strings = "".join(
        f"<si><t>{each}</t></si>" for each in ("Query", "Bot_A", "Context", "b\n\n" * 250_000, "c")
    )
    path = excel(tmp_path / "a.xlsx", shared(0, 1, 2) + (shared(4, 4, 3) + shared(4, 4, 4)) * 100, strings)
    assert "takes more than 100 MB" in table_problems(path)[0]


# .xlsx


def test_a_negative_number_of_a_shared_text_is_damage(tmp_path: Path) -> None:
    """Counted from the end, as Python does, it would be another cell's text."""
    strings = "<si><t>Query</t></si><si><t>Bot_A</t></si><si><t>q</t></si>"
    path = excel(tmp_path / "a.xlsx", shared(0, 1) + shared(2, -1), strings)
    assert table_problems(path) == [
        "a.xlsx: is damaged or incomplete (IndexError: the number of a shared text is below 0); "
        "open it in a spreadsheet program and save it again"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        "<row>" + "<c/>" * 300_000 + "</row>",
        ('<mergeCell ref="A1:B2">' + "<x/>" * 2_000 + "</mergeCell>") * 600,
        f'<row spans="{"a" * 10_000_000}"/>',
        f"<!--{'a' * 10_000_000}-->",
        "<row>" + f'<c t="str"><v>{"a" * 900_000}</v></c>' * 40 + "</row>",
        "<a>" * 600_000,
    ],
    ids=["cells in a row", "elements", "an attribute", "a comment", "a row of megabytes", "depth"],
)
def test_more_elements_than_the_file_can_mean(tmp_path: Path, rows: str) -> None:
    assert table_problems(excel(tmp_path / "a.xlsx", rows)) == [
        f"a.xlsx: its part xl/worksheets/sheet1.xml {HOSTILE}"
    ]


@pytest.mark.parametrize(
    ("part", "element"),
    [("xl/styles.xml", "cellXfs"), ("xl/sharedStrings.xml", "si"), ("xl/workbook.xml", "sheet")],
)
def test_every_part_is_bounded(tmp_path: Path, part: str, element: str) -> None:
    content = f"<x {MAIN}><{element}>{'<y/>' * 300_000}</{element}></x>"
    path = excel(tmp_path / "a.xlsx", inline("Query", "Bot_A"), further={part: content})
    assert table_problems(path) == [f"a.xlsx: its part {part} {HOSTILE}"]


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml"])
def test_a_document_type_is_refused_since_its_entities_expand(tmp_path: Path, part: str) -> None:
    """Behind some megabytes of anything, expat lets entities expand a hundredfold."""
    doctype = f'<?xml version="1.0"?><!-- {" " * 100_000} --><!DOCTYPE a [<!ENTITY e "a">]><a>&e;</a>'
    path = excel(tmp_path / "a.xlsx", "", further={part: doctype})
    assert table_problems(path) == [
        f"a.xlsx: its part {part} declares a document type, as no spreadsheet program does; copy the table into a new "
        "workbook"
    ]


def test_elements_come_complete_and_one_at_a_time(tmp_path: Path) -> None:
    """Also where one reaches over the block that was read, and where others stand around and between them."""
    rows = "".join(f'<r n="{n}"><a>{"x" * 999}</a><b/></r><z><q/></z>' for n in range(300))
    path = zipped(tmp_path / "a.zip", {"p": f"<s><h><i/></h><d>{rows}</d><t/></s>"})
    package = Package(path)
    seen = [(e.tag, e.get("n"), len(e[0].text or ""), e[1].tag) for e in package.elements("p", ("r",))]
    assert seen == [("r", str(n), 999, "b") for n in range(300)]
    assert [len(e) for e in package.elements("p", ("d",))] == [600]
    assert [e.tag for e in package.elements("p", ("h", "t"))] == ["h", "t"]
    package.close()


def test_cells_far_to_the_right_of_the_header_cost_nothing(tmp_path: Path) -> None:
    """After twenty rows nothing is looked at beside the table: each row would be a list of 16,384 cells."""
    far = "".join(f'<row r="{n}"><c r="XFD{n}" t="str"><v>x</v></c></row>' for n in range(3, 15_000))
    last = '<row r="15000"><c r="A15000" t="str"><v>q</v></c><c r="B15000" t="str"><v>a</v></c></row>'
    path = excel(tmp_path / "a.xlsx", inline("Query", "Bot_A") + inline("q", "a") + far + last)
    assert [row.number for row in read_table(path).rows] == [2, 15_000]


def test_a_workbook_of_very_many_sheets_names_some(tmp_path: Path) -> None:
    sheets = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="r1"/>' for n in range(1, 50_001))
    book = f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{sheets}</sheets></workbook>'
    path = excel(
        tmp_path / "a.xlsx", inline("Query", "Bot_A") + inline("q", "a"), further={"xl/workbook.xml": book}
    )
    (warning,) = read_table(path).warnings
    assert warning.startswith("Sheet 'S1' was read, the first of several; not read: 'S2', 'S3', ")
    assert warning.endswith("'S41', … (see --sheet).")


def test_a_number_format_of_brackets_is_looked_at_in_part(tmp_path: Path) -> None:
    """Its brackets are searched for in quadratic time."""
    styles = (
        f'<styleSheet {MAIN}><numFmts><numFmt numFmtId="200" formatCode="{"[" * 500_000}"/></numFmts><cellXfs>'
        '<xf numFmtId="200"/></cellXfs></styleSheet>'
    )
    path = excel(
        tmp_path / "a.xlsx", inline("Query", "Bot_A") + inline("q", "a"), further={"xl/styles.xml": styles}
    )
    assert len(read_table(path).rows) == 1


# .ods


def ods_cell(text: str, times: int = 1, kind: str = ' office:value-type="string"') -> str:
    return f'<table:table-cell table:number-columns-repeated="{times}"{kind}><text:p>{text}</text:p></table:table-cell>'


def ods_cells(*cells: str, times: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{times}">{"".join(cells)}</table:table-row>'


@pytest.mark.parametrize(
    "row",
    [
        ods_cells(ods_cell('<text:s text:c="2000000000"/>')),
        ods_cells(ods_cell('<text:s text:c="30000"/>', 10_000)),
        ods_cells(ods_cell("a" * 900_000), times=1_000),
        ods_cells(ods_cell("a" * 90_000, 100), times=100),
        ods_cells(ods_cell("", 2_000, ' office:value-type="float" office:value="1"'), times=1_000),
        ods_cells(ods_cell("", 16_000, ""), ods_cell("a"), times=200),
        ods_cells(ods_cell("", 1, ""), times=2_000_000) + ods_cells(ods_cell("a")),
    ],
    ids=[
        "spaces",
        "spaces in many cells",
        "rows",
        "rows and columns",
        "numbers",
        "blank cells",
        "blank rows",
    ],
)
def test_what_an_open_document_repeats_is_counted_before_it_is_read(tmp_path: Path, row: str) -> None:
    header = ods_cells(ods_cell("Query"), ods_cell("Bot_A"))
    assert table_problems(open_document(tmp_path / "a.ods", header + row)) == [
        "a.ods: its content takes more than 100 MB of memory, far more than its size on disk; split the file, or lower "
        "max_rows in [evaluation]"
    ]


@pytest.mark.parametrize(
    "rows",
    [
        ods_cells(ods_cell("q"), ods_cell("a"), ods_cell("", 16_000, ""))
        + ods_cells(ods_cell("", 1, ""), times=1_048_000),
        ods_cells(ods_cell("q"), ods_cell("a"))
        + "</table:table><table:table>" + ods_cells(ods_cell("x", 500), times=500),
    ],
    ids=["blank to the end", "a second sheet"],
)  # fmt: skip
def test_what_takes_no_room_is_no_matter(tmp_path: Path, rows: str) -> None:
    path = open_document(tmp_path / "a.ods", ods_cells(ods_cell("Query"), ods_cell("Bot_A")) + rows)
    assert [(row.number, row.query, row.cases[0].response) for row in read_table(path).rows] == [
        (2, "q", "a")
    ]


HOSTILE_ODS = f"a.ods: {HOSTILE.replace('workbook', 'spreadsheet')}"


@pytest.mark.parametrize(
    ("content", "further"),
    [
        pytest.param(f"<!--{'a' * 10_000_000}--><a/>", {}, marks=pytest.mark.slow),
        pytest.param(f'<a b="{"a" * 10_000_000}"/>', {}, marks=pytest.mark.slow),
        pytest.param("<a>" + "<b/>" * 1_600_000 + "</a>", {}, marks=pytest.mark.slow),
        ('<!DOCTYPE a [<!ENTITY e "a">]><a>&e;</a>', {}),
        ("<a/>", {"META-INF/manifest.xml": " " * 1_048_577}),
    ],
    ids=["a comment", "an attribute", "elements", "a document type", "a manifest"],
)  # fmt: skip
def test_a_hostile_open_document_is_refused(tmp_path: Path, content: str, further: dict[str, str]) -> None:
    assert table_problems(open_document(tmp_path / "a.ods", "", content, **further)) == [HOSTILE_ODS]


@pytest.mark.parametrize(
    ("rows", "cells", "text"),
    [
        (ods_cells(ods_cell("ä")), 1, 2),
        (ods_cells(ods_cell("ab", 3)), 3, 6),
        (ods_cells(ods_cell("", 1, ' office:value-type="float"')), 1, 0),
        (ods_cells(ods_cell('<text:s text:c="5"/>', 1, "")), 1, 5),
        (ods_cells(ods_cell("", 2, ""), ods_cell("a"), ods_cell("", 3, ""), ods_cell("a")), 7, 2),
        (ods_cells(ods_cell("a"), ods_cell("", 9, "")), 1, 1),
        (
            ods_cells(
                ods_cell("", 9, ""), ods_cell("", 3, ' table:formula="f"').replace("<text:p></text:p>", "")
            ),
            12,
            600,
        ),
        (ods_cells(ods_cell("a"), times=4), 4, 4),
        (ods_cells(ods_cell("a"), times=2) + ods_cells(ods_cell("a"), ods_cell("b")), 6, 4),
        (ods_cells(ods_cell("a")) + ods_cells(times=10) + ods_cells(ods_cell("a")) * 2, 13, 3),
        (ods_cells(ods_cell("a")) + ods_cells(times=10), 1, 1),
        (
            ods_cells(ods_cell("a", 2))
            + '</table:table><table:table table:name="T">'
            + ods_cells(ods_cell("a")),
            3,
            3,
        ),
    ],
)
def test_a_sheet_of_an_open_document_needs_room_for_its_rectangle(
    tmp_path: Path, rows: str, cells: int, text: int
) -> None:
    """64 bytes a cell from the first one, blank ones only before others, 200 an error, and all repetitions of texts."""
    path = open_document(tmp_path / "a.ods", rows)
    for missing in (0, 1):
        room = Room("a.ods", 0)
        room.take(100_000_000 - 64 * cells - text + missing)
        with (
            pytest.raises(TableError, match="its content takes more than 100 MB")
            if missing
            else nullcontext()
        ):
            check_open_document(path, room)


# .xls


def old_excel(path: Path, cells: Iterable[tuple[int, int, object]], sheets: int = 1) -> Path:
    xlwt = pytest.importorskip("xlwt")
    book = xlwt.Workbook()
    pages = [book.add_sheet(f"S{number}") for number in range(sheets)]
    for row, column, value in cells:
        pages[0].write(row, column, value)
    book.save(str(path))
    return path


HEADER = [(0, 0, "Query"), (0, 1, "Bot_A")]
RUBRIC = EvaluationRubric(
    rubric_id="r", metrics=[{"id": "M1", "rubric": "It is polite."}], passing_score_threshold=1
)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [(row, column, f"text {row} ä日{'x' * (row % 300)}") for row in range(1, 400) for column in range(2)],
        [(1, 0, "a" * 32_000), (1, 1, "日" * 32_000), (2, 0, 1.5), (2, 1, True), (9, 7, "far")],
    ],
    ids=["small", "many texts", "long texts"],
)  # fmt: skip
def test_the_workbook_in_its_new_container_reads_as_it_did(
    tmp_path: Path, cells: list[tuple[int, int, object]]
) -> None:
    path = old_excel(tmp_path / "a.xls", [*HEADER, *cells], sheets=3)
    content, _ = extract_workbook(path, Room("a.xls", path.stat().st_size))
    books = [CalamineWorkbook.from_path(path), CalamineWorkbook.from_filelike(BytesIO(content))]
    one, other = ([book.get_sheet_by_name(name).to_python() for name in book.sheet_names] for book in books)
    assert one == other
    assert one[0][0][:2] == ["Query", "Bot_A"]
    assert len(content) % 4_096 == 0


def test_a_text_of_a_dictionary_takes_its_size_once() -> None:
    """In Python and in Arrow it is about as long; only the difference is taken in addition."""
    import pyarrow

    room = Room("a.parquet", 0)  # 100 MB
    texts = _Texts(room, None)
    assert [len(each) for each in texts.of(pyarrow.array(["a" * 60_000_000]))] == [60_000_000]
    with pytest.raises(TableError, match="more than 100 MB"):
        texts.of(pyarrow.array(["b" * 60_000_000]))


@pytest.mark.parametrize(
    ("flags", "beside"),
    [
        (0, b""),
        (8, b"\x02\x00" + bytes(8)),  # two runs of fonts, after the characters
        (4, b"\x05\x00\x00\x00" + bytes(5)),  # what is there for phonetic guides
        (12, b"\x01\x00\x03\x00\x00\x00" + bytes(7)),
    ],
    ids=["plain", "fonts", "phonetic", "both"],
)  # fmt: skip
def test_shared_texts_with_fonts_and_phonetic_guides_are_measured(flags: int, beside: bytes) -> None:
    """MS-XLS 2.5.293: counts and sizes stand before the characters, what they count after them."""
    head = beside[: (2 if flags & 8 else 0) + (4 if flags & 4 else 0)]
    tail = beside[len(head) :]
    for wide in (0, 1):
        text = struct.pack("<HB", 3, flags | wide) + head + b"abc" * (1 + wide) + tail
        block = text + struct.pack("<HB", 7, 0) + b"seven..."[:7]
        stream = struct.pack("<HH", 0x00FC, 8 + len(block)) + bytes(8) + block
        assert _shared_lengths(stream) == [9, 21]


@pytest.mark.parametrize(
    ("flags", "head", "tail", "wide"),
    [
        (0, b"", b"", b"\x00"),
        (0, b"", b"", b"\x01"),
        (8, b"\x02\x00", bytes(8), b"\x01"),
    ],
    ids=["narrow", "wide", "fonts"],
)
def test_a_shared_text_goes_on_in_the_next_record(flags: int, head: bytes, tail: bytes, wide: bytes) -> None:
    """MS-XLS 2.5.293: there the width of the characters is said again, but not before what follows them."""
    rest = wide + b"efghij" * (1 + wide[0])
    first = bytes(8) + struct.pack("<HB", 10, flags) + head + b"abcd"
    last = struct.pack("<HB", 7, 0) + b"another" + struct.pack("<HB", 4, 0) + b"four"
    for cut in range(len(tail) + 1):
        blocks = (
            [first, rest + tail[:cut], tail[cut:] + last] if cut < len(tail) else [first, rest + tail + last]
        )
        records = [
            struct.pack("<HH", 0x3C if number else 0xFC, len(each)) + each
            for number, each in enumerate(blocks)
        ]
        assert _shared_lengths(b"".join(records)) == [30, 21, 12]


@pytest.mark.parametrize("padding", [b"", b"\x00", b"\x00\x00"])
def test_a_shared_text_may_begin_with_the_next_record(padding: bytes) -> None:
    texts = [struct.pack("<HB", len(each), 0) + each for each in (b"one", b"three", b"eleven", b"7")]
    blocks = [bytes(8) + texts[0] + padding, texts[1] + texts[2], texts[3]]
    records = [
        struct.pack("<HH", 0x3C if number else 0xFC, len(each)) + each for number, each in enumerate(blocks)
    ]
    assert _shared_lengths(b"".join(records)) == [9, 15, 18, 3]


def record(kind: int, *numbers: int, rest: bytes = b"") -> bytes:
    content = struct.pack(f"<{len(numbers)}H", *numbers) + rest
    return struct.pack("<HH", kind, len(content)) + content


END = record(0x0A)


def number_format(number: int, code: str, *, is_wide: bool = False) -> bytes:
    text = code.encode("utf-16-le" if is_wide else "latin-1")
    return record(0x41E, number, len(code), rest=bytes([is_wide]) + text)


STYLES = b"".join(record(0xE0, 0, number, 0) for number in (0, 9, 44, 200, 201, 202, 0))


@pytest.mark.parametrize(
    ("version", "units"),
    [(0x600, {1: "%", 2: "$", 3: "ms", 4: "EUR"}), (0x500, {}), (0x400, {})],
    ids=["Excel 97", "Excel 95", "Excel 4"],
)
def test_the_units_of_number_formats_are_known_from_excel_97_on(version: int, units: dict[int, str]) -> None:
    """By style, of those that the file describes and of those that every file has."""
    formats = (
        number_format(200, '0 "ms"') + number_format(201, "€ 0.00", is_wide=True) + number_format(202, "0.0")
    )
    assert _units(record(0x809, version, 5) + formats + STYLES + END) == units
    assert (
        _units(record(0x809, version, 5) + STYLES + formats + record(0xE0) + record(0x41E, 7) + END) == units
    )


@pytest.mark.parametrize(
    ("records", "size", "cells"),
    [
        (b"", 0, 0),
        (record(0x203, 5, 7, 0), 6, 1),
        (record(0x203, 5, 7), 4, 0),
        (record(0x999, 5, 7, 0), 6, 0),
        (record(0x203, 5, 7, 0) + record(0x203, 5, 9, 0), 12, 3),
        (record(0x203, 5, 9, 0) + record(0x203, 8, 7, 0), 12, 4 * 3),
        (record(0xBD, 5, 7, 1, 2, 3, 4, 9), 14, 3),
        (record(0x203, 5, 7, 1, 2, 3, 4, 9), 14, 1),
        (record(0xFD, 5, 7, 0, rest=b"\x01\0\0\0"), 10 + 50, 1),
        (record(0xFD, 5, 7, 0, rest=b"\x02\0\0\0"), 10, 1),
        (record(0xFD, 5, 7, 0, rest=b"\x01\0\0"), 9, 1),
        (record(0x205, 5, 7, 0, rest=b"\x07\x01"), 8 + 200, 1),
        (END + record(0x203, 5, 7, 0), 0, 0),
    ],
)
def test_a_sheet_of_an_old_workbook_needs_room_for_its_rectangle(
    records: bytes, size: int, cells: int
) -> None:
    """64 bytes a cell, from the first to the last one that holds a value, 200 an error, and the records and texts."""
    for before in (b"", b"before"):
        sheet = _scanned(before + records + END, len(before), [40, 50], {}, is_calculated=True)
        assert sheet.size == size + 64 * cells


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 1), ("7", 7), ("0", 0), ("٧", 1), ("-7", 1), ("7.0", 1), ("9" * 19, 10**19 - 1), ("9" * 20, 1)],
)
def test_how_often_an_open_document_repeats_a_cell(text: str, count: int) -> None:
    assert _count({"n": text}, "n") == count
    assert _count({}, "n") == 1


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("", 2),
        ("four", 6),
        (None, 1),
        (7, 1),
        ([], 0),
        (["four", 7], 9),
        (("four",), 7),
        ({"key": "four", "other": ["a", "b"]}, 6 + 8 + 2),
    ],
)
def test_a_structure_is_measured_before_it_is_written(value: object, length: int) -> None:
    assert _extent(value) == length


@pytest.mark.parametrize(
    ("unpacked", "most", "problem"),
    [
        (101 * 2**20 - 1, 2**30, ""),
        (101 * 2**20, 2**30, "would unpack to 101 MB, more than 200 times its size"),
        (2**20, 2**20, ""),
        (2**20 + 1, 2**20, "would unpack to 1 MB, more than the 1 MB allowed"),
    ],
)
def test_what_the_directory_of_a_zip_archive_says_is_bounded(
    tmp_path: Path, unpacked: int, most: int, problem: str
) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"")
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.index(b"PK\1\2") + 24, unpacked)
    path.write_bytes(content)
    with pytest.raises(TableError, match=problem) if problem else nullcontext():
        _check_unpacked_size(path, most)


def test_a_shared_text_of_an_old_workbook_counts_in_each_of_its_cells(tmp_path: Path) -> None:
    cells = [(row, 1, "a" * 30_000) for row in range(1, 1_500)]
    path = old_excel(tmp_path / "a.xls", [*HEADER, *cells])
    assert path.stat().st_size < 200_000
    assert "its content takes more than 1" in table_problems(path)[0]
    few = old_excel(tmp_path / "b.xls", [*HEADER, (1, 0, "q"), *cells[:900]])
    assert problems(lambda: read_table(few))[0].startswith(
        "b.xls, sheet 'S0', row 3, column 'Query' (A): is blank"
    )


def test_a_stray_cell_in_the_last_corner_of_an_old_workbook(tmp_path: Path) -> None:
    path = old_excel(tmp_path / "a.xls", [*HEADER, (65_535, 255, "x")])
    assert "its content takes more than 100 MB" in table_problems(path)[0]


def test_sheets_of_an_old_workbook_that_are_one_count_each(tmp_path: Path) -> None:
    """The reader reads each of them, also where their places are the same."""
    cells = [(row, 1, 1.0) for row in range(1, 20_000)]
    path = old_excel(tmp_path / "a.xls", [*HEADER, *cells], sheets=100)
    content = bytearray(path.read_bytes())
    place, first = 512, b""
    kind = length = 0
    while kind != 0x0A:
        kind, length = struct.unpack_from("<HH", content, place)
        if kind == 0x85:
            first = first or bytes(content[place + 4 : place + 8])
            content[place + 4 : place + 8] = first
        place += 4 + length
    path.write_bytes(content)
    assert "its content takes more than 1" in table_problems(path)[0]


@pytest.mark.parametrize("field", [48, 68, 76, 30], ids=["directory", "more tables", "table", "sector size"])
def test_chains_of_sectors_that_lead_nowhere_are_damage(tmp_path: Path, field: int) -> None:
    path = old_excel(tmp_path / "a.xls", HEADER)
    content = bytearray(path.read_bytes())
    content[field : field + 2] = b"\x77\x77"
    path.write_bytes(content)
    assert table_problems(path)[0].startswith("a.xls: is damaged or incomplete (ValueError: ")


@pytest.mark.parametrize("sectors", [1, 2])
def test_the_table_of_sectors_may_be_listed_outside_the_header(tmp_path: Path, sectors: int) -> None:
    """As in files of more than 7 MB: sectors of 127 numbers and the number of the next such sector."""
    path = old_excel(tmp_path / "a.xls", [*HEADER, (1, 0, "q"), (1, 1, "a")])
    content = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<I", content, 76)
    content += bytes(512 * 400)  # no chain is longer than the file
    first = len(content) // 512 - 1
    struct.pack_into("<I", content, 76, 0xFFFFFFFF)
    struct.pack_into("<I", content, 68, first)
    blank = [0xFFFFFFFF] * 126
    lists = [[*blank, 0xFFFFFFFF, first + 1], [*blank[:-1], table, 0xFFFFFFFF, 0xFFFFFFFE]][-sectors:]
    content += b"".join(struct.pack("<128I", *each) for each in lists)
    path.write_bytes(content)
    assert [row.query for row in read_table(path).rows] == ["q"]
    struct.pack_into("<I", content, len(content) - 4, first)
    path.write_bytes(content)
    assert "a chain of sectors has no end" in table_problems(path)[0]


def test_an_old_workbook_of_several_megabytes_is_whole_in_its_new_container() -> None:
    stream = bytes(range(251)) * 40_000
    content = _container("Book", stream)
    assert _read_workbook(content) == ("Book", stream)
    # [MS-CFB] 2.2 to 2.4: no small streams, no second table of tables, and the sectors of tables marked as such.
    cutoff, small, smalls, further, furthers = struct.unpack_from("<5I", content, 56)
    assert (cutoff, small, smalls, further, furthers) == (4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    (tables,) = struct.unpack_from("<I", content, 44)
    table = struct.unpack(f"<{tables * 1024}I", content[-tables * 4096 :])
    assert [place for place, link in enumerate(table) if link == 0xFFFFFFFD] == list(
        struct.unpack_from(f"<{tables}I", content, 76)
    )


def test_an_old_workbook_that_ends_early_or_is_none_is_damage(tmp_path: Path) -> None:
    path = old_excel(tmp_path / "a.xls", HEADER)
    content = path.read_bytes()
    for damaged, reason in (
        (content[:300], "the file ends too early"),
        (
            content.replace("Workbook".encode("utf-16-le"), "Notebook".encode("utf-16-le")),
            "no workbook in the file",
        ),
    ):
        path.write_bytes(damaged)
        assert table_problems(path)[0].startswith(f"a.xls: is damaged or incomplete (ValueError: {reason})")


def test_a_chain_of_sectors_that_is_a_circle_is_damage(tmp_path: Path) -> None:
    path = old_excel(tmp_path / "a.xls", HEADER)
    content = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<I", content, 76)
    struct.pack_into("<I", content, (table + 1) * 512 + 4, 0)
    path.write_bytes(content)
    assert table_problems(path) == [
        "a.xls: is damaged or incomplete (ValueError: a chain of sectors has no end); open it in a spreadsheet program "
        "and save it again"
    ]


# .parquet


def test_values_of_a_parquet_file_are_those_that_pyarrow_gives(tmp_path: Path) -> None:
    """Of every kind, with nulls, over several groups, batches and slices; equal texts are one object."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    count = 2_500
    text = pyarrow.string()
    columns = {
        "text": pyarrow.array([None if n % 7 == 0 else f"t{n % 50}" for n in range(count)]),
        "unique": pyarrow.array([f"u{n}" * 20 for n in range(count)]),
        "bytes": pyarrow.array([None if n % 3 else b"b%d" % n for n in range(count)]),
        "list": pyarrow.array([None if n % 5 == 0 else [f"x{n % 3}", None][: n % 4] for n in range(count)]),
        "lists": pyarrow.array([[["a", "b"], None, []][: n % 4] for n in range(count)]),
        "fixed": pyarrow.array(
            [None if n % 6 == 0 else ["a", str(n)] for n in range(count)], pyarrow.list_(text, 2)
        ),
        "struct": pyarrow.array([None if n % 4 == 0 else {"a": str(n % 9), "b": [n]} for n in range(count)]),
        "map": pyarrow.array(
            [None if n % 8 == 0 else [("k", str(n % 3))] * (n % 3) for n in range(count)],
            pyarrow.map_(text, text),
        ),
        "number": pyarrow.array([None if n % 9 == 0 else n / 2 for n in range(count)]),
        "coded": pyarrow.array([f"c{n % 4}" for n in range(count)]).dictionary_encode(),
    }
    table = pyarrow.table(columns)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=900)
    room = Room("a.parquet", 10**6)
    with open_parquet(tmp_path / "a.parquet", room, lambda value: value) as opened:
        assert list(opened.names) == list(columns)
        rows = list(opened.rows(range(len(columns))))
    expected = [column.to_pylist() for column in table.columns]
    for place, name in enumerate(columns):
        assert [row[place] for row in rows] == expected[place], name
    assert rows[1][0] is rows[51][0]
    with open_parquet(tmp_path / "a.parquet", room, lambda value: f"<{value!r}>") as opened:
        some = list(opened.rows([2, 0, 3]))[:4]
    assert some[3] == ("<b'b3'>", "<'t3'>", ["x0", None])
    assert some[1] == (None, "<'t1'>", ["x1"])


@pytest.mark.slow
def test_a_text_that_rows_share_is_made_once(tmp_path: Path) -> None:
    """Otherwise 4,000 rows of 900,000 letters take 3.6 GB. The same holds for the list in a cell."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    text = "a" * 900_000
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 4_000, pyarrow.int32()), [text])
    parquet.write_table(
        pyarrow.table({"Query": column, "Bot_A": column}), tmp_path / "a.parquet", compression="zstd"
    )
    table = read_table(tmp_path / "a.parquet", max_rows=10**6)
    assert (len(table.rows), len({id(row.query) for row in table.rows})) == (4_000, 1)
    items = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 2_000, pyarrow.int32()), [text])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 2_000], pyarrow.int32()), items)
    parquet.write_table(
        pyarrow.table({"Query": ["q"], "Bot_A": ["a"], "Context": lists}),
        tmp_path / "b.parquet",
        compression="zstd",
    )
    assert table_problems(tmp_path / "b.parquet") == [
        f"b.parquet, row 2, column 'Context' (C): {LONG.replace('1,000,001', '1,800,006,000')}"
    ]


def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"Query": ["a" * 900_000] * 50, "Bot_A": ["a"] * 50, "qid": ["1"] * 50, "doc_ids": ["a"] * 50}
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", use_dictionary=False)
    assert "a.parquet: its content takes more than 100 MB" in table_problems(path)[0]
    assert "a.parquet: its content takes more than 100 MB" in records_problems(path)[0]


def test_a_parquet_file_of_more_values_than_its_size_allows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    nothing = pyarrow.nulls(1_100_000, pyarrow.int8())
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"Query": nothing, "Bot_A": nothing}), path, compression="zstd")
    most = 2_000_000 + path.stat().st_size
    assert table_problems(path) == [
        f"a.parquet: contains 3,300,000 values, more than the {most:,} that are read from a file of its size; "
        "split it into several files"
    ]


def test_the_directory_of_a_parquet_file_is_a_small_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + bytes(100) + struct.pack("<I", 1_000_012) + b"PAR1")
    assert table_problems(path) == [
        "a.parquet: is damaged or incomplete: its directory takes 1,000,012 bytes; write it again"
    ]
    path.write_bytes(b"PAR1" + bytes(100) + struct.pack("<I", 1_000_011) + b"PAR1")
    assert table_problems(path)[0].startswith("a.parquet: is damaged or incomplete (Arrow")


def test_a_whole_parquet_file_of_too_many_columns_is_not_called_damaged(tmp_path: Path) -> None:
    names = ["Query", "Bot_A", *(f"c{number}" for number in range(8_000))]
    (problem,) = table_problems(write_table(tmp_path / "a.parquet", names, ["q"] * len(names)))
    assert problem.startswith("a.parquet: its directory takes 1,")
    assert problem.endswith(
        "as with more than 5,000 columns or with very small groups of rows; write it again with only the columns "
        "that are needed"
    )


# Configuration and rubrics


def test_a_file_that_people_write_is_small(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("#" * MAX_CONFIGURATION)
    assert problems(lambda: load_rubric(path)) == [
        f"{path}: expected the keys rubric_id, metrics, passing_score_threshold"
    ]
    path.write_text("#" * (MAX_CONFIGURATION + 1))
    message = "has 262,145 bytes, more than the 262,144 allowed; is it the right file?"
    assert problems(lambda: load_rubric(path)) == [f"{path}: {message}"]
    assert problems(lambda: read_text(path, "config.ini")) == [f"config.ini: {message}"]


def test_a_long_line_of_a_configuration_is_refused(tmp_path: Path) -> None:
    """The parser looks at its blanks in quadratic time: a quarter of a megabyte would take minutes."""
    path = tmp_path / "config.ini"
    path.write_text("[judge]\nprovider" + " " * 3_992)
    assert len(read_text(path, "config.ini")) == 4_008
    path.write_text("[judge]\nprovider" + " " * 3_993)
    assert problems(lambda: read_text(path, "config.ini")) == [
        "config.ini: a line has 4,001 characters, more than the 4,000 allowed"
    ]


@pytest.mark.parametrize(
    "joint", ["a{0}: &a{0} [{1}]\n", "a{0}: &a{0}\n  <<: [{1}]\n"], ids=["lists", "merges"]
)
def test_aliases_of_a_rubric_do_not_expand(tmp_path: Path, joint: str) -> None:
    """Nine levels of nine aliases each are 400 million values; merged mappings of YAML hold all of them."""
    path = tmp_path / "r.yaml"
    levels = (joint.format(n, ",".join([f"*a{n - 1}"] * 9)) for n in range(1, 10))
    path.write_text("a0: &a0 {x: 1}\n" + "".join(levels))
    assert problems(lambda: load_rubric(path)) == [
        f"{path}: its aliases expand to far more than the file contains; write the metrics out"
    ]


def test_a_number_of_thousands_of_digits_in_a_rubric_is_not_printed(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("metrics: []\npassing_score_threshold: 1\nrubric_id: 1" + ":1" * 5_000)
    assert f"{path}: rubric_id: this number is not allowed; expected text; put it in quotes" in problems(
        lambda: load_rubric(path)
    )


def test_a_rubric_with_very_many_problems_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("rubric_id: r\npassing_score_threshold: 0\nmetrics:\n" + "- {id: a}\n" * 100)
    found = problems(lambda: load_rubric(path))
    assert (len(found), found[0], found[-1]) == (
        21,
        f"{path}: metrics, entry 1, rubric: is missing; add it",
        f"{path}: and 80 more like these",
    )


def test_repeated_lines_of_a_configuration_are_named_up_to_a_number() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_ini("[judge]\n" + "provider = azure\n" * 100, "c")
    assert (len(caught.value.problems), caught.value.problems[-1]) == (21, "and 79 more like these")


# Texts


def peak(function: Callable[[], object]) -> int:
    """Bytes that a call takes at its height, what it returns included."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "unit"),
    [
        (words, "a"),
        (words, "é"),
        (words, "1."),
        (words, "1,234"),
        (read_claim, "abcdefghij"),
        (read_claim, "[1,"),
        (read_claim, "A."),
        (lambda text: split_cell("a" + text), "\n"),
        (lambda text: split_cell("a" + text), " \n"),
    ],
)  # fmt: skip
def test_a_repeated_group_costs_no_memory_for_each_letter(function: Callable[[str], Any], unit: str) -> None:
    """It took 190 to 230 bytes a letter; what is left are copies of the text, and numbers one by one."""
    text = unit * (300_000 // len(unit))
    assert peak(lambda: function(text)) < 30 * 300_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda: parse_score("1" * 900_000 + "x"),
        lambda: RUBRIC.validate_result("```" + "a" * 900_000),
        lambda: split_cell("b || " * 190_000),
        lambda: split_cell("(b || " * 160_000),
        lambda: split_cell("b\n||\n" * 190_000),
        lambda: split_cell("'a' || " * 140_000),
        lambda: compatible("NFKD", "a" + "\u0300\u0316" * 400_000),
        lambda: compatible("NFKC", "a" + "\uff9e\u0300" * 400_000),
        lambda: compatible("NFKC", "a" + "\u0f73\u0f72" * 400_000),
        lambda: find_flags("a" + "\u0300\u0316" * 400_000),
        lambda: Redactor(KINDS).text("a@" + "a." * 400_000),
        lambda: parse_ids("['\\x41'" + ", 'a'" * 150_000 + "]"),
    ],
)
def test_time_grows_with_the_text_and_not_with_its_square(function: Callable[[], object]) -> None:
    """None of these ended within minutes, or none would with one more loop."""
    with suppress(ValueError):
        function()


@pytest.mark.parametrize("form", ["NFKC", "NFKD"])
@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0300\u0316\u0301" * 20 + "b",
        "か" + "\uff9e\u0300" * 30,
        "\u0f40" + "\u0f73\u0f72\u0f71" * 20,
        "\u0344" * 40 + "x" + "☃️" * 40,
        "e\u0301" * 40,
    ],
)
def test_a_long_run_of_marks_is_normalised_as_unicode_says(form: Any, text: str) -> None:
    assert compatible(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("['a', 'b\\x63']", ("a", "bc")),
        ("[\"it's\", 'a\"b']", ("it's", 'a"b')),
        ("['a\\d', 'b']", ("a\\d", "b")),
        ("['a\nb', \"c\"]", None),
        ("['a\rb', \"c\"]", None),
        ("['\\x4', 'b']", None),
        ("['\\N{no such}', 'b']", None),
    ],
)
def test_a_list_that_python_cannot_read_is_an_error_and_no_crash(
    cell: str, ids: tuple[str, ...] | None
) -> None:
    if ids is not None:
        assert parse_ids(cell) == ids
        return
    with pytest.raises(ValueError, match="is not a list of document ids"):
        parse_ids(cell)


@pytest.mark.parametrize(
    ("rows", "sizes", "at_once"),
    [(1_000, [2**20] * 8, 500), (10, [2**30], 1), (10**6, [2**20, 2**20], 2**16), (0, [], 1)],
    ids=["half of it", "large rows", "small rows", "none"],
)
def test_four_megabytes_of_parquet_are_read_at_a_time(rows: int, sizes: list[int], at_once: int) -> None:
    groups = [SimpleNamespace(total_byte_size=size) for size in sizes]
    metadata = SimpleNamespace(num_rows=rows, num_row_groups=len(groups), row_group=groups.__getitem__)
    assert _rows_of_a_batch(metadata) == at_once


@pytest.mark.parametrize("sizes", [[2**10, 2**26], [2**26, 2**10]])
def test_the_largest_group_of_rows_must_fit_into_memory(tmp_path: Path, sizes: list[int]) -> None:
    """Whichever it is: 64 MB that are unpacked, and taken apart."""
    path = tmp_path / "a.parquet"
    path.write_bytes(bytes(1000))
    groups = [SimpleNamespace(total_byte_size=size, num_columns=0) for size in sizes]
    metadata = SimpleNamespace(num_rows=9, num_row_groups=2, row_group=groups.__getitem__)
    with pytest.raises(TableError, match="its content takes more than 100 MB of memory"):
        _check_metadata(path, metadata, Room(path.name, 1000))
