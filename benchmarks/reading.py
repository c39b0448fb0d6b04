"""How long reading a big spreadsheet takes and how much memory it needs, beside the fastest readers there are.

    python benchmarks/reading.py [--rows 20000] [--format xlsx] [--runs 5] [--lengths 100 900 900 3000]
        [--against ../earlier-checkout]

A row has a query of 100 characters, the responses of two bots of 900 each, and a context of 3,000, or as `--lengths`
says. `--against` compares with another checkout of RAG Eval alone, for a change of the reader. Every reading is
a process of its own; the readers take turns, so that a slow moment hits all of them. `rag_eval` reads the table as a
run does, with all its checks, and walks over all its cases; the others only fetch the cells. A reader that is not
installed is left out. Memory is the peak of the process; the times, of the clock and of the processor, include the
start of the interpreter.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HEADER = ("Query", "Bot_A", "Bot_B", "Context")
LENGTHS = [100, 900, 900, 3000]

OURS = """
from pathlib import Path
from rag_eval.tables.table import read_table
table = read_table(Path(sys.argv[1]), max_rows=10_000_000)
characters = sum(
    len(row.query) + sum(len(case.response) for case in row.cases) + sum(map(len, row.cases[0].chunks))
    for row in table.rows
)
"""
_CELLS = "characters = sum(len(cell) for row in rows[1:] for cell in row)"
_FRAME = "characters = sum(int(frame[name].str.len().sum()) for name in frame)"
READERS = {
    "xlsx": {
        "rag_eval": OURS,
        "python-calamine": f"""
from python_calamine import CalamineWorkbook
rows = CalamineWorkbook.from_path(sys.argv[1]).get_sheet_by_index(0).to_python()
{_CELLS}""",
        "python-calamine, streamed": """
from python_calamine import CalamineWorkbook
rows = CalamineWorkbook.from_path(sys.argv[1]).get_sheet_by_index(0).iter_rows()
next(rows)
characters = sum(len(cell) for row in rows for cell in row)""",
        "pandas, calamine": f"""
import pandas
frame = pandas.read_excel(sys.argv[1], engine="calamine")
{_FRAME}""",
        "polars, fastexcel": """
import polars
frame = polars.read_excel(sys.argv[1])
characters = sum(frame[name].str.len_chars().sum() for name in frame.columns)""",
        "openpyxl, read-only": f"""
from openpyxl import load_workbook
rows = list(load_workbook(sys.argv[1], read_only=True).worksheets[0].iter_rows(values_only=True))
{_CELLS}""",
    },
    "csv": {
        "rag_eval": OURS,
        "csv": f"""
import csv
rows = list(csv.reader(open(sys.argv[1], encoding="utf-8", newline="")))
{_CELLS}""",
        "pandas": f"""
import pandas
frame = pandas.read_csv(sys.argv[1])
{_FRAME}""",
        "polars": """
import polars
frame = polars.read_csv(sys.argv[1])
characters = sum(frame[name].str.len_chars().sum() for name in frame.columns)""",
    },
    "parquet": {
        "rag_eval": OURS,
        "pandas": f"""
