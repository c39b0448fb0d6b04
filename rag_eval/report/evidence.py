"""Sheet "Evidence": what the judge looked at, one line a statement or chunk, linked with the scores it is behind."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rag_eval.records import CaseResult, CriterionVerdict, Evidence
from rag_eval.report.column import Cell, Column, Place, plain_column
from rag_eval.report.styles import Look
from rag_eval.report.worksheet import SheetTable


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One piece of evidence and the score that it is behind."""

    result: CaseResult
    heading: str
    """Of the score's column."""
    evidence: Evidence
    score: Place | None = None
    """Its cell, if there is a sheet with it."""


def evidence_columns() -> list[Column[EvidenceLine]]:
    return [
        Column(
            "Row", 8, lambda line: Cell(line.result.case.row, Look.LINK, link=line.score), about=_ABOUT_ROW
        ),
        plain_column("Bot", 16, Look.TEXT, lambda line: line.result.case.bot),
        plain_column("Metric", 20, Look.WORD, lambda line: line.heading),
        plain_column("Subject", 20, Look.TEXT, lambda line: line.evidence.subject),
        plain_column(
            "Rank",
            7,
            Look.COUNT,
            lambda line: line.evidence.rank,
            "Rank of the chunk, or of the chunk that supports the statement, from 1.",
        ),
        plain_column("Text", 80, Look.TEXT, lambda line: line.evidence.text),
        Column("Verdict", 20, _verdict_cell, Look.HEADER, "Bold and red: it counts against the score."),
        plain_column("Reason", 60, Look.TEXT, lambda line: line.evidence.reason),
    ]


def append_evidence(
    table: SheetTable[EvidenceLine],
    result: CaseResult,
    cases: SheetTable[CaseResult],
    headers: Mapping[str, str],
) -> dict[int, Place]:
    """Write what is behind the scores of the case that `cases` will write next; `headers` are those of its scores.

    Returns the line where each score's evidence begins, by the column of the score in `cases`.
    """
    links: dict[int, Place] = {}
    for header, evidence in _evidence(result, headers):
        column = cases.column(header)
        place = Place(cases.worksheet.name, cases.lines + 1, column)
        first = table.lines + 1
        for item in evidence:
            table.append(EvidenceLine(result, header, item, place))
        if table.lines >= first:
            links[column] = Place(table.worksheet.name, first, 0)
    return links


def evidence_lines(headers: Mapping[str, str]) -> Callable[[CaseResult | None], Iterator[EvidenceLine]]:
    """A function that returns what is behind the scores of a case, by the `headers` of their columns; without links."""

    def lines(result: CaseResult | None) -> Iterator[EvidenceLine]:
        if result is None:
            return
        for header, evidence in _evidence(result, headers):
            yield from (EvidenceLine(result, header, item) for item in evidence)

    return lines


def _evidence(result: CaseResult, headers: Mapping[str, str]) -> Iterator[tuple[str, Iterable[Evidence]]]:
    """What is behind each score, by the header of its column."""
    scores = result.all_scores
    for metric, header in headers.items():
        if metric in scores:
            yield header, scores[metric].evidence
    if result.rubric:
        yield "Rubric", map(_of_criterion, result.rubric.verdicts)


def _of_criterion(verdict: CriterionVerdict) -> Evidence:
    words = "passed" if verdict.passed else "failed"
    return Evidence("criterion", verdict.criterion, words, verdict.passed, verdict.reason)


def _verdict_cell(line: EvidenceLine) -> Cell:
    return Cell(line.evidence.verdict, Look.TEXT if line.evidence.favourable else Look.AGAINST)


_ABOUT_ROW = "Row number in the input. A click leads to the score."
