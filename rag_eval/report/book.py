"""The file of a workbook: XlsxWriter's, with rows that other processes have rendered and compressed.

XlsxWriter lets a workbook have a packager of its own. Not documented is what a packager hands over: the path of each
file on disk, and its name in the archive. Imported only where a report is written, for XlsxWriter takes long to import.
"""

import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.packager import Packager
from xlsxwriter.utility import xl_rowcol_to_cell_fast
from xlsxwriter.worksheet import CellNumberTuple, CellStringTuple, Worksheet

from rag_eval.errors import OutputError, TableError
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.tables.package import Package

Piece = tuple[bytes, int, int]
"""Part of a text: deflated, its length in bytes, and its CRC-32 combined (^) with that of as many zeros."""
_FIRST_SHEET = "xl/worksheets/sheet1.xml"
_END_OF_ROWS = b"</sheetData>"
_TIME = (1980, 1, 31, 0, 0, 0)
"""XlsxWriter gives it to all files of a workbook that is not put together in memory."""
_LEVEL = 4
"""Half the time of the usual 6, and a file that is 9 % larger."""
_SMALL = 2**20
"""Bytes of the rows of all sheets up to which a workbook is put together in memory."""
_ZIP64 = 2**31
"""From this size on, a member of an archive needs a longer head."""
_OFFICE = "http://schemas.openxmlformats.org"
_SHEET, _ROW = (f"{{{_OFFICE}/spreadsheetml/2006/main}}{tag}" for tag in ("sheet", "row"))
_ID = f"{{{_OFFICE}/officeDocument/2006/relationships}}id"
_RELATION = f"{{{_OFFICE}/package/2006/relationships}}Relationship"


@contextmanager
def workbook_errors(target: Path) -> Iterator[None]:
    """Like output_errors, for XlsxWriter too, which wraps what went wrong."""
    with output_errors(target):
        try:
            yield
        except FileCreateError as error:
            cause = error.args[0] if error.args else None
            raise cause if isinstance(cause, OSError) else OSError(str(error)) from error


class StreamedWorkbook:
    """An XlsxWriter workbook that keeps its rows on disk, in a folder of its own."""

    def __init__(self, path: Path, names: Sequence[str], scratch: Scratch) -> None:
        self.scratch = scratch
        self.place = path
        """Where the file is."""
        self.book = _Book(path, scratch.name)
        self.book.use_zip64()
        self.sheets = {name: self.book.add_worksheet(name, RowSheet) for name in names}

    def add_rows(self, piece: Piece) -> None:
        """Rows of the first sheet as XML. They follow on those that XlsxWriter writes on it."""
        self.book.rows.append(piece)

    def close(self) -> None:
        """Write the file."""
        self.book.close()
        self.book.rows.close()
        self.scratch.cleanup()

    def abandon(self) -> None:
        files = [sheet.row_data_fh for sheet in self.sheets.values()]  # closing the workbook would write it
        for file in [*files, self.book.rows]:
            with suppress(OSError):  # what is still in a buffer may not fit on the disk
                file.close()
        self.scratch.cleanup()


@contextmanager
def new_workbook(target: Path, names: Sequence[str]) -> Iterator[StreamedWorkbook]:
    """A workbook with these sheets. When the context ends, it is checked and moved to `target`; its `place` says where
    it is. After an error nothing is left of it. Raises OutputError.
    """
    replacement = Replacement(target)
    try:
        with workbook_errors(target):
            workbook = StreamedWorkbook(replacement.path, names, Scratch(target))
            try:
                yield workbook
                workbook.close()
            finally:
                workbook.abandon()
        check_readable(replacement.path, target, names)
        workbook.place = replacement.commit()
    finally:
        replacement.discard()


def check_readable(path: Path, target: Path, sheets: Sequence[str]) -> None:
    """Raises OutputError, naming `target`, unless a reader can open `path` and finds these sheets filled."""
    try:
        found = _first_rows(path)
    except (OSError, BadZipFile, zlib.error, KeyError, SyntaxError, TableError) as error:
        raise OutputError(f"{target}: the report cannot be read back ({error}); {_REMEDY}") from error
    lacking = [sheet for sheet in sheets if not found.get(sheet)]
    if lacking:
        raise OutputError(f"{target}: the report was written without {', '.join(lacking)}; {_REMEDY}")


_REMEDY = "check the disk, or choose another place with -o, and run the same command again"


def _first_rows(path: Path) -> Mapping[str, str]:
    """The text of the first row of each sheet. Every byte is read once, so that damage further down is found too."""
    with ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged:
        raise BadZipFile(f"{damaged} is damaged")
    with closing(Package(path)) as package:
        for part in ("[Content_Types].xml", "xl/styles.xml"):
            list(package.elements(part, ()))  # without them, no program opens the file
        parts = {
            relation.get("Id"): f"xl/{relation.get('Target')}"
            for relation in package.elements("xl/_rels/workbook.xml.rels", (_RELATION,))
        }
        sheets = [
            (sheet.get("name", ""), parts[sheet.get(_ID)])
            for sheet in package.elements("xl/workbook.xml", (_SHEET,))
        ]
        return {
            name: "".join(row.itertext())
            for name, part in sheets
            for row in islice(package.elements(part, (_ROW,)), 1)
        }


