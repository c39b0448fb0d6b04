"""A .csv or .tsv file to records: its encoding and separator are found out, unless they are given."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, dropwhile, islice
from pathlib import Path
from typing import Any

from rag_eval.errors import MOST_LISTED, InputError, TableError
from rag_eval.tables.input_files import MAX_CELL, MAX_COLUMNS

_MAX_CSV_CELL = 10 * MAX_CELL
"""Characters up to which a cell is read, to say how long it is. An unclosed quote ends here at the latest."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-8": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is written, as far as it is not to be found out."""

    encoding: str = ""
    """As Python calls it; empty to find it out."""
    separator: str = ""
    """One character; empty to find it out."""

    @classmethod
    def parse(cls, encoding: str | None, separator: str | None) -> "TextForm":
        """From two options. Raises InputError for an unknown encoding and for a separator that cannot be one."""
        return cls(
            "" if encoding is None else _parse_encoding(encoding),
            "" if separator is None else _parse_separator(separator),
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The options by which it was given."""
        return tuple(
            option for option, value in (("--encoding", self.encoding), ("--sep", self.separator)) if value
        )


FOUND_OUT = TextForm()


def _parse_encoding(name: str) -> str:
    try:
        "".encode(name)  # unlike codecs.lookup, this refuses what is no encoding of text, such as base64
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise InputError(
            f"--encoding: {name!r} is not a known encoding; expected one such as utf-8, utf-16, cp1252, "
            "latin-1 or shift_jis"
        ) from None


def _parse_separator(text: str) -> str:
    separator = "\t" if text.lower() in ("tab", r"\t") else text
    if len(separator) != 1 or separator in '"\r\n\0':
        raise InputError(
            f"--sep: {text!r} cannot separate cells; expected one character such as ',' ';' or '|', or tab"
        )
    return separator


@dataclass(frozen=True, slots=True)
class _DelimitedRecords:
    """An open text file."""

    rows: Iterator[tuple[int, list[str]]]
    """Their numbers, counted from 1 with the blank ones, which are left out, and their cells."""
    layout: str
    """Its separator and encoding, in words."""
    warnings: tuple[str, ...]
    problems: list[str]
    """Records that cannot be read; filled while `rows` is consumed."""
    short: list[int]
    """Numbers of the records that end before the header does; filled in the same way."""


@contextmanager
def open_records(path: Path, form: TextForm, header_row: int | None = None) -> Iterator[_DelimitedRecords]:
    """The records of the file. Raises TableError for a file that cannot be decoded.

    `header_row` is the number of the header, 0 for none; by default it is the first record that is not blank.
    """
    notes: tuple[str, ...] = ()
    if encoding := form.encoding:
        _check_encoding(path, encoding)
    else:
        encoding = _find_encoding(path)
        if encoding == "cp1252":
            notes = (
                "The file is not UTF-8 and was read as Windows-1252; check accented letters in the report.",
            )
    tabbed = "\t" if path.suffix.lower() == ".tsv" else ""
    told = _told_separator(path, encoding)
    separator = form.separator or told or tabbed or _find_separator(path, encoding, header_row or 0)
    problems: list[str] = []
    short: list[int] = []
    layout = (
        f"separated by {SEPARATORS.get(separator, repr(separator))}, {_ENCODINGS.get(encoding, encoding)}"
    )
    unpaired = _unpaired_quotes(path, encoding, header_row or 0) if separator == "\t" else 0
    if unpaired:
        layout += ", quotes are text"
        notes = (
            *notes,
            f"Double quotes do not enclose a whole cell in line {unpaired:,}, so all quotes were read as part of the "
            "texts.",
        )
    with _opened(path, encoding) as file, _long_cells_allowed():
        if told:
            file.readline()
        lines = _BoundedLines(path, file, separator, lines_before=int(told != ""))
        rows = _records(
            path, _cells(lines, separator, is_quoted=not unpaired), lines, problems, short, header_row
        )
        yield _DelimitedRecords(rows, layout, notes, problems, short)


