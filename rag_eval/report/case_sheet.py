"""A workbook of some cases of a run: the first sheet of a report, and what the selection is. It has no means."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_eval.records import TOXICITY, CaseResult, RunFacts
from rag_eval.report.annotations import THRESHOLD_NAMES
from rag_eval.report.case_table import CASES, case_table
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.styles import Formats, Look
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement
from rag_eval.texts.display import printable

SHEET = "Selection"


def write_cases(
    target: Path, facts: RunFacts, results: Iterable[CaseResult], about: Sequence[str]
) -> tuple[int, int]:
    """Write the cases in the order given. Returns how many were written, and how many the sheet had no room for.

    `about` are sentences on what the selection is; a line with the number of cases is put before them. Raises
    OutputError.
    """
    from xlsxwriter import Workbook

    from rag_eval.report.book import workbook_errors

    replacement = Replacement(target)
    try:
        with workbook_errors(target), Scratch(target) as folder:
            options = {"constant_memory": True, "tmpdir": folder, "strings_to_formulas": False}
            book = Workbook(replacement.path, {**options, "strings_to_urls": False})
            sheet, selection = book.add_worksheet(CASES.name), book.add_worksheet(SHEET)
            formats = Formats(book)
            table = case_table(sheet, facts, formats)
            for result in results:
                table.append(result)
            thresholds = {**facts.thresholds, TOXICITY: facts.toxicity_threshold}
            for score, name in THRESHOLD_NAMES.items():
                if score in facts.metrics:
                    book.define_name(name, f"={thresholds[score]!r}")
            table.finish(CASES.frozen)
            selection.set_column(0, 0, 110)
            for number, line in enumerate([f"{table.lines:,} cases", *about]):
                selection.write_string(number, 0, printable(line), formats[Look.TEXT])
            set_up_page(sheet, facts)
            book.close()
        replacement.commit()
    finally:
        replacement.discard()
    return table.lines, table.left_out
