"""Sheet "Retrieval": what each bot retrieved, held against the gold documents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, name_width, plain_column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import Table
from rag_eval.retrieval import DEFAULT_CUTOFFS, RetrievalSummary, RetrievalTally, label_of

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SHEET = "Retrieval"


@dataclass(frozen=True, slots=True)
class RetrievalLine:
    bot: str
    summary: RetrievalSummary


def write_bots_retrieval(
    worksheet: "Worksheet", formats: Formats, facts: RunFacts, bots: Mapping[str, RetrievalSummary]
) -> None:
    table = Table(worksheet, retrieval_columns(facts), formats, header_height=44, line_height=18)
    for line in retrieval_lines(bots):
        table.append(line)
    table.finish(frozen=1)


def retrieval_lines(bots: Mapping[str, RetrievalSummary]) -> Iterator[RetrievalLine]:
    """One line a bot."""
    return (RetrievalLine(bot, summary) for bot, summary in bots.items())


def retrieval_columns(facts: RunFacts) -> list[Column[RetrievalLine]]:
    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        *_measures(),
        plain_column("Scored", 8, Look.COUNT, lambda line: line.summary.scored, _ABOUT_SCORED),
        plain_column("Not Applicable", 11, Look.COUNT, _without_gold, _ABOUT_NOT_APPLICABLE),
    ]


def _without_gold(line: RetrievalLine) -> int:
    return line.summary.not_applicable.count


def _measures() -> Iterator[Column[RetrievalLine]]:
    def cell_of(name: str) -> Column[RetrievalLine]:
        def cell(line: RetrievalLine) -> Cell:
            mean = line.summary.means[name]
            return Cell(mean, Look.NOT_APPLICABLE if mean is None else Look.RQS)

        return Column(_HEADERS.get(name, label_of(name)), 10, cell, about=_ABOUT.get(name, ""))

    return (cell_of(name) for name in RetrievalTally().summary().means)


_HEADERS = {"reciprocal_rank": "MRR", "average_precision": "MAP"}
_ABOUT = {
    "reciprocal_rank": "Mean of 1 ÷ rank of the first gold document.",
    "average_precision": "Mean over the queries of the mean precision at the gold documents' ranks.",
    "doc_recall": "Mean share of the gold documents that were retrieved.",
    "doc_precision": "Mean share of the retrieved documents that are gold.",
    **{
        f"hit_rate_{k}": f"Share of the queries with a gold document among the first {k}."
        for k in DEFAULT_CUTOFFS
    },
}
_ABOUT_SCORED = (
    "Queries with gold documents. Every mean is over these; a query without retrieved documents counts 0."
)
_ABOUT_NOT_APPLICABLE = "Queries without gold documents; no mean counts them."
