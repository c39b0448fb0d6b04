"""What is known of rows before they are judged: text that seems to address the judge, and contexts that are cut."""

from collections.abc import Iterable

from rag_eval.configuration.settings import Settings
from rag_eval.records import Row
from rag_eval.run.evaluation import redactor_of, shortener_of
from rag_eval.texts.injection import flags_of


def flags_in(rows: Iterable[Row]) -> dict[tuple[int, str], tuple[str, ...]]:
    """By row and bot: marks of text that seems to address the judge."""
    found = ((case, flags_of(case)) for row in rows for case in row.cases)
    return {(case.row, case.bot): flags for case, flags in found if flags}


def cuts_in(settings: Settings, rows: Iterable[Row]) -> dict[tuple[int, str], str]:
    """By row and bot: what the judge does not see of a context or of earlier turns, in words."""
    redactor, shortener = redactor_of(settings), shortener_of(settings)
    notes = ((case, shortener.note(redactor.case(case))) for row in rows for case in row.cases)
    return {(case.row, case.bot): words for case, words in notes if words}
