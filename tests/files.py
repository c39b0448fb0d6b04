"""Input files of tests: one table in each of the formats that RAG Eval reads."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from openpyxl import Workbook

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
