"""Sheet "Evidence": what the judge looked at, one line a statement or chunk, linked with the scores it is behind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rag_eval.records import METRIC_LABELS, TOXICITY, CaseResult, Evidence, Score
from rag_eval.report.columns import Cell, Column, Place, plain_column
from rag_eval.report.look import Look
from rag_eval.report.table import Table

SHEET = "Evidence"
SCORE_HEADERS: Mapping[str, str] = {**METRIC_LABELS, TOXICITY: "Input Toxicity"}
"""Headers of the columns of scores on the first sheet, by metric."""


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One piece of evidence and the score that it is behind."""

    result: CaseResult
    metric: str
    evidence: Evidence
    score: Place


def evidence_columns() -> list[Column[EvidenceLine]]:
    return [
        Column(
            "Row", 8, lambda line: Cell(line.result.case.row, Look.LINK, link=line.score), about=_ABOUT_ROW
        ),
        plain_column("Bot", 16, Look.TEXT, lambda line: line.result.case.bot),
        plain_column("Metric", 20, Look.WORD, lambda line: _label(line.metric)),
        plain_column("Subject", 20, Look.TEXT, lambda line: line.evidence.subject),
        plain_column("Rank", 7, Look.COUNT, lambda line: line.evidence.rank, "Rank of a chunk, from 1."),
        plain_column("Text", 80, Look.TEXT, lambda line: line.evidence.text),
        Column("Verdict", 20, _verdict_cell, Look.HEADER, "Bold and red: it speaks against a high score."),
        plain_column("Reason", 60, Look.TEXT, lambda line: line.evidence.reason),
    ]


def append_evidence(
    table: Table[EvidenceLine], result: CaseResult, cases: Table[CaseResult]
) -> dict[int, Place]:
    """Write what is behind the scores of the case that `cases` will write next.

    Returns the line where each score's evidence begins, by the column of the score in `cases`.
    """
    links: dict[int, Place] = {}
    for score in _scores(result):
        column = cases.column(SCORE_HEADERS[score.metric])
        place = Place(cases.worksheet.name, cases.lines + 1, column)
        first = table.lines + 1
        for item in score.evidence:
            table.append(EvidenceLine(result, score.metric, item, place))
        if table.lines >= first:
            links[column] = Place(SHEET, first, 0)
    return links


def _scores(result: CaseResult) -> Iterator[Score]:
    by_metric = {**result.scores, TOXICITY: result.toxicity}
    return (by_metric[metric] for metric in SCORE_HEADERS if metric in by_metric)


def _label(metric: str) -> str:
    return SCORE_HEADERS[metric]


def _verdict_cell(line: EvidenceLine) -> Cell:
    return Cell(line.evidence.verdict, Look.TEXT if line.evidence.favourable else Look.AGAINST)


_ABOUT_ROW = "Row number in the input. A click leads to the score."
