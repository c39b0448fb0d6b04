"""What gets installed is what was tested."""

import ast
import re
import sys
import tomllib
import xml.parsers.expat
from datetime import datetime, timedelta
from importlib.metadata import packages_distributions
from inspect import signature
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from hypothesis import example, given
from hypothesis import strategies as st
from openpyxl.utils.datetime import WINDOWS_EPOCH
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHEET_MAIN_NS
from openpyxl.xml.functions import fromstring
from xlsxwriter import Workbook
from xlsxwriter.packager import Packager

from rag_eval.report.book import RowSheet

ROOT = Path(__file__).parent.parent


def test_every_pin_has_the_hashes_of_its_files() -> None:
    """Requirements.lock holds the pins of requirements.txt, each with a SHA-256; what else is in it is for other
    systems than the one that the pins were made on."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", lock, re.MULTILINE | re.DOTALL)
    locked = {normal(name): version for name, version, _ in entries}
    pinned = {normal(name): version for name, version in pins}
    assert locked | pinned == locked
    assert all(" ; " in rest.splitlines()[0] for name, _, rest in entries if normal(name) not in pinned)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", rest) for _, _, rest in entries)
    assert "://" not in lock, "packages come from the index that pip is set up with"


def test_the_light_installation_has_the_same_pins_and_ragas_without_its_requirements() -> None:
    """What is in it is in requirements.lock too, of the same version and with the same hashes."""
    whole, light = (entries_of(ROOT / name) for name in ("requirements.lock", "requirements-light.lock"))
    assert light.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {normal(re.split(r"[<>=\[ ]", each)[0]) for each in project["dependencies"]}
    assert needed | {"ragas"} <= light.keys()
    assert light.keys().isdisjoint({"datasets", "langchain-core", "pandas", "pyarrow"})
    assert "ragas==0.4.3" in project["optional-dependencies"]["ragas"]
    assert "ragas==0.4.3" in (ROOT / "requirements-light.lock").read_text()


def entries_of(path: Path) -> dict[str, tuple[str, ...]]:
    """Version and hashes of each package in a list of pins."""
    found = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
    return {normal(name): (version, *re.findall(r"sha256:\w+", rest)) for name, version, rest in found}


def test_the_xml_parser_withstands_billions_of_laughs() -> None:
    """Expat 2.4.1 and later limits how far entities may grow."""
    version = tuple(int(part) for part in re.findall(r"\d+", xml.parsers.expat.EXPAT_VERSION))
    assert version >= (2, 4, 1)


def test_whatever_is_imported_is_declared() -> None:
    """A package that only comes with another one may go with its next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    extras = [each for name, extra in optional.items() if name not in ("dev", "all") for each in extra]
    declared = {normal(re.split(r"[<>=\[ ]", each)[0]) for each in [*project["dependencies"], *extras]}
    distributions = packages_distributions()
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "rag_eval").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imports(node)
    }
    known = sys.stdlib_module_names | {"rag_eval", "pydantic_core"}  # which is pydantic's own half
    assert not [
        name for name in imported - known if declared.isdisjoint(map(normal, distributions.get(name, [name])))
    ]


def test_the_worksheet_parser_of_openpyxl_is_as_we_extend_it() -> None:
    """It is not public, so it may change with any version: pyproject.toml allows none that this was not run with."""
    assert list(signature(WorkSheetParser).parameters) == [
        "src", "shared_strings", "data_only", "epoch", "date_formats", "timedelta_formats", "rich_text",
    ]  # fmt: skip
    parser = WorkSheetParser(
        b"", ["a text"], data_only=True, epoch=WINDOWS_EPOCH, date_formats={1, 2}, timedelta_formats={2}
    )
    row = _element(
        '<row r="3" ht="20"><c r="B3" t="s"><v>0</v></c><c><v>1.5</v></c><c t="b"><v>1</v></c><c s="1"><v>2</v></c>'
        '<c s="2"><v>0.5</v></c><c t="e"><v>#N/A</v></c><c t="str"><f>A1</f><v>told</v></c><c><f>A1</f></c></row>'
    )
    number, cells = parser.parse_row(row)
    read = [(cell["column"], cell["value"], cell["data_type"]) for cell in cells]
    assert (number, parser.row_counter, parser.col_counter) == (3, 3, 9)
    assert read == [
        (2, "a text", "s"), (3, 1.5, "n"), (4, True, "b"), (5, datetime(1900, 1, 2), "d"),
        (6, timedelta(hours=12), "d"), (7, "#N/A", "e"), (8, "told", "s"), (9, None, "n"),
    ]  # fmt: skip
    assert parser.shared_strings == ["a text"]
    # What it keeps of each row is what is thrown away.
    assert list(parser.row_dimensions) == ["3"]
    assert (parser.parse_row(_element("<row><c/></row>"))[0], parser.col_counter) == (4, 1)