def _find_encoding(path: Path) -> str:
    """The first encoding that can decode the whole file."""
    with path.open("rb") as file:
        is_utf16 = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    for encoding in ("utf-16",) if is_utf16 else ("utf-8", "cp1252"):
        if _decodes(path, encoding):
            return encoding
    fault = "not UTF-16" if is_utf16 else "neither UTF-8 nor Windows-1252"
    raise TableError(
        f"{path.name}: the text is {fault}; save it as 'CSV UTF-8', or name its encoding with --encoding"
    )


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _check_encoding(path: Path, encoding: str) -> None:
    """Raise TableError, with the line, for a file that does not decode as was said."""
    if not _decodes(path, encoding):
        raise TableError(
            f"{path.name}, line {_undecodable_line(path, encoding)}: is not written in {encoding}; name the right "
            "encoding with --encoding, or omit --encoding to detect it"
        )


def _undecodable_line(path: Path, encoding: str) -> int:
    """The first line that does not decode, counted from 1; byte by byte, since some lines may decode before it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with path.open("rb") as file:
        for byte in iter(lambda: file.read(1), b""):
            try:
                line += decoder.decode(byte).count("\n")
            except UnicodeError:
                break
    return line


def _told_separator(path: Path, encoding: str) -> str:
    """What a first line such as `sep=;` says, which is meant for Excel and no part of the table; '' without one."""
    with _opened(path, encoding) as file:
        found = _TOLD.fullmatch(file.readline(20))
    return found[1] if found else ""


_TOLD = re.compile(r'"?sep=([^"\s]|\t)"?\s*', re.IGNORECASE)


def _find_separator(path: Path, encoding: str, header_row: int) -> str:
    """The separator that cuts the header into the most cells; a comma when none cuts it at all."""

    with _opened(path, encoding) as file:
        lines = iter(file.readline, "")
        if not header_row:
            lines = dropwhile(lambda line: not line.strip("\r\n"), lines)
        first = list(islice(lines, header_row + _LINES_OF_A_HEADER))

    def header_width(separator: str) -> int:
        try:
            rows = csv.reader(_BoundedLines(path, iter(first), separator), delimiter=separator)
            return next((len(row) for row in islice(rows, max(header_row - 1, 0), None) if any(row)), 0)
        except TableError:
            return MAX_COLUMNS + 1
        except csv.Error:
            return 0

    return max(SEPARATORS, key=header_width)


_LINES_OF_A_HEADER = 1_000
"""In which the first record that is not blank is looked for; its cells may hold line ends."""


@contextmanager
def _opened(path: Path, encoding: str) -> Iterator[Any]:
    """The text behind its byte order mark, which only some encodings take for one."""
    with path.open(encoding=encoding, newline="") as file:
        if file.read(1) != "\ufeff":
            file.seek(0)
        yield file


@contextmanager
def _long_cells_allowed() -> Iterator[None]:
    """The csv module's limit is one for the whole process, so it is put back."""
    limit = csv.field_size_limit(_MAX_CSV_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


class _BoundedLines:
    """The lines of a file for `csv.reader`, which would make a million cells of a line with so many separators.

    Whoever uses the reader calls `begin_record` after each record.
    """

    def __init__(self, path: Path, lines: Iterable[str], separator: str, lines_before: int = 0) -> None:
        self._path = path
        self._lines = iter(lines)
        self._separator = separator
        self._is_inside = False
        """Whether the record goes on, so that a quoted cell does."""
        self.number = lines_before
        """Of the line given last, counted from 1."""

    def __iter__(self) -> "_BoundedLines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if line.count(self._separator) >= MAX_COLUMNS and self._cells(line) > MAX_COLUMNS:
            raise TableError(
                f"{self._path.name}, line {self.number}: has more than {MAX_COLUMNS:,} cells; remove the columns that "
                "are not needed, or the separators at the ends of the lines"
            )
        self._is_inside = True
        return line

    def begin_record(self) -> None:
        self._is_inside = False

    def _cells(self, line: str) -> int:
        """How many cells begin in the line, as far as there are not too many."""
        place = 0
        cells = 1
        if self._is_inside:
            place = _REST_OF_QUOTED.match(line).end()  # type: ignore[union-attr]
        while cells <= MAX_COLUMNS:
            if line.startswith('"', place):
                place = _REST_OF_QUOTED.match(line, place + 1).end()  # type: ignore[union-attr]
            place = line.find(self._separator, place) + 1
            if not place:
                break
            cells += 1
        return cells


_REST_OF_QUOTED = re.compile(r'(?:[^"]|"")*+"?')
"""Of a quoted cell, up to its closing quote or the end of the line. It matches always."""


def _unpaired_quotes(path: Path, encoding: str, header_row: int) -> int:
    """The line of a text with tabs where quotes do not enclose a cell, although each line is a record; 0 for none.

    They are meant to if the header has some, or a cell has doubled ones between two: then one of them is a mistake.
    """
    number = cells = 0
    with _opened(path, encoding) as file, _long_cells_allowed():
        lines = _BoundedLines(path, file, "\t")
        try:
            for row in csv.reader(lines, delimiter="\t", strict=True):
                lines.begin_record()
                is_longer, number = lines.number > number + 1, lines.number
                cells = cells or len(row)
                if is_longer and len(row) > cells:
                    break
            else:
                return 0
        except csv.Error:
            number = lines.number
    with _opened(path, encoding) as file:
        records = (line.rstrip("\r\n") for line in islice(file, max(header_row - 1, 0), None) if line.strip())
        header = next(records, "")
        width = header.count("\t")
        is_meant = (
            '"' in header
            or not width
            or any(
                line.count("\t") != width or any('""' in cell[1:-1] for cell in _WRAPPED.findall(line))
                for line in records
            )
        )
    return 0 if is_meant else number


_WRAPPED = re.compile(r'(?<![^\t])"(?:[^"\t]++|"")*+"(?![^\t])')
"""A cell between quotes as programs write it."""


def _cells(lines: _BoundedLines, separator: str, *, is_quoted: bool) -> Iterator[list[str]]:
    """The cells of each record, [] for a blank line.

    A line without quotes is cut at its separators, which takes a fraction of the time that the csv module needs.
    """
    first: list[str] = []

    def of_record() -> Iterator[str]:
        # A quoted cell may hold line ends, so that its record takes further lines from the file.
        while (line := first.pop() if first else next(lines, None)) is not None:
            yield line

    reader = csv.reader(
        of_record(),
        delimiter=separator,
        strict=True,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
    )
    for line in lines:
        if '"' in line or len(line) > _MAX_CSV_CELL:
            first.append(line)
            yield next(reader)
        else:
            text = line.rstrip("\r\n")
            yield text.split(separator) if text else []


def _records(
    path: Path,
    records: Iterator[list[str]],
    lines: _BoundedLines,
    problems: list[str],
    short: list[int],
    header_row: int | None,
) -> Iterator[tuple[int, list[str]]]:
    """The records. One with more cells than the header, or the first record, is a problem: a separator tore its text.

    Not where the header is a single cell: no table has such a one, so it is a title, and the header is still to come.
    That may also be so as long as all records below the first are wider, so these are given, too.
    """
    width = needed = fitting = 0
    for number in count(1):
        lines.begin_record()
        try:
            row = next(records, None)
        except (csv.Error, UnicodeDecodeError) as error:
            reason = (
                "a text that begins with a double quote has no end" if "end of data" in str(error) else error
            )
            problems.append(f"{path.name}, row {number} (line {lines.number}): {reason}; check the quotes")
            return
        if row is None:
            return
        if not row:
            continue
        if not width and number >= (header_row or 0):
            needed = max((place for place, cell in enumerate(row, 1) if cell.strip()), default=0)
            width = len(row) if needed else 0
            needed = 0 if header_row == 0 else needed
        if len(row) < needed and any(map(str.strip, row)):
            short.append(number)
        is_torn = width > 1 and any(map(str.strip, row[width:]))
        if is_torn:
            first = "first row" if header_row == 0 else "header"
            problems.append(
                f"{path.name}, row {number} (line {lines.number}): {len(row)} cells, but the {first} has {width}; "
                "put text that contains the separator or line ends between double quotes"
                if len(problems) < MOST_LISTED
                else ""  # it is only counted
            )
        fitting += not is_torn
        if not is_torn or fitting < 2:
            yield number, row
