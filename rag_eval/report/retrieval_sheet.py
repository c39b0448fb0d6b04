"""Sheet "Retrieval": the retrieved documents of each bot, compared with the gold documents."""

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, name_width, plain_column
from rag_eval.report.styles import Look
from rag_eval.retrieval import DEFAULT_CUTOFFS, RetrievalSummary, RetrievalTally, label_of

SHEET = "Retrieval"


_Line = tuple[str, RetrievalSummary]
"""A bot, and its means over the queries that have gold documents."""


def retrieval_columns(facts: RunFacts) -> list[Column[_Line]]:
    """The columns of a table with one row per bot."""

    def measure(name: str) -> Column[_Line]:
        def cell(line: _Line) -> Cell:
            mean = line[1].means[name]
            return Cell(mean, Look.NOT_APPLICABLE if mean is None else Look.RQS)

        return Column(_HEADERS.get(name, label_of(name)), 10, cell, about=_ABOUT.get(name, ""))

    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line[0]),
        *(measure(name) for name in RetrievalTally().summary().means),
        plain_column("Scored", 8, Look.COUNT, lambda line: line[1].scored, _ABOUT_SCORED),
        plain_column(
            "Not Applicable",
            11,
            Look.COUNT,
            lambda line: line[1].not_applicable.count,
            "Queries without gold documents. They are not part of any mean.",
        ),
    ]


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
    "Queries with gold documents. Every mean covers all of them; a query that retrieved nothing counts as 0."
)
