"""What small files that are made to cost much do cost: memory and processor time of the command that is given one.

    python benchmarks/input_bounds.py [--only WORD …] [--keep FOLDER]

Every file is below 5 MB. Each is made and read in processes of their own; the command is the real one. `refused` means
exit code 2 with a message, `read` that it went on to its end. A process that takes more than 2 GB or a minute of
processor time is ended and reported as such. The jobs read all rows (max_rows is a million) and judge none (--dry-run)
unless the row says `judged`.
"""

import argparse
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT_MB, LIMIT_SECONDS = 2_000, 60
TARGET_MB, TARGET_SECONDS = 500, 10
MILLION = 1_000_000
RUN = ("run", "{}", "--dry-run", "--judge", "offline", "--config", "all.ini", "-o", "r.xlsx")
JUDGED = ("run", "{}", "--judge", "offline", "--config", "all.ini", "-o", "r.xlsx")
RETRIEVAL = ("retrieval", "{}", "--reference", "gold.csv")
ALIGN = ("rubric", "align", "{}", "{}", "--rubric", "rubric.json")
CHECK = ("rubric", "check", "{}")
CONFIG = ("run", "small.csv", "--dry-run", "--judge", "offline", "--config", "{}")
BASELINE = ("run", "small.csv", "--judge", "offline", "--baseline", "{}", "-o", "r.xlsx")
AGAIN = ("run", "{}", "--report-only", "--judge", "offline", "-o", "r.xlsx")

Make = Callable[[Path], None]


class Hostile(NamedTuple):
    """A file, and the command that reads it."""

    name: str
    command: tuple[str, ...]
    make: Make


FILES: list[Hostile] = []


def hostile(name: str, *commands: tuple[str, ...]) -> Callable[[Make], Make]:
    """Registers the maker of a file for each command."""

    def register(make: Make) -> Make:
        FILES.extend(Hostile(name, command, make) for command in commands)
        return make

    return register


# --- .xlsx -------------------------------------------------------------------------------------------------------

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml'
    '.sheet.main+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
)
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" '
    'Target="worksheets/sheet1.xml"/></Relationships>'
)
_BOOK = (
    f'<?xml version="1.0"?><workbook {_MAIN} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships"><sheets>{}</sheets></workbook>'
)
_SHEET = '<sheet name="S{0}" sheetId="{0}" r:id="r1"/>'
Parts = dict[str, Iterator[str] | str]


def excel(path: Path, rows: Iterator[str] | str, **parts: Iterator[str] | str) -> None:
    """A workbook of the given XML: rows, and further parts by `strings`, `styles`, `book`, `tail`, `types`, `sheet`."""
    sheet: Iterator[str] | str = parts.pop("sheet", "")
    head, tail = f"<worksheet {_MAIN}><sheetData>", parts.pop("tail", "")
    contents: Parts = {
        "[Content_Types].xml": parts.pop("types", _TYPES),
        "xl/workbook.xml": parts.pop("book", _BOOK.format(_SHEET.format(1))),
        "xl/_rels/workbook.xml.rels": parts.pop("rels", _RELS),
        "xl/sharedStrings.xml": chained(f"<sst {_MAIN}>", parts.pop("strings", ""), "</sst>"),
        "xl/worksheets/sheet1.xml": sheet or chained(head, rows, "</sheetData>", tail, "</worksheet>"),
    }
    if "styles" in parts:
        contents["xl/styles.xml"] = parts.pop("styles")
    zipped(path, contents)


