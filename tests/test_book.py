"""The file of a workbook whose rows come compressed and in pieces: real archives, read by other readers. How tables are
printed."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet
from python_calamine import CalamineWorkbook

from rag_eval.report.book import StreamedWorkbook, deflated
from rag_eval.report.column import Column, plain_column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import SheetTable
from rag_eval.store.leftovers import Scratch

ROW = '<row r="{0}"><c r="A{0}" t="inlineStr"><is><t>text {0}</t></is></c><c r="B{0}"><v>{0}</v></c></row>'


def xml(first: int, last: int) -> bytes:
    return "".join(map(ROW.format, range(first, last + 1))).encode()


def made(path: Path, *pieces: bytes) -> Path:
    """A workbook with a header on its first sheet and a text on its second."""
    path.unlink(missing_ok=True)
    workbook = StreamedWorkbook(path, ["First", "Second"], Scratch(path))
    workbook.sheets["First"].write_string(0, 0, "header")
    workbook.sheets["First"].freeze_panes(1, 0)
    workbook.sheets["Second"].write_string(0, 0, "elsewhere")
    for piece in pieces:
        workbook.add_rows(deflated(piece))
    workbook.close()
    return path


def read_back(path: Path) -> list[list[object]]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len(set(archive.namelist())) == len(archive.namelist())
    book = load_workbook(path)
    assert [[cell.value for cell in row] for row in book["Second"]] == [["elsewhere"]]
    assert book["First"].freeze_panes == "A2"
    return [[cell.value for cell in row if cell.value is not None] for row in book["First"]]


def test_rows_in_pieces_follow_on_those_that_the_sheet_has(tmp_path: Path) -> None:
    path = made(tmp_path / "book.xlsx", xml(2, 2), b"", xml(3, 2_000), xml(2_001, 2_001))
    expected = [["header"], *([f"text {row}", row] for row in range(2, 2_002))]
    assert read_back(path) == expected
    assert CalamineWorkbook.from_path(path).get_sheet_by_name("First").to_python()[1:] == expected[1:]
    assert sorted(path.parent.iterdir()) == [path]


def test_without_pieces_the_sheet_has_its_own_rows_only(tmp_path: Path) -> None:
    assert read_back(made(tmp_path / "book.xlsx")) == [["header"]]


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), max_size=6))
@hypothesis_settings(max_examples=20, deadline=None)
def test_where_rows_are_cut_into_pieces_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    pieces, first = [], 2
    for size in sizes:
        pieces.append(xml(first, first + size - 1))
        first += size
    names = "xl/worksheets/sheet1.xml"
    cut = zipfile.ZipFile(made(folder / "cut.xlsx", *pieces)).read(names)
    whole = zipfile.ZipFile(made(folder / "whole.xlsx", b"".join(pieces))).read(names)
    assert cut == whole
    assert cut.count(b"<row ") == 1 + sum(sizes)


def test_a_piece_says_how_long_its_text_is_and_what_it_adds_to_a_checksum() -> None:
    text = "Größe – ".encode() * 1_000
    packed, length, adds = deflated(text)
    assert zlib.decompressobj(wbits=-15).decompress(packed) == text
    assert length == len(text)
    assert len(packed) < length / 20
    before = zlib.crc32(b"before")
    assert zlib.crc32(bytes(length), before) ^ adds == zlib.crc32(b"before" + text)


def test_a_member_has_the_head_and_the_time_of_the_others(tmp_path: Path) -> None:
    with zipfile.ZipFile(made(tmp_path / "book.xlsx", xml(2, 500))) as archive:
        member, other = map(archive.getinfo, ("xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"))
        rows = archive.read(member)
    assert (member.date_time, member.compress_type) == (other.date_time, other.compress_type)
    assert (member.file_size, member.CRC) == (len(rows), zlib.crc32(rows))
    content = (tmp_path / "book.xlsx").read_bytes()
    assert content[member.header_offset :].startswith(member.FileHeader(zip64=False))
    assert member.compress_size < member.file_size / 5


def test_an_abandoned_workbook_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "book.xlsx")
    workbook = StreamedWorkbook(tmp_path / "book.xlsx", ["First"], scratch)
    workbook.add_rows(deflated(xml(2, 3)))
    workbook.abandon()
    assert not Path(scratch.name).exists()
    assert list(tmp_path.iterdir()) == []


# Tables


def sheet_table(
    columns: Sequence[Column[str]], lines: Sequence[str], *, is_whole: bool = False
) -> tuple[SheetTable[str], Callable[[], Worksheet]]:
    """On a sheet with a header of 30 points and lines of 15, and what reads the sheet once it is complete."""
    file = io.BytesIO()
    book = xlsxwriter.Workbook(file)
    table = SheetTable(book.add_worksheet("T"), columns, Formats(book), 30, 15, is_whole=is_whole)
    for line in lines:
        table.append(line)

    def read() -> Worksheet:
        book.close()
        return load_workbook(file)["T"]

    return table, read


def wide(*headers: str) -> list[Column[str]]:
    """Columns of 180 pixels."""
    return [plain_column(header, 25, Look.TEXT, str) for header in headers]


@pytest.mark.parametrize(
    ("columns", "below", "areas"),
    [
        (wide(*"abcdefgh"), (0, 0), ""),
        (wide(*"abcdefghi"), (0, 669), "A1:F20,G1:I4"),
        (wide(*"abcdefghi"), (0, 670), "A1:F4,A5:F20,G1:I4"),
        (wide(*"abcdefghi"), (0, 729), "A1:F4,A5:F20,G1:I4"),
        (wide(*"abcdefghi"), (0, 730), "A1:F4,G1:I4"),
        (wide(*"abcdefghi"), (1172, 0), "A1:G20,H1:I4"),
        (wide(*"abcde", "f", "f low", "f high", "i"), (0, 0), "A1:E20,F1:I4"),
        ([*wide(*"abcdefgh"), plain_column("i", 25, Look.TEXT, str, is_folded=True)], (0, 0), ""),
    ],
)
def test_a_wide_table_is_printed_on_several_pages_each_with_the_first_column(
    columns: Sequence[Column[str]], below: tuple[int, int], areas: str
) -> None:
    """What floats below the table is on the first page, on one of its own, or on none."""
    table, read = sheet_table(columns, ["text"] * 3)
    table.print_on_pages(below, 19)
    assert re.sub(r"'?T'?!|\$", "", read().print_area or "") == areas


@pytest.mark.parametrize(
    ("text", "height"),
    [("a" * 10, None), ("a" * 11, 25.5), ("a\nb", 25.5), ("a\n" * 31, 408), ("a\n" * 32, 408.75)],
)
def test_a_line_of_a_whole_table_is_as_high_as_its_texts(text: str, height: float | None) -> None:
    columns = [
        plain_column("a", 10, Look.TEXT, str),
        plain_column("b", 10, Look.COUNT, len),
        plain_column("d", 10, Look.TEXT, lambda line: line[:1]),
        plain_column("c", 1, Look.TEXT, str, is_folded=True),
    ]
    for is_whole in (True, False):
        _, read = sheet_table(columns, [text], is_whole=is_whole)
        assert read().row_dimensions[2].height == (height if is_whole else None)