def test_the_parser_of_openpyxl_reads_each_cell_by_the_method_that_is_overridden() -> None:
    class Cells(WorkSheetParser):
        def parse_cell(self, element: Element) -> dict[str, Any]:
            return {"place": element.get("r")}

    row = _element('<row r="1"><c r="A1"/><c r="C1"/></row>')
    assert Cells(b"", []).parse_row(row) == (1, [{"place": "A1"}, {"place": "C1"}])


def test_rows_that_another_workbook_of_xlsxwriter_rendered_can_be_taken_over(tmp_path: Path) -> None:
    """It is not public how, so pyproject.toml allows no version that this was not run with."""
    other = Workbook(BytesIO(), {"in_memory": True})
    rendering = other.add_worksheet()
    rendering.constant_memory = True
    rendering.fh = rendering.row_data_fh = StringIO()
    bold = {"bold": True}
    style = other.add_format(bold)
    assert (style.xf_index, len(style.xf_format_indices)) == (None, 0)
    style.xf_index = 1
    rendering.previous_row = 1
    for row in (1, 2):
        rendering.write_number(row, 0, row / 2, style)
    rendering.write_blank(3, 0, None, style)
    rows = rendering.fh.getvalue()
    assert rows == (
        '<row r="2"><c r="A2" s="1"><v>0.5</v></c></row><row r="3"><c r="A3" s="1"><v>1</v></c></row>'
    )


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"))
        | st.integers(-(10**15), 10**15)
        | st.floats(allow_nan=False, allow_infinity=False)
    )
)
@example(
    [
        "",
        " a",
        "a ",
        "a\n",
        "\u2003a",
        "<r>a</r>",
        "<r>",
        "_x000A_",
        "_x",
        "a\x01\r",
        "\ufffe\uffff",
        "&<>\"'\n\t",
    ]
)
def test_a_sheet_of_ours_writes_cells_as_xlsxwriter_does(values: list[str | float]) -> None:
    """Each in a row of its own, with a format and without one."""
    written = []
    for kind in (RowSheet, None):
        book = Workbook(
            BytesIO(), {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        )
        sheet = book.add_worksheet("rows", kind)
        sheet.constant_memory = True
        sheet.fh = sheet.row_data_fh = StringIO()
        bold = book.add_format({"bold": True})
        for row, value in enumerate([*values, None]):
            for column, style in enumerate((bold, None)):
                write = sheet._write_string if isinstance(value, str) else sheet._write_number
                write(row, column, 0 if value is None else value, style)
        written.append(sheet.fh.getvalue())
    assert written[0] == written[1]


def test_a_packager_of_ones_own_hands_xlsxwriter_the_files_that_it_compresses(tmp_path: Path) -> None:
    seen = {}

    class Keeper(Packager):  # type: ignore[misc] # it has no types
        def _create_package(self) -> list[tuple[str, str, bool]]:
            files = super()._create_package()
            seen.update({name: Path(path).read_bytes() for path, name, _ in files})
            return [file for file in files if file[1] != "xl/worksheets/sheet1.xml"]

    class Book(Workbook):  # type: ignore[misc] # it has no types
        def _get_packager(self) -> Packager:
            return Keeper()

        def _store_workbook(self) -> None:
            super()._store_workbook()
            assert ZipFile(self.filename).testzip() is None

    with Book(tmp_path / "book.xlsx", {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        book.add_worksheet()
        sheet.write_number(0, 0, 7)
        sheet.dim_rowmax = 2
    names = ZipFile(tmp_path / "book.xlsx").namelist()
    assert "xl/worksheets/sheet2.xml" in names
    assert sorted({*names, "xl/worksheets/sheet1.xml"}) == sorted(seen)
    own = seen["xl/worksheets/sheet1.xml"]
    assert own.count(b"</sheetData>") == 1
    assert b'<dimension ref="A1:A3"/>' in own
    assert b'<sheetData><row r="1"><c r="A1"><v>7</v></c></row></sheetData>' in own


def test_the_rows_of_an_abandoned_workbook_of_xlsxwriter_can_be_let_go(tmp_path: Path) -> None:
    """XlsxWriter has no other way to close the file of rows without writing the workbook."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sheet = Workbook(
        tmp_path / "book.xlsx", {"constant_memory": True, "tmpdir": str(scratch)}
    ).add_worksheet()
    sheet.write_string(0, 0, "a text")
    (held,) = scratch.iterdir()
    assert Path(sheet.row_data_fh.name) == held
    sheet.row_data_fh.close()
    held.unlink()
    assert list(tmp_path.iterdir()) == [scratch]


def _element(text: str) -> Any:
    return fromstring(text.replace(">", f' xmlns="{SHEET_MAIN_NS}">', 1))


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def normal(name: str) -> str:
    """As package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