def deflated(text: bytes) -> Piece:
    """A piece that may stand between others: it ends with a whole byte, and none of its blocks is marked as the last
    one (RFC 1951, section 3.2.3).
    """
    deflate = _deflate()
    packed = deflate.compress(text) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return packed, len(text), zlib.crc32(text) ^ zlib.crc32(bytes(len(text)))


def _deflate() -> Any:
    # Without a head and a checksum, as in a zip archive.
    return zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)


class _Rows:
    """Deflated pieces of XML, kept on disk."""

    def __init__(self, folder: str) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the workbook
        self._sums: list[tuple[int, int]] = []

    def append(self, piece: Piece) -> None:
        packed, length, checksum = piece
        self._file.write(packed)
        self._sums.append((length, checksum))

    def __len__(self) -> int:
        return len(self._sums)

    def put_into(self, archive: ZipFile, name: str, sheet: bytes) -> None:
        """Add a member: the XML of a sheet, with these rows after its own."""
        before, end, after = sheet.partition(_END_OF_ROWS)
        first, last = deflated(before), deflated(end + after)
        sums = [first[1:], *self._sums, last[1:]]
        info = ZipInfo(name, _TIME)  # stored: it is deflated already
        size = sum(length for length, _ in sums)
        with archive.open(info, "w", force_zip64=size >= _ZIP64) as member:
            member.write(first[0])
            self._file.seek(0)
            shutil.copyfileobj(self._file, member)
            member.write(last[0] + _deflate().flush())
        info.compress_type, info.file_size, info.CRC = ZIP_DEFLATED, size, _checksum(sums)
        _write_head_again(archive, info, is_large=size >= _ZIP64)

    def close(self) -> None:
        self._file.close()


def _checksum(sums: Sequence[tuple[int, int]]) -> int:
    """CRC-32 of all pieces together. It is affine over ^: zeros can stand for a text whose own checksum is known."""
    checksum = 0
    for length, own in sums:
        checksum = zlib.crc32(bytes(length), checksum) ^ own
    return checksum


def _write_head_again(archive: ZipFile, info: ZipInfo, *, is_large: bool) -> None:
    """As zipfile itself does when a member is complete; the list at the end of the archive is written from `info`."""
    assert archive.fp is not None  # noqa: S101 - it is open
    archive.fp.seek(info.header_offset)
    archive.fp.write(info.FileHeader(zip64=is_large))


class RowSheet(Worksheet):  # type: ignore[misc] # it has no types
    """A sheet whose rows go to a file: it writes texts and numbers as XlsxWriter does, in half the time."""

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        # In any formula, XlsxWriter looks for each of some 170 functions that are newer than 2007.
        if formula.startswith("{") or not _OLD_FUNCTIONS.issuperset(_FUNCTION.findall(formula)):
            return str(super()._prepare_formula(formula, expand_future_functions))
        return formula.removeprefix("=")

    def _write_cell(self, row: int, column: int, cell: Any) -> None:
        value = None
        if type(cell) is CellStringTuple:
            value = _inline(cell.string)
        elif type(cell) is CellNumberTuple:
            value = f"><v>{cell.number:.16G}</v></c>"
        if value is None or cell.format is None:
            super()._write_cell(row, column, cell)
            return
        style = cell.format._get_xf_index()
        self.fh.write(f'<c r="{xl_rowcol_to_cell_fast(row, column)}" s="{style}"{value}')


@lru_cache(maxsize=32)
def _inline(text: str) -> str | None:
    """The XML of a cell with this text, from the end of its attributes on; None for one that is escaped in other ways.

    Texts are kept for the next row, since the bots of a query share most.
    """
    if _ESCAPED.search(text) or "_x" in text or text.startswith("<r>"):
        return None
    space = ' xml:space="preserve"' if text[:1].isspace() or text[-1:].isspace() else ""
    for plain, escaped in _XML_ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return f' t="inlineStr"><is><t{space}>{text}</t></is></c>'


_FUNCTION = re.compile(r"[\w.]+(?=\()")
_OLD_FUNCTIONS = frozenset(("AND", "COUNTA", "COUNTIF", "IF", "ISNUMBER", "ROUND"))
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_XML_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))


class _Book(Workbook):  # type: ignore[misc] # it has no types
    def __init__(self, path: Path, folder: str) -> None:
        options = {
            "constant_memory": True,
            "tmpdir": folder,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        super().__init__(path, options)
        self.rows = _Rows(folder)
        self._sheets = _SheetKeeper()

    def _get_packager(self) -> Packager:
        return self._sheets if self.rows else Packager()

    def _store_workbook(self) -> None:
        # Some thirty files besides the rows: a slow disk takes milliseconds for each, and memory holds small ones.
        rows = sum(sheet.row_data_fh.tell() for sheet in self.worksheets())
        self.in_memory = not self.rows and rows < _SMALL
        super()._store_workbook()
        if self.rows:
            with ZipFile(self.filename, "a") as archive:
                self.rows.put_into(archive, _FIRST_SHEET, self._sheets.first)


class _SheetKeeper(Packager):  # type: ignore[misc] # it has no types
    """Leaves the first sheet out of the archive, and keeps what would be written."""

    first = b""

    def _create_package(self) -> list[tuple[str, str, bool]]:
        others = []
        for file in super()._create_package():
            if file[1] == _FIRST_SHEET:
                self.first = Path(file[0]).read_bytes()
            else:
                others.append(file)
        return others
