"""How long ways of writing the first sheet of a report take, and how much memory they need.

    python benchmarks/report_writers.py [CASES]

Every way writes the same cases with texts of a realistic length (query 100 characters, response 900, context
3,000), each in a process of its own: wall time and peak memory are of that process, without the time that it
takes to make the cases up and to import packages. All mark scores below 0.3 in red. The
naive way, pandas and then a style for each cell, is run on a tenth of the cases and scaled linearly, because it
needs minutes and gigabytes. What rag_eval writes is the whole report: all three sheets, notes, charts, the
comparison of the bots, and the check that it can be read back.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    Evidence,
    FailureMode,
    RunFacts,
    Score,
)
from rag_eval.report.columns import case_columns

BOTS = ("GPT4", "Claude")
THRESHOLD = 0.3
NAIVE_SHARE = 10
_NUMBERS = "GHIJKL"
"""Letters of the columns with scores."""


def main(cases: int) -> None:
    print(f"{cases:,} cases")
    print(f"{'way':<38}{'seconds':>9}{'cases/s':>9}{'peak MB':>9}{'file MB':>9}{'times as slow':>15}")
    measured = {name: _measure(name, cases) for name in WAYS}
    ours = measured["rag_eval: the whole report"]
    for name, result in measured.items():
        if not result:
            print(f"{name:<38}  not installed")
            continue
        seconds, peak, size = result
        print(
            f"{name:<38}{seconds:>9.1f}{cases / seconds:>9,.0f}{peak:>9.0f}{size:>9.0f}{seconds / ours[0]:>15.2f}"
        )


def _measure(name: str, cases: int) -> list[float]:
    """Seconds, peak MB and MB of the file; empty when a package is missing."""
    share = NAIVE_SHARE if name == NAIVE else 1
    command = [sys.executable, __file__, "--child", name, str(cases // share)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ModuleNotFoundError" in ended.stderr:
        return []
    if ended.returncode:
        raise SystemExit(ended.stderr)
    seconds, base, peak, size = json.loads(ended.stdout)
    return [seconds * share, base + (peak - base) * share, size * share]


def _child(name: str, cases: int) -> None:
    started = time.perf_counter()
    for _ in results(cases):
        pass
    making = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.xlsx"
        WAYS[name](path, 20)  # imports and the like: they do not grow with the cases
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        started = time.perf_counter()
        WAYS[name](path, cases)
        seconds = time.perf_counter() - started - making
        size = path.stat().st_size / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, base, peak, size]))


# The cases


def results(cases: int) -> Iterator[CaseResult]:
    """The same ones each time."""
    chance = random.Random(7)
    text = _prose(chance, words=200_000)

    def cut(length: int) -> str:
        start = chance.randrange(len(text) - length)
        return text[start : start + length]

    evidence = tuple(
        Evidence("statement", cut(80), "not supported", False, cut(60), rank=rank) for rank in range(1, 4)
    )
    for number in range(cases):
        case = Case(
            row=2 + number // len(BOTS),
            bot=BOTS[number % len(BOTS)],
            query=cut(100),
            response=cut(900),
            reference=cut(300),
            chunks=tuple(cut(750) for _ in range(4)),
        )
        scores = {name: Score.scored(name, chance.random() ** 0.5, "", evidence) for name in METRIC_LABELS}
        yield CaseResult(
            case=case,
            rqs=chance.random(),
            failure_modes=(FailureMode.OK,),
            scores=scores,
            toxicity=Score.scored(TOXICITY, 0.02),
            recommendation=cut(150),
        )


def _prose(chance: random.Random, words: int) -> str:
    """Made-up words, as often as their rank in a language has it: they compress about as prose does."""
    letters = "etaoinshrdlcumwfgypbvk"
    vocabulary = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5_000)]
    return " ".join(chance.choices(vocabulary, [1 / rank for rank in range(1, 5_001)], k=words))


def facts(cases: int) -> RunFacts:
    return RunFacts(
        input_name="answers.xlsx",
        sheet="Q3",
        judge="nobody",
        is_proxy=True,
        version="0",
        started=datetime(2025, 3, 4, 14, 5, tzinfo=UTC),
        bots=BOTS,
        rows=cases // len(BOTS),
        blank_rows=0,
        cut_rows=0,
        metrics=(*METRIC_LABELS, TOXICITY),
        weights=dict.fromkeys(METRIC_LABELS, 0.2),
        thresholds=dict.fromkeys(METRIC_LABELS, THRESHOLD),
        toxicity_threshold=0.5,
        diagnostics=True,
    )


def table(cases: int) -> Iterator[list[str | int | float | None]]:
    """The first sheet as plain values, the header first."""
    columns = case_columns(facts(cases))
    yield [column.header for column in columns]
    for result in results(cases):
        yield [column.cell(result).value for column in columns]


# The ways


def _naive(path: Path, cases: int) -> None:
    import pandas
    from openpyxl import load_workbook
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Side

    header, *rows = table(cases)
    pandas.DataFrame(rows, columns=header).to_excel(path, index=False)
    book = load_workbook(path)
    sheet = book.active
    thin = Side(style="thin", color="D9D9D9")
    for line in sheet.iter_rows(min_row=2):
        for cell in line:
            cell.font = Font(name="Calibri", size=10)
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            cell.border = Border(left=thin, right=thin, top=thin, bottom=thin)
            if cell.column_letter in _NUMBERS and cell.value < THRESHOLD:
                cell.fill = PatternFill("solid", fgColor="FFC7CE")
    book.save(path)


def _openpyxl(path: Path, cases: int) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.formatting.rule import CellIsRule
    from openpyxl.styles import Alignment, NamedStyle, PatternFill

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Cases")
    style = NamedStyle("text", alignment=Alignment(wrap_text=True, vertical="top"))
    book.add_named_style(style)
    rule = CellIsRule(operator="lessThan", formula=[str(THRESHOLD)], fill=PatternFill(bgColor="FFC7CE"))
    sheet.conditional_formatting.add(f"{_NUMBERS[0]}2:{_NUMBERS[-1]}{cases + 1}", rule)
    for row in table(cases):
        cells = []
        for value in row:
            cell = WriteOnlyCell(sheet, value)
            cell.style = "text"
            cells.append(cell)
        sheet.append(cells)
    book.save(path)


def _xlsxwriter(path: Path, cases: int) -> None:
    from xlsxwriter import Workbook

    book = Workbook(path, {"constant_memory": True})
    sheet = book.add_worksheet("Cases")
    style = book.add_format({"text_wrap": True, "valign": "top", "border": 1})
    red = book.add_format({"bg_color": "#FFC7CE"})
    for index, row in enumerate(table(cases)):
        for column, value in enumerate(row):
            if isinstance(value, str):
                sheet.write_string(index, column, value, style)
            else:
                sheet.write_number(index, column, value, style)
    area = f"{_NUMBERS[0]}2:{_NUMBERS[-1]}{cases + 1}"
    sheet.conditional_format(area, {"type": "cell", "criteria": "<", "value": THRESHOLD, "format": red})
    book.close()


def _rust(path: Path, cases: int) -> None:
    from rustpy_xlsxwriter import Format, write_worksheet

    rows = table(cases)
    header = [str(name) for name in next(rows)]
    style = Format().set_text_wrap().set_align("top").set_border("thin")
    red = Format().set_background_color("#FFC7CE")
    rule = {"type": "cell", "criteria": "<", "value": THRESHOLD, "format": red}
    write_worksheet(
        (dict(zip(header, row, strict=True)) for row in rows),
        str(path),
        column_formats=dict.fromkeys(header, style),
        conditional_formats=dict.fromkeys(METRIC_LABELS.values(), rule),
    )


def _ours(path: Path, cases: int) -> None:
    from rag_eval.report.workbook import ExcelReport
    from rag_eval.results.findings import find
    from rag_eval.results.summary import Summarizer

    known = facts(cases)
    report = ExcelReport(path, known)
    summarizer = Summarizer(known.bots, known.metrics, known.toxicity_threshold)
    for result in results(cases):
        report.add(result)
        summarizer.add(result)
    summary = summarizer.summary()
    report.finish(summary, find(summary), known)


NAIVE = "pandas, then a style for each cell"
WAYS: dict[str, Callable[[Path, int], None]] = {
    NAIVE: _naive,
    "openpyxl, write-only": _openpyxl,
    "XlsxWriter, constant memory": _xlsxwriter,
    "rustpy-xlsxwriter": _rust,
    "rag_eval: the whole report": _ours,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