def zipped(path: Path, contents: Parts) -> None:
    """The parts, and noise up to 4.9 MB: what is allowed grows with the file, and more than 200 times it is refused."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in contents.items():
            with archive.open(name, "w", force_zip64=True) as part:
                for piece in [content] if isinstance(content, str) else content:
                    part.write(piece.encode())
        taken = sum(part.compress_size + 2 * len(part.filename) + 200 for part in archive.infolist())
        archive.writestr("noise", random.Random(1).randbytes(max(0, 4_900_000 - taken)), zipfile.ZIP_STORED)


def chained(*pieces: Iterator[str] | str) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        else:
            yield from piece


def shared(*texts: str) -> str:
    return "".join(f"<si><t>{text}</t></si>" for text in texts)


HEADER = '<row r="1"><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c></row>'
NAMES = shared("Query", "Bot_A", "Context")


def expanding() -> str:
    """The beginning of an XML file whose entity e9 is a terabyte."""
    entities = [f'<!ENTITY e{n} "{10 * f"&e{n - 1};"}">' for n in range(1, 10)]
    word = "a" * 1000
    return f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "{word}">{"".join(entities)}]>'


def rows_of(count: int, row: str) -> Iterator[str]:
    """The same row again and again, in blocks."""
    yield HEADER
    for start in range(0, count, 1000):
        yield row * min(1000, count - start)


@hostile("xlsx: an unbroken word of a million letters", RUN, JUDGED)
def _(path: Path) -> None:
    excel(path, rows_of(1, row_of(3, 3, 3)), strings=NAMES + shared("a" * MILLION))


def row_of(*numbers: int) -> str:
    cells = "".join(f'<c t="s"><v>{number}</v></c>' for number in numbers)
    return f"<row>{cells}</row>"


@hostile("xlsx: a million letters with blanks", JUDGED)
def _(path: Path) -> None:
    excel(path, rows_of(1, row_of(3, 3, 3)), strings=NAMES + shared("abc def " * (MILLION // 8)))


@hostile("xlsx: a cell of 100 million letters", RUN)
def _(path: Path) -> None:
    excel(
        path,
        rows_of(1, row_of(3, 3, 3)),
        strings=chained(NAMES, "<si><t>", repeated("a" * MILLION, 100), "</t></si>"),
    )


def repeated(piece: str, times: int) -> Iterator[str]:
    for _ in range(times):
        yield piece


@hostile("xlsx: a shared text of a million letters in 300,000 rows", RUN)
def _(path: Path) -> None:
    excel(path, rows_of(300_000, row_of(3, 3, 3)), strings=NAMES + shared("a" * 999_999))


@hostile("xlsx: two shared contexts of a million letters in turn, 300,000 rows", RUN)
def _(path: Path) -> None:
    row = row_of(3, 4, 3) + row_of(4, 3, 4)
    excel(path, rows_of(150_000, row), strings=NAMES + shared("a\n\n" * 333_000, "b || " * 199_000))


@hostile("xlsx: a shared blank of a million spaces in a million rows", RUN)
def _(path: Path) -> None:
    blank = " " * 999_999
    strings = NAMES + f'<si><t xml:space="preserve">{blank}</t></si>'
    excel(path, rows_of(MILLION, row_of(3)), strings=strings)


@hostile("xlsx: a million short rows", RUN)
def _(path: Path) -> None:
    excel(path, rows_of(MILLION, row_of(3, 3)), strings=NAMES + shared("a"))


@hostile("xlsx: 20 million cells", RUN)
def _(path: Path) -> None:
    excel(path, chained(HEADER, repeated("<row>" + "<c/>" * 16_000 + "</row>", 1250)), strings=NAMES)


@hostile("xlsx: one row of 20 million cells", RUN)
def _(path: Path) -> None:
    excel(path, chained("<row>", repeated("<c/>" * 100_000, 200), "</row>"), strings=NAMES)


@hostile("xlsx: 20 million empty rows", RUN, BASELINE)
def _(path: Path) -> None:
    excel(path, chained(HEADER, repeated("<row/>" * 100_000, 200)), strings=NAMES)


@hostile("xlsx: 100,000 rows with a cell in the last column", RUN, RETRIEVAL)
def _(path: Path) -> None:
    rows = (f'<row r="{n}"><c r="XFD{n}" t="s"><v>0</v></c></row>' for n in range(2, 100_002))
    excel(path, chained(HEADER, rows), strings=NAMES)


@hostile("xlsx: a million runs in a cell", RUN)
def _(path: Path) -> None:
    runs = repeated("<r><t>a</t></r>" * 100_000, 20)
    excel(path, rows_of(1, row_of(3, 3, 3)), strings=chained(NAMES, "<si>", runs, "</si>"))


@hostile("xlsx: phonetic runs of a gigabyte", RUN)
def _(path: Path) -> None:
    word = "a" * 100_000
    runs = repeated(f'<rPh sb="0" eb="1"><t>{word}</t></rPh>' * 10, 450)
    excel(path, rows_of(1, row_of(3, 3, 3)), strings=chained(NAMES, "<si><t>x</t>", runs, "</si>"))


@hostile("xlsx: inline texts of 400 MB", RUN)
def _(path: Path) -> None:
    cell = '<c t="inlineStr"><is><t>' + "a" * 30_000 + "</t></is></c>"
    excel(path, chained(HEADER, repeated(f"<row>{cell * 3}</row>" * 10, 450)), strings=NAMES)


@hostile("xlsx: 4 million shared texts", RUN)
def _(path: Path) -> None:
    excel(
        path, rows_of(1, row_of(3, 3)), strings=chained(NAMES, repeated("<si><t>ab</t></si>" * 10_000, 400))
    )


@hostile("xlsx: shared texts of 450 MB", RUN)
def _(path: Path) -> None:
    texts = repeated(shared("a" * 900_000), 500)
    excel(path, rows_of(1, row_of(3, 3)), strings=chained(NAMES, texts))


@hostile("xlsx: shared texts with an emoji each", RUN)
def _(path: Path) -> None:
    texts = repeated(shared("😀" + "a" * 900_000), 250)
    excel(path, rows_of(1, row_of(3, 3)), strings=chained(NAMES, texts))


@hostile("xlsx: 3 million merged areas", RUN)
def _(path: Path) -> None:
    tail = "<mergeCells>" + '<mergeCell ref="A1:B2"/>' * 3_000_000 + "</mergeCells>"
    excel(path, rows_of(1, row_of(3, 3)), strings=NAMES + shared("a"), tail=tail)


@hostile("xlsx: 100,000 sheets on one part", RUN)
def _(path: Path) -> None:
    book = _BOOK.format("".join(map(_SHEET.format, range(1, 100_001))))
    excel(path, rows_of(100, row_of(3, 3)), strings=NAMES + shared("a"), book=book)


@hostile("xlsx: 10,000 bots", RUN)
def _(path: Path) -> None:
    cells = "".join(f'<c t="inlineStr"><is><t>Bot_{n}</t></is></c>' for n in range(10_000))
    excel(path, f'<row><c t="s"><v>0</v></c>{cells}</row>{row_of(0, *[1] * 10_000)}', strings=NAMES)


@hostile("xlsx: 200 bots and 5,000 rows with a query alone", RUN)
def _(path: Path) -> None:
    cells = "".join(f'<c t="inlineStr"><is><t>Bot_{n}</t></is></c>' for n in range(200))
    rows = chained(f'<row><c t="s"><v>0</v></c>{cells}</row>', repeated(row_of(0), 5_000))
    excel(path, rows, strings=NAMES)


@hostile("xlsx: 200 bots and 300,000 rows with a query alone", RUN)
def _(path: Path) -> None:
    cells = "".join(f'<c t="inlineStr"><is><t>Bot_{n}</t></is></c>' for n in range(200))
    rows = chained(f'<row><c t="s"><v>0</v></c>{cells}</row>', repeated(row_of(0) * 1000, 300))
    excel(path, rows, strings=NAMES)


@hostile("xlsx: a header of 16,384 columns", RUN)
def _(path: Path) -> None:
    excel(path, row_of(0, 1, *[2] * 16_382) + row_of(0, 1), strings=NAMES)


@hostile("xlsx: a header of a million letters", RUN)
def _(path: Path) -> None:
    excel(path, row_of(0, 3, 2) + row_of(0, 1, 1), strings=NAMES + shared("Bot_" + "a" * 900_000))


@hostile("xlsx: entities that expand", RUN)
def _(path: Path) -> None:
    cells = '<row><c t="str"><v>&e9;</v></c></row>'
    sheet = f"{expanding()}<worksheet {_MAIN}><sheetData>{cells}</sheetData></worksheet>"
    excel(path, "", sheet=sheet)


@hostile("xlsx: a megabyte of entity, 1,000 times, behind 20 MB of blanks", RUN)
def _(path: Path) -> None:
    word = "a" * MILLION
    doctype = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e "{word}">]>'
    cells = "<row><c t='str'><v>&e;</v></c></row>" * 1000
    blanks = " " * 20 * MILLION
    sheet = f"{doctype}<worksheet {_MAIN}>{blanks}<sheetData>{cells}</sheetData></worksheet>"
    excel(path, "", sheet=sheet)


@hostile("xlsx: a comment of 400 MB", RUN)
def _(path: Path) -> None:
    excel(
        path,
        chained("<!--", repeated("a" * MILLION, 400), "-->", rows_of(1, row_of(3, 3))),
        strings=NAMES + shared("a"),
    )


@hostile("xlsx: an attribute of 400 MB", RUN)
def _(path: Path) -> None:
    excel(path, chained('<row spans="', repeated("a" * MILLION, 400), '"/>'), strings=NAMES)


@hostile("xlsx: a million attributes", RUN)
def _(path: Path) -> None:
    excel(path, chained("<row ", (f' a{n}=""' for n in range(MILLION)), "/>"), strings=NAMES)


@hostile("xlsx: elements nested 10 million deep", RUN)
def _(path: Path) -> None:
    excel(path, chained(HEADER, repeated("<a>" * 100_000, 100)), strings=NAMES)


@hostile("xlsx: styles of 200 MB", RUN)
def _(path: Path) -> None:
    xfs = repeated('<xf numFmtId="14"><alignment/></xf>' * 10_000, 600)
    styles = chained(f"<styleSheet {_MAIN}><cellXfs>", xfs, "</cellXfs></styleSheet>")
    excel(path, rows_of(1, row_of(3, 3)), strings=NAMES + shared("a"), styles=styles)


@hostile("xlsx: a number format of a million brackets", RUN)
def _(path: Path) -> None:
    formats = '<numFmts><numFmt numFmtId="200" formatCode="' + "[" * MILLION + '"/></numFmts>'
    styles = f'<styleSheet {_MAIN}>{formats}<cellXfs><xf numFmtId="200"/></cellXfs></styleSheet>'
    excel(path, rows_of(1, row_of(3, 3)), strings=NAMES + shared("a"), styles=styles)


@hostile("xlsx: types of content of 300 MB", RUN)
def _(path: Path) -> None:
    kinds = repeated('<Default Extension="a" ContentType="b"/>' * 1000, 7_500)
    excel(path, "", types=chained(_TYPES.removesuffix("</Types>"), kinds, "</Types>"))


@hostile("xlsx: bare zeros of 4 GB", RUN, RETRIEVAL)
def _(path: Path) -> None:
    excel(path, repeated("\0" * MILLION, 4_000))


@hostile("xlsx: 50,000 parts", RUN)
def _(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        for number in range(40_000):
            archive.writestr(str(number), "")


# --- .ods --------------------------------------------------------------------------------------------------------

_SPACES = "".join(
    f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
    for short in ("office", "table", "text")
)


def open_document(path: Path, table: Iterator[str] | str) -> None:
    """An .ods file with the given content of its only table."""
    head = f'<office:document-content{_SPACES}><office:body><office:spreadsheet><table:table table:name="S">'
    tail = "</table:table></office:spreadsheet></office:body></office:document-content>"
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    content = chained(head, table, tail)
    zipped(path, {"mimetype": mimetype, "META-INF/manifest.xml": "<manifest/>", "content.xml": content})


def ods_cell(text: str, times: int = 1) -> str:
    return (
        f'<table:table-cell table:number-columns-repeated="{times}" office:value-type="string"><text:p>{text}</text:p>'
        "</table:table-cell>"
    )


def ods_row(*cells: str, times: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{times}">{"".join(cells)}</table:table-row>'


ODS_HEADER = ods_row(ods_cell("Query"), ods_cell("Bot_A"), ods_cell("Context"))


@hostile("ods: two thousand million spaces", RUN)
def _(path: Path) -> None:
    open_document(path, ODS_HEADER + ods_row(ods_cell('<text:s text:c="2000000000"/>'), ods_cell("a")))


@hostile("ods: a cell repeated 16,000 times in a million rows", RUN)
def _(path: Path) -> None:
    open_document(path, ODS_HEADER + ods_row(ods_cell("a", 16_000), times=MILLION))


@hostile("ods: a text of 900,000 letters repeated in 1,000 rows", RUN)
def _(path: Path) -> None:
    open_document(path, ODS_HEADER + ods_row(ods_cell("a" * 900_000), ods_cell("b"), times=1000))


@hostile("ods: a stray cell in the last corner", RUN)
def _(path: Path) -> None:
    empty = '<table:table-cell table:number-columns-repeated="16383"/>'
    open_document(path, ODS_HEADER + ods_row(empty, times=1_048_574) + ods_row(empty, ods_cell("a")))


@hostile("ods: 3 million cells", RUN)
def _(path: Path) -> None:
    open_document(path, chained(ODS_HEADER, repeated(ods_row(*[ods_cell("a")] * 3), MILLION)))


@hostile("ods: a comment of 400 MB", RUN)
def _(path: Path) -> None:
    open_document(path, chained("<!--", repeated("a" * MILLION, 400), "-->"))


@hostile("ods: 200 MB of text in one cell", RUN)
def _(path: Path) -> None:
    cell = chained(
        "<table:table-row><table:table-cell><text:p>",
        repeated("a" * MILLION, 200),
        "</text:p></table:table-cell>",
    )
    open_document(path, chained(ODS_HEADER, cell, "</table:table-row>"))


@hostile("ods: entities that expand", RUN)
def _(path: Path) -> None:
    content = f"{expanding()}<office:document-content{_SPACES}>&e9;</office:document-content>"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)


# --- .xls --------------------------------------------------------------------------------------------------------


def old_excel(path: Path, cells: Iterator[tuple[int, int, str]]) -> None:
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("S", cell_overwrite_ok=True)
    for column, name in enumerate(("Query", "Bot_A", "Context")):
        sheet.write(0, column, name)
    for row, column, text in cells:
        sheet.write(row, column, text)
    book.save(str(path))


@hostile("xls: a shared text of 32,000 letters in 60,000 rows", RUN)
def _(path: Path) -> None:
    old_excel(path, ((row, column, "a" * 32_000) for row in range(1, 60_000) for column in range(2)))


@hostile("xls: stray cells in the last row and column", RUN)
def _(path: Path) -> None:
    old_excel(path, iter([(65_535, 255, "a"), (1, 0, "q"), (1, 1, "a")]))


@hostile("xls: a chain of sectors that returns to itself", RUN)
def _(path: Path) -> None:
    old_excel(path, iter([(1, 0, "q"), (1, 1, "a")]))
    content = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<I", content, 76)
    place = (table + 1) * 512
    struct.pack_into("<I", content, place + 4, 0)
    path.write_bytes(content)


@hostile("xls: 10,000 sheets at one place", RUN)
def _(path: Path) -> None:
    import xlwt

    book = xlwt.Workbook()
    for number in range(2_000):
        book.add_sheet(f"S{number}")
    sheet = book.get_sheet(0)
    for row in range(20_000):
        sheet.write(row, 0, "q")
        sheet.write(row, 1, 1)
    book.save(str(path))
    content = bytearray(path.read_bytes())
    first = content.find(b"\x85\x00")
    place, at = content[first + 4 : first + 8], first
    while at >= 0:
        (length,) = struct.unpack_from("<H", content, at + 2)
        if content[at : at + 2] != b"\x85\x00" or length > 40:
            break
        content[at + 4 : at + 8] = place
        at += 4 + length
    path.write_bytes(content)


@hostile("xls: noise behind the first sector", RUN)
def _(path: Path) -> None:
    old_excel(path, iter([(1, 0, "q"), (1, 1, "a")]))
    head = path.read_bytes()[:512]
    path.write_bytes(head + random.Random(1).randbytes(4_000_000))


# --- text --------------------------------------------------------------------------------------------------------


def text(name: str, content: Callable[[], str], *commands: tuple[str, ...]) -> None:
    @hostile(name, *commands)
    def _(path: Path) -> None:
        path.write_text(content(), encoding="utf-8", newline="")


_HEAD = "Query,Bot_A,Context\n"
text("csv: 4.9 million blank lines", lambda: _HEAD + "\n" * 4_900_000, RUN)
text("csv: 4.9 million blank lines above", lambda: "\n" * 4_900_000 + _HEAD + "q,a,c\n", RUN)
text("csv: 4.9 million commas", lambda: _HEAD + "," * 4_900_000, RUN, RETRIEVAL)
text("csv: 4.9 million commas as the header", lambda: "," * 4_900_000, RUN, RETRIEVAL)
text("csv: 4.9 million commas behind a quote", lambda: _HEAD + '"a\n"' + "," * 4_800_000 + '"b"\n', RUN)
text(
    "csv: a million columns", lambda: ",".join(f"c{n}" for n in range(600_000)) + "\n", RUN, RETRIEVAL, ALIGN
)
text("csv: 4,000 bots", lambda: "Query," + ",".join(f"Bot_{n}" for n in range(4_000)) + "\nq\n", RUN)
text(
    "csv: 200 bots, judged",
    lambda: "Query," + ",".join(f"Bot_{n}" for n in range(200)) + "\nq,a\nr,b\n",
    JUDGED,
)
text("csv: 10,000 bots", lambda: "Query," + ",".join(f"Bot_{n}" for n in range(10_000)) + "\nq\n", RUN)
text(
    "csv: 5,000 columns of labels",
    lambda: "Query,Bot_A," + ",".join(f"Human_x{n}" for n in range(4_900)) + "\nq,a\n",
    RUN,
)
text("csv: 1.2 million rows of two letters", lambda: "Query,Bot_A\n" + "q,a\n" * 1_200_000, RUN)
text("csv: 600,000 torn rows", lambda: "Query,Bot_A\n" + "q,a,b,c\n" * 600_000, RUN)
text("csv: 2 million rows without a query", lambda: "Query,Bot_A\n" + ",a\n" * 1_500_000, RUN)
text("csv: 200,000 delimiters in a cell", lambda: _HEAD + "q,a," + "b || " * 190_000 + "\n", RUN, JUDGED)
text("csv: 400,000 bars in brackets", lambda: _HEAD + "q,a," + "(a || " * 160_000 + "\n", RUN)
text("csv: 300,000 blank lines in a cell", lambda: _HEAD + 'q,a,"' + "b\n\n" * 300_000 + '"\n', RUN, JUDGED)
text("csv: half a million brackets in a cell", lambda: _HEAD + "q,a," + "[" * 999_000 + "\n", RUN)
text("csv: a cell of 4.9 million letters", lambda: _HEAD + "q," + "a" * 4_900_000 + ",c\n", RUN)
text("csv: a quote that is not closed", lambda: _HEAD + 'q,"' + "a,b\n" * 1_200_000, RUN)
text(
    "csv: a query of a million combining marks",
    lambda: _HEAD + "q,a" + "\u0300\u0316" * 499_000 + ",c\n",
    JUDGED,
)
text(
    "csv: a million Chinese characters",
    lambda: _HEAD + "q," + "".join(map(chr, range(0x4E00, 0x9000))) * 55 + ",c\n",
    JUDGED,
)
text(
    "csv: unbroken words everywhere",
    lambda: _HEAD + ",".join("abcdefghij" * 99_000 for _ in range(3)) + "\n",
    JUDGED,
)
text("csv: a million digits and commas", lambda: _HEAD + 'q,"' + "1,234," * 160_000 + '",c\n', JUDGED)
text(
    "csv: a label of a million digits",
    lambda: "Query,Bot_A,Human_Faithfulness\nq,a," + "1" * 990_000 + "x\n",
    RUN,
)
text(
    "csv: documents of a million escapes",
    lambda: "Query,Bot_A,Gold_Docs,Retrieved_Docs\nq,a,\"['\\x41'" + ", '\\x41'" * 120_000 + ']",x\n',
    RUN,
)
text("csv: a header of 4.9 million letters", lambda: "Query,Bot_" + "a" * 4_900_000 + "\nq,a\n", RUN)
text("tsv: 4.9 million tabs", lambda: "Query\tBot_A\n" + "\t" * 4_900_000, RUN, RETRIEVAL)
text("tsv: 4.9 million blank lines", lambda: "qid\tdoc_ids\n" + "\n" * 4_900_000 + "1\ta\n", RETRIEVAL)
text("tsv: an id of 4.9 million letters", lambda: "qid\tdoc_ids\n1\t" + "a" * 4_900_000 + "\n", RETRIEVAL)
text(
    "tsv: 2 million ids in a cell",
    lambda: "qid\tdoc_ids\n1\t" + "||".join("abc" for _ in range(190_000)) + "\n",
    RETRIEVAL,
)
text(
    "tsv: 800,000 queries", lambda: "qid\tdoc_ids\n" + "".join(f"{n}\ta\n" for n in range(550_000)), RETRIEVAL
)
text("json: 4.9 million brackets", lambda: "[" * 4_900_000, RUN, RETRIEVAL, AGAIN, BASELINE, CHECK)
text("json: a million empty objects", lambda: "[" + "{}," * 1_600_000 + "{}]", RUN, RETRIEVAL, AGAIN)
text(
    "json: a million keys",
    lambda: "[{" + ",".join(f'"{n}":1' for n in range(450_000)) + "}]",
    RETRIEVAL,
    AGAIN,
    BASELINE,
)
text("json: a number of 4.9 million digits", lambda: '[{"qid":' + "1" * 4_900_000 + "}]", RETRIEVAL)
text("jsonl: deeply nested lines", lambda: ("[" * 50_000 + "\n") * 90, RUN, RETRIEVAL)
text("jsonl: 4.9 million blank lines", lambda: "\n" * 4_900_000, RUN, RETRIEVAL)
text("jsonl: objects in objects", lambda: '{"a":' * 900_000 + "1" + "}" * 400_000, RUN)
_CONTEXTS = "Query,Bot_A,Context\n"
text(
    "csv: five Python lists of objects",
    lambda: _CONTEXTS + ('q,a,"[' + "{'text':'a'}," * 74_000 + ']"\n') * 5,
    RUN,
)
text("csv: five printed arrays", lambda: _CONTEXTS + ('q,a,"[' + "'a' " * 240_000 + ']"\n') * 5, RUN)
text("yaml: 240,000 bytes of scalars", lambda: "[" + "a," * 120_000 + "]", CHECK)
text("yaml: 4.9 million bytes of scalars", lambda: "[" + "a," * 2_400_000 + "]", CHECK)
text(
    "yaml: aliases that expand",
    lambda: (
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    ),
    CHECK,
)
text(
    "yaml: merges that expand",
    lambda: (
        "a0: &a0 {x: 1, y: 2}\n"
        + "".join(f"a{n}: &a{n}\n  <<: [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    ),
    CHECK,
)
text("yaml: brackets nested 200,000 deep", lambda: "[" * 200_000, CHECK)
text("yaml: a number in base 60 of 120,000 digits", lambda: "rubric_id: 1" + ":1" * 120_000, CHECK)
text(
    "yaml: 20,000 metrics without all they need",
    lambda: "rubric_id: r\nmetrics:\n" + "- {id: a}\n" * 20_000,
    CHECK,
)
text("ini: 40,000 unknown keys", lambda: "[judge]\n" + "".join(f"k{n}=1\n" for n in range(30_000)), CONFIG)
text(
    "ini: 4.9 MB of unknown keys", lambda: "[judge]\n" + "".join(f"k{n}=1\n" for n in range(490_000)), CONFIG
)
text("ini: a line of 240,000 blanks", lambda: "[judge]\nprovider" + " " * 240_000 + "x\n", CONFIG)
text("ini: lines of 4,000 blanks", lambda: "[judge]\n" + ("provider" + " " * 4_000 + "x\n") * 60, CONFIG)


# --- .parquet ----------------------------------------------------------------------------------------------------


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> None:
    import pyarrow
    from pyarrow import parquet as files

    files.write_table(pyarrow.table(columns), path, **options)


@hostile("parquet: a text of 900,000 letters in a million rows", RUN)
def _(path: Path) -> None:
    import pyarrow

    column = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * MILLION, pyarrow.int32()), ["a" * 900_000]
    )
    parquet(path, {"Query": column, "Bot_A": column}, compression="zstd")


@hostile("parquet: 500 lists of 1,000 texts of 900,000 letters", RUN)
def _(path: Path) -> None:
    import pyarrow

    texts = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 500_000, pyarrow.int32()), ["a" * 900_000]
    )
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(range(0, 500_001, 1000), pyarrow.int32()), texts)
    parquet(path, {"Query": ["q"] * 500, "Bot_A": ["a"] * 500, "Context": lists}, compression="zstd")


@hostile("parquet: a gigabyte of text, compressed", RUN)
def _(path: Path) -> None:
    column = ["a" * 900_000] * 1_100
    parquet(path, {"Query": column, "Bot_A": ["a"] * 1_100}, compression="zstd", use_dictionary=False)


@hostile("parquet: 300 MB of distinct texts, compressed", RUN)
def _(path: Path) -> None:
    column = [f"{number}" + "a" * 900_000 for number in range(330)]
    parquet(path, {"Query": column, "Bot_A": ["a"] * 330}, compression="zstd")


@hostile("parquet: a cell of 100 million letters", RUN, RETRIEVAL)
def _(path: Path) -> None:
    parquet(
        path,
        {"Query": ["a" * 100 * MILLION], "Bot_A": ["a"], "qid": [1], "doc_ids": ["a"]},
        compression="zstd",
    )


@hostile("parquet: a hundred million rows", RUN, RETRIEVAL)
def _(path: Path) -> None:
    import pyarrow

    nothing = pyarrow.nulls(100 * MILLION, pyarrow.int8())
    parquet(
        path, {"Query": nothing, "Bot_A": nothing, "qid": nothing, "doc_ids": nothing}, compression="zstd"
    )


@hostile("parquet: a list of 50 million numbers", RUN)
def _(path: Path) -> None:
    import pyarrow

    numbers = pyarrow.repeat(pyarrow.scalar(1, pyarrow.int8()), 50 * MILLION)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 50 * MILLION], pyarrow.int32()), numbers)
    parquet(path, {"Query": ["q"], "Bot_A": ["a"], "Context": lists}, compression="zstd")


@hostile("parquet: a list of 5 million numbers", RUN)
def _(path: Path) -> None:
    import pyarrow

    numbers = pyarrow.repeat(pyarrow.scalar(1, pyarrow.int8()), 5 * MILLION)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 5 * MILLION], pyarrow.int32()), numbers)
    parquet(path, {"Query": ["q"], "Bot_A": ["a"], "Context": lists}, compression="zstd")


@hostile("parquet: 12,000 columns", RUN, RETRIEVAL)
def _(path: Path) -> None:
    parquet(path, {f"c{number}": [1] for number in range(12_000)})


@hostile("parquet: a million short rows", RUN)
def _(path: Path) -> None:
    parquet(path, {"Query": ["q"] * MILLION, "Bot_A": ["a"] * MILLION}, compression="zstd")


# --- the measuring -----------------------------------------------------------------------------------------------

_SMALL = {
    "all.ini": "[evaluation]\nmax_rows = 1000000\n",
    "small.csv": "Query,Bot_A\nq,a\n",
    "gold.csv": "qid,gold_docs\n1,a\n",
    "rubric.json": '{"rubric_id": "r", "passing_score_threshold": 0, "metrics": '
    '[{"id": "m", "rubric": "Is it?", "mandatory": true}]}',
}


class Measure(NamedTuple):
    """Of one process, whose end is told by `outcome`."""

    outcome: str
    megabytes: float
    seconds: float
    said: str


def main() -> None:
    options = _options()
    if options.make:
        FILES[int(options.make[0])].make(Path(options.make[1]))
        return
    worst = Measure("", 0.0, 0.0, "")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary)
        folder.mkdir(exist_ok=True)
        for name, content in _SMALL.items():
            (folder / name).write_text(content, encoding="utf-8")
        print(
            "| file | size MB | command | outcome | peak MB | processor s | message |\n|---|---|---|---|---|---|---|"
        )
        for number, (name, command, _) in enumerate(FILES):
            if options.only and not any(word in f"{name} {' '.join(command)}" for word in options.only):
                continue
            path = _made(number, name, folder)
            size = path.stat().st_size / 1e6
            it = _measured([part.format(path.name) for part in command], folder)
            mark = " **over**" if it.megabytes > TARGET_MB or it.seconds > TARGET_SECONDS else ""
            what = " ".join(command[:2]) if command[0] == "rubric" else command[0]
            what = {BASELINE: "--baseline", CONFIG: "--config", AGAIN: "--report-only", JUDGED: "judged"}.get(
                command, what
            )
            print(
                f"| {name} | {size:.1f} | {what} | {it.outcome}{mark} | {it.megabytes:,.0f} | {it.seconds:.1f} "
                f"| {it.said} |",
                flush=True,
            )
            worst = Measure("", max(worst.megabytes, it.megabytes), max(worst.seconds, it.seconds), "")
            path.unlink()
    print(f"At most {worst.megabytes:,.0f} MB and {worst.seconds:.1f} s of processor time.")


def _made(number: int, name: str, folder: Path) -> Path:
    """In a process of its own, because the peak of a process includes that of its parent when it began."""
    path = folder / f"hostile{number}.{name.split(':')[0]}"
    subprocess.run([sys.executable, __file__, "--make", str(number), str(path)], check=True)
    assert path.stat().st_size < 5_000_000, f"{name} has {path.stat().st_size:,} bytes"
    return path


def _measured(command: list[str], folder: Path) -> Measure:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_eval", *command],
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        ended_by = _watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        message = said.read().decode(errors="replace")
    outcome = {0: "read", 2: "refused", 3: "read"}.get(process.returncode, f"exit {process.returncode}")
    if "internal error" in message:
        outcome = "internal error"
    last = next((line for line in message.splitlines() if "rag-eval:" in line or "refused" in line), "")
    return Measure(
        ended_by or outcome,
        usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024),
        usage.ru_utime + usage.ru_stime,
        last.removeprefix("rag-eval: ").replace("|", "/")[:110] if outcome != "read" else "",
    )


def _watch(pid: int) -> str:
    """Waits for a process to end, or ends it when it takes far too much."""
    ticks = os.sysconf("SC_CLK_TCK")
    while True:
        time.sleep(0.05)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return ""
        if fields[0] == "Z":
            return ""
        seconds = (int(fields[11]) + int(fields[12])) / ticks
        megabytes = int(fields[21]) * resource.getpagesize() / 2**20
        if seconds > LIMIT_SECONDS or megabytes > LIMIT_MB:
            os.kill(pid, signal.SIGKILL)
            return "ended"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", help="Words of which a file's name or command has one.")
    parser.add_argument("--keep", help="A folder for the files, instead of a temporary one.")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
