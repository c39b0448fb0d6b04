"""Sheet "Side by Side": one row per query with what each bot answered, to find the queries on which bots differ."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.column import NUMBER_WIDTH, Column, Value, plain_column
from rag_eval.report.styles import LINE_HEIGHT, Formats, Look
from rag_eval.report.worksheet import SHEET_ROWS, SheetTable

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SHEET = "Side by Side"
_LINES = 5
"""Lines of text in a row."""
_Query = Sequence[CaseResult]
"""The cases of one query, one for each bot at most."""


class SideBySide:
    """Told of every result in order; passes the results of each query on together."""

    def __init__(self, append: Callable[[_Query], None]) -> None:
        self._append = append
        self._query: list[CaseResult] = []

    def add(self, result: CaseResult) -> None:
        if self._query and self._query[0].case.row != result.case.row:
            self.finish()
        self._query.append(result)

    def finish(self) -> None:
        """Pass on the last query."""
        if self._query:
            self._append(tuple(self._query))
        self._query.clear()


def query_table(
    worksheet: "Worksheet", formats: Formats, facts: RunFacts, sheet_rows: int = SHEET_ROWS
) -> SheetTable[_Query]:
    """The sheet's table: one row per query."""
    height = _LINES * LINE_HEIGHT
    return SheetTable(worksheet, query_columns(facts), formats, 3 * LINE_HEIGHT, height, sheet_rows)


def query_columns(facts: RunFacts) -> list[Column[_Query]]:
    """What the bots share, how far their RQS are apart, and then RQS, failure mode and response of each bot."""
    columns: list[Column[_Query]] = [
        plain_column("Row", NUMBER_WIDTH, Look.COUNT, lambda query: query[0].case.row),
        plain_column("Query", 28, Look.TEXT, lambda query: query[0].case.query),
        plain_column("Ground Truth", 30, Look.TEXT, lambda query: query[0].case.reference, is_folded=True),
        plain_column("Bots differ", NUMBER_WIDTH, Look.RQS, _spread, _ABOUT_SPREAD),
    ]
    for bot in facts.bots:
        columns += [
            plain_column(f"{bot} RQS", NUMBER_WIDTH, Look.RQS, _of(bot, lambda case: case.rqs)),
            plain_column(
                f"{bot} Failure Mode", 15, Look.WORD, _of(bot, lambda case: " | ".join(case.failure_modes))
            ),
            plain_column(f"{bot} Response", 36, Look.TEXT, _of(bot, lambda case: case.case.response)),
        ]
    return columns


def _of(bot: str, value: Callable[[CaseResult], Value]) -> Callable[[_Query], Value]:
    return lambda query: next((value(case) for case in query if case.case.bot == bot), None)


def _spread(query: _Query) -> float | None:
    scored = [case.rqs for case in query if case.rqs is not None]
    return max(scored) - min(scored) if len(scored) > 1 else None


_ABOUT_SPREAD = (
    "Highest minus lowest RQS of the bots on this query. Filter or sort by it to see where the bots differ. "
    "Empty if fewer than two bots have an RQS."
)