import pandas
frame = pandas.read_parquet(sys.argv[1])
{_FRAME}""",
    },
}
USAGE = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([characters, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
MAKE = (
    "import sys; sys.path.insert(0, sys.argv[1]); import reading; reading.LENGTHS[:] = map(int, sys.argv[4:]); "
    "reading.make(sys.argv[2], int(sys.argv[3]))"
)


class Measure(NamedTuple):
    """Of one process."""

    clock: float
    processor: float
    peak: float
    """Megabytes."""


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"answers.{options.format}")
        # In a process of its own, because the peak of a process includes that of its parent when it began.
        LENGTHS[:] = options.lengths
        subprocess.run(
            [
                sys.executable,
                "-c",
                MAKE,
                str(ROOT / "benchmarks"),
                path,
                str(options.rows),
                *map(str, LENGTHS),
            ],
            check=True,
        )
        print(f"{path.name}: {options.rows:,} rows, {path.stat().st_size / 2**20:,.0f} MB", flush=True)
        readers = READERS[options.format]
        if options.against:
            _FOLDERS[_EARLIER] = options.against.resolve()
            readers = {"rag_eval": OURS, _EARLIER: f"{OURS}\npass"}
        readers = _installed(readers, path)
        taken: dict[str, list[Measure]] = {name: [] for name in readers}
        for _ in range(options.runs):
            for name, program in readers.items():
                taken[name].append(_measured(program, path, options.rows, _FOLDERS.get(name, ROOT)))
        _show(taken)


def make(path: str, rows: int) -> None:
    """Answers in English prose, no two cells alike. The workbook has its texts where Excel puts them."""
    if path.endswith(".parquet"):
        import pyarrow
        from pyarrow import parquet

        header, *found = _rows(rows)
        columns = {name: [row[place] for row in found] for place, name in enumerate(header)}
        parquet.write_table(pyarrow.table(columns), path)
        return
    if path.endswith(".csv"):
        import csv

        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(_rows(rows))
        return
    from xlsxwriter import Workbook

    with Workbook(path) as book:
        sheet = book.add_worksheet("Answers")
        for number, cells in enumerate(_rows(rows)):
            sheet.write_row(number, 0, cells)


def _rows(count: int) -> Iterator[tuple[str, ...]]:
    yield HEADER
    prose = " ".join(" ".join(topics[name].split()) for name in sorted(topics)).replace("||", "or")
    prose = prose.replace("[", "(").encode("ascii", "ignore").decode()
    rng = random.Random(7)
    for number in range(count):
        starts = [rng.randrange(len(prose) - length) for length in LENGTHS]
        texts = (
            prose[start : start + max(0, length - 8)] for start, length in zip(starts, LENGTHS, strict=True)
        )
        yield tuple(
            f"{number:06}. {text.strip():x<{length - 8}}" for text, length in zip(texts, LENGTHS, strict=True)
        )


def _installed(readers: dict[str, str], path: Path) -> dict[str, str]:
    """The readers that work; this first reading also brings the file into the system's cache."""
    working = {}
    for name, program in readers.items():
        done = _run(program, path, _FOLDERS.get(name, ROOT))
        if done.returncode:
            print(f"{name}: left out: {done.stderr.strip().splitlines()[-1]}", flush=True)
        else:
            working[name] = program
    return working


def _measured(program: str, path: Path, rows: int, folder: Path) -> Measure:
    """The reader must have seen every character."""
    start = time.perf_counter()
    done = _run(program, path, folder)
    seconds = time.perf_counter() - start
    characters, processor, peak = json.loads(done.stdout)
    assert characters == rows * sum(LENGTHS), characters
    return Measure(seconds, processor, peak)


_EARLIER = "the other checkout"
_FOLDERS: dict[str, Path] = {}
"""Where a reader runs, by its name, if that is another folder."""


def _run(program: str, path: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", f"import sys\n{program}\n{USAGE}", str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _show(taken: dict[str, list[Measure]]) -> None:
    """A line a reader. The ratios are those of neighbouring runs, and their median."""
    for name, its in taken.items():
        pairs = list(zip(taken["rag_eval"], its, strict=True))
        clock = sorted(each.clock for each in its)
        print(
            f"{name:26} {statistics.median(clock):6.2f} s ({clock[0]:.2f}–{clock[-1]:.2f}), "
            f"of processor {statistics.median(each.processor for each in its):5.2f} s, "
            f"{max(each.peak for each in its):5,.0f} MB; rag_eval takes "
            f"{statistics.median(ours.clock / other.clock for ours, other in pairs):.2f} times as long, "
            f"{statistics.median(ours.processor / other.processor for ours, other in pairs):.2f} of processor"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--format", choices=list(READERS), default="xlsx")
    parser.add_argument("--lengths", type=int, nargs=4, default=LENGTHS, help="characters of each cell")
    parser.add_argument("--against", type=Path, help="another checkout of RAG Eval")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
