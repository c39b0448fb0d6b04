"""Sheet "Slices": the means of every bot on each kind of query, with the counts that they were taken over."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_eval.records import METRIC_LABELS, RunFacts
from rag_eval.report.column import NUMBER_WIDTH, Column, name_width, plain_column
from rag_eval.report.columns import mean_column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import SheetTable
from rag_eval.results.summary import BotSummary, Summary

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SHEET = "Slices"
FEW = 10
"""Means of fewer queries than this are grey."""


@dataclass(frozen=True, slots=True)
class _SliceLine:
    """One bot on one slice."""

    slice: str
    summary: BotSummary


def write_slices(worksheet: "Worksheet", formats: Formats, facts: RunFacts, summary: Summary) -> None:
    from xlsxwriter.utility import xl_rowcol_to_cell

    table = SheetTable(worksheet, slice_columns(facts), formats, header_height=44, line_height=18)
    for line in slice_lines(summary):
        table.append(line)
    table.finish(frozen=2)
    if table.lines:
        scored = xl_rowcol_to_cell(1, table.column("Scored"), col_abs=True)
        rule = {"type": "formula", "criteria": f"={scored}<{FEW}", "format": formats.faint}
        worksheet.conditional_format(1, 0, table.lines, len(table.columns) - 1, rule)


def slice_lines(summary: Summary) -> Iterator[_SliceLine]:
    return (_SliceLine(each.name, bot) for each in summary.slices for bot in each.bots)


def slice_columns(facts: RunFacts) -> list[Column[_SliceLine]]:
    """One line a slice and bot, over all the bot's own cases in the slice."""

    def mean(metric: str, label: str) -> Column[_SliceLine]:
        return mean_column(
            metric, label, facts, lambda line: line.summary.metrics[metric], lambda line: line.summary.rqs
        )

    return [
        plain_column("Slice", 24, Look.NAME, lambda line: line.slice or "(none)"),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.summary.bot),
        plain_column("Avg RQS", NUMBER_WIDTH, Look.RQS, lambda line: line.summary.rqs.value),
        *(mean(metric, label) for metric, label in METRIC_LABELS.items()),
        plain_column("Scored", NUMBER_WIDTH, Look.COUNT, lambda line: line.summary.rqs.scored, _ABOUT_SCORED),
        plain_column("Total Queries", NUMBER_WIDTH, Look.COUNT, lambda line: line.summary.total_queries),
    ]


_ABOUT_SCORED = f"Queries that have an RQS. Rows with fewer than {FEW} are grey: too few for a conclusion."
