"""Sheet "vs Baseline": what changed since an earlier run, on the queries that both judged."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval.baseline import NAMES, Change
from rag_eval.records import RunFacts
from rag_eval.report.column import Column, name_width, plain_column
from rag_eval.report.look import Formats, Look
from rag_eval.report.table import Table

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SHEET = "vs Baseline"


def write_changes(
    worksheet: "Worksheet", formats: Formats, facts: RunFacts, changes: Sequence[Change]
) -> None:
    table = Table(worksheet, change_columns(facts), formats, header_height=30, line_height=18)
    for change in changes:
        table.append(change)
    table.finish(frozen=2)


def change_columns(facts: RunFacts) -> list[Column[Change]]:
    """One line a bot and metric."""
    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda change: change.bot),
        plain_column("Metric", 20, Look.NAME, lambda change: NAMES[change.name]),
        plain_column(
            "Baseline", 10, Look.RQS, lambda change: change.before, "Mean over the queries compared."
        ),
        plain_column("Now", 10, Look.RQS, lambda change: change.now, "Mean over the queries compared."),
        plain_column("Change", 10, Look.RQS, lambda change: change.difference),
        plain_column(
            "95 % low", 10, Look.RQS, lambda change: change.interval.low if change.interval else None
        ),
        plain_column(
            "95 % high", 10, Look.RQS, lambda change: change.interval.high if change.interval else None
        ),
        plain_column("Queries compared", 10, Look.COUNT, lambda change: change.queries),
        plain_column("Verdict", 14, Look.WORD, lambda change: change.direction.value, _ABOUT_VERDICT),
    ]


def change_lines(changes: Iterable[Change], baseline: str) -> list[str]:
    """The changes as plain lines; those of RQS, and of any metric that changed for certain."""
    lines = [
        f"{change.bot}: {NAMES[change.name]} {change.before:.4f} before, {change.now:.4f} now{_range(change)}: "
        f"{change.direction.value} ({change.queries} queries)"
        for change in changes
        if change.name == "rqs" or change.direction.value in ("better", "worse")
    ]
    return [f"Against {baseline}:", *lines] if lines else [f"Against {baseline}: no query is in both runs."]


def _range(change: Change) -> str:
    if change.interval is None:
        return f", {change.difference:+.2f}"
    return f", {change.difference:+.2f} (95 % {change.interval.low:+.2f} to {change.interval.high:+.2f})"


_ABOUT_VERDICT = (
    "Better or worse only where chance would hardly make it: all lines are tested together (Holm, 5 %)."
)
