"""A workbook of some cases of a run: the first sheet of a report, and what the selection is. It has no means."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_eval.records import TOXICITY, CaseResult, RunFacts
from rag_eval.report.annotations import THRESHOLD_NAMES
from rag_eval.report.case_table import CASES, case_table
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.styles import Formats, Look
from rag_eval.texts.display import printable

SHEET = "Selection"


def write_cases(
    target: Path, facts: RunFacts, results: Iterable[CaseResult], about: Sequence[str]
) -> tuple[int, int]:
    """Write the cases in the order given. Returns how many were written, and how many the sheet had no room for.

    `about` are sentences on what the selection is; a line with the number of cases is put before them. Raises
    OutputError.
    """
    from rag_eval.report.book import new_workbook

    with new_workbook(target, [CASES.name, SHEET]) as workbook:
        sheet, selection = workbook.sheets.values()
        formats = Formats(workbook.book)
        table = case_table(sheet, facts, formats)
        for result in results:
            table.append(result)
        thresholds = {**facts.thresholds, TOXICITY: facts.toxicity_threshold}
        for score, name in THRESHOLD_NAMES.items():
            if score in facts.metrics:
                workbook.book.define_name(name, f"={thresholds[score]!r}")
        table.finish(CASES.frozen)
        selection.set_column(0, 0, 110)
        for number, line in enumerate([f"{table.lines:,} cases", *about]):
            selection.write_string(number, 0, printable(line), formats[Look.TEXT])
        set_up_page(sheet, facts)
    return table.lines, table.left_out
