"""Input files of tests: a table in any format that RAG Eval reads, and the ordinary tables that many tests judge."""

import csv
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from openpyxl import Workbook

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "rag_eval_standalone.py"
SAMPLE = ROOT / "sample_rag_input.xlsx"
GOOD = "Paris is the capital of France. It lies on the Seine."
BAD = "London has many red buses. Coffee costs money."
CONTEXT = " || ".join(
    [
        "Paris is the capital of France.",
        "It lies on the Seine.",
        "Berlin is the capital of Germany.",
        "Tea is a drink.",
    ]
)
HEADER = ["Query", "Ground_Truth", "Bot_Good", "Bot_Bad", "Context"]

Rows = Iterable[Iterable[object]]


def write_table(path: Path, *rows: Iterable[object], encoding: str = "utf-8", separator: str = "") -> Path:
    """Rows, the first of which is the header, in the format that the suffix says; an Excel workbook without one."""
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        with path.open("w", encoding=encoding, newline="") as file:
            csv.writer(file, delimiter=separator or {".csv": ",", ".tsv": "\t"}[kind]).writerows(rows)
    elif kind in (".json", ".jsonl"):
        names, *lines = (list(row) for row in rows)
        records = [dict(zip(map(str, names), line, strict=True)) for line in lines]
        text = json.dumps(records) if kind == ".json" else "\n".join(map(json.dumps, records)) + "\n"
        path.write_text(text, encoding=encoding)
    elif kind == ".parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        names, *lines = (list(row) for row in rows)
        columns = {str(name): [line[place] for line in lines] for place, name in enumerate(names)}
        parquet.write_table(pyarrow.table(columns), path)
    elif kind == ".ods":
        import pandas

        names, *lines = (list(row) for row in rows)
        pandas.DataFrame(lines, columns=names).to_excel(path, index=False, engine="odf")
    else:
        write_sheets(path, {"Sheet": rows})
    return path


def write_sheets(path: Path, sheets: Mapping[str, Rows]) -> Path:
    """An Excel workbook of several sheets."""
    book = Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def sheet_of(path: Path, rows: int = 3) -> Path:
    """Two bots on shared contexts of four chunks; every text of a row differs from those of the others."""
    lines = [
        [
            f"What is the capital of France, question {n}?",
            GOOD,
            f"{GOOD} Says {n}.",
            f"{BAD} Says {n}.",
            CONTEXT,
        ]
        for n in range(rows)
    ]
    return write_table(path, HEADER, *lines)


def chunks_of(row: int, count: int, owner: str = "") -> list[str]:
    return [f"Paris is the capital of France. This is passage {n}{owner} of row {row}." for n in range(count)]


def response_of(row: int, bot: int) -> str:
    return f"Paris is the capital of France. So says bot {bot} in row {row}."


def line_of(row: int, bots: int, chunks: int, *, is_shared: bool) -> list[str]:
    """Every text of a row differs from those of the others, so that no call is saved by chance."""
    owners = [""] if is_shared else [f" of bot {bot}" for bot in range(bots)]
    contexts = [json.dumps(chunks_of(row, chunks, owner)) for owner in owners]
    responses = [response_of(row, bot) for bot in range(bots)]
    return [f"Query {row}?", f"Paris is the capital, reference {row}.", *responses, *contexts]


def sheet_of_bots(folder: Path, bots: int, chunks: int, *, is_shared: bool = True, rows: int = 1) -> None:
    """`in.xlsx` of so many bots, with one context of so many chunks, or one for each bot."""
    names = [f"Bot_{bot}" for bot in range(bots)]
    contexts = ["Context"] if is_shared else [f"{bot}_Context" for bot in range(bots)]
    lines = [line_of(row, bots, chunks, is_shared=is_shared) for row in range(rows)]
    write_table(folder / "in.xlsx", ["Query", "Ground_Truth", *names, *contexts], *lines)


def open_document(path: Path, rows: str, content: str = "", **parts: str) -> Path:
    """An .ods file with these rows in a sheet `Q3`, or with this content; `parts` are further ones, by name."""
    names = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
        for short in ("office", "table", "text")
    )
    content = content or (
        f"<office:document-content{names}><office:body><office:spreadsheet>"
        f'<table:table table:name="Q3">{rows}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in {"META-INF/manifest.xml": "<m/>", **parts}.items():
            archive.writestr(name, part)
        archive.writestr("mimetype", mimetype)
        archive.writestr("content.xml", content)
    return path


def ods_row(*texts: str) -> str:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    return f"<table:table-row>{''.join(map(cell.format, texts))}</table:table-row>"
