"""The last look at a finished workbook, before it replaces an older one."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_eval.errors import OutputError


def check_readable(path: Path, target: Path, sheets: Sequence[str]) -> None:
    """Raises OutputError, naming `target`, unless a reader can open `path` and finds these sheets filled."""
    try:
        found = _headers(path)
    except (OSError, zipfile.BadZipFile, zlib.error, KeyError, ValueError, SyntaxError) as error:
        raise OutputError(f"{target}: the report cannot be read back ({error}); {_REMEDY}") from error
    lacking = [sheet for sheet in sheets if not any(found.get(sheet, ()))]
    if lacking:
        raise OutputError(f"{target}: the report was written without {', '.join(lacking)}; {_REMEDY}")


_REMEDY = "check the disk, or choose another place with -o, and run the same command again"


def _headers(path: Path) -> Mapping[str, tuple[object, ...]]:
    """The first row of each sheet. Reads every byte once, so that damage further down is found too."""
    from openpyxl import load_workbook

    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged:
        raise zipfile.BadZipFile(f"{damaged} is damaged")
    with path.open("rb") as file:
        workbook = load_workbook(file, read_only=True)
        headers = {
            sheet.title: next(sheet.iter_rows(max_row=1, values_only=True), ())
            for sheet in workbook.worksheets
        }
        workbook.close()
    return headers
