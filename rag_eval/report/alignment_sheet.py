"""Sheet "Human Alignment": judge and people side by side, and the cases on which they differ most."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_eval.alignment import (
    FEWEST_LABELS,
    MOST_DISAGREEMENTS,
    Alignment,
    Disagreement,
    HumanAgreement,
    Share,
)
from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, Place, Value, interval_columns, name_width, plain_column
from rag_eval.report.look import Formats, Look
from rag_eval.report.table import Table

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from rag_eval.statistics.intervals import Interval

SHEET = "Human Alignment"
_GAP = 3
"""Rows between the two tables, the second one's title included."""


def write_alignment(
    worksheet: "Worksheet",
    formats: Formats,
    facts: RunFacts,
    alignment: Alignment,
    places: Mapping[str, tuple[str, int]],
) -> None:
    """`places` gives the sheet and the column of each measure's scores, one line a case below the header."""
    table = Table(worksheet, agreement_columns(facts), formats, header_height=44, line_height=18)
    for agreement in alignment.agreements:
        table.append(agreement)
    table.finish(frozen=2)
    first = table.lines + 1 + _GAP
    worksheet.write_string(first - 1, 0, "Largest disagreements", formats[Look.TITLE])
    below = Table(worksheet, disagreement_columns(places), formats, 30, 18, first_row=first)
    for disagreement in alignment.disagreements:
        below.append(disagreement)


def agreement_columns(facts: RunFacts) -> list[Column[HumanAgreement]]:
    """One line a measure and bot."""
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Bot", name_width(facts), Look.NAME, _bot_name, _ABOUT_BOT),
        plain_column("Cases", 8, Look.COUNT, lambda line: line.count, "Judged by both."),
        plain_column("Labels without a score", 10, Look.COUNT, lambda line: line.unjudged),
        plain_column("Kappa", 8, Look.SCORE, lambda line: line.kappa.kappa, _ABOUT_KAPPA),
        *interval_columns("Kappa", 9.5, Look.SCORE, lambda line: line.kappa.interval, _ABOUT_BOUNDS),
        plain_column("Same verdict", 9, Look.PERCENT, lambda line: line.kappa.raw, _ABOUT_RAW),
        plain_column("Spearman", 9.5, Look.SCORE, _spearman, _ABOUT_SPEARMAN),
        plain_column("Mean absolute error", 9.5, Look.SCORE, lambda line: line.mean_absolute_error),
        plain_column("Threshold", 9.5, Look.SCORE, lambda line: line.threshold, "From it on: positive."),
        Column("True-positive rate", 9.5, lambda line: _share_cell(line.positives), about=_ABOUT_POSITIVES),
        Column("True-negative rate", 9.5, lambda line: _share_cell(line.negatives), about=_ABOUT_NEGATIVES),
        plain_column("Human mean", 9, Look.SCORE, lambda line: line.human_mean, "Over the cases."),
        plain_column("Judge mean", 9, Look.SCORE, lambda line: line.judge_mean, "Over the same cases."),
        plain_column("Judge mean, all cases", 10, Look.SCORE, _uncorrected, _ABOUT_UNCORRECTED),
        plain_column("Corrected mean", 10, Look.SCORE, _corrected, _ABOUT_CORRECTED),
        *interval_columns("Corrected", 9.5, Look.SCORE, _corrected_interval),
    ]


def disagreement_columns(places: Mapping[str, tuple[str, int]]) -> list[Column[Disagreement]]:
    """One line a case."""

    def row(line: Disagreement) -> Cell:
        sheet, column = places[line.measure]
        return Cell(line.row, Look.LINK, link=Place(sheet, line.line + 1, column))

    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Bot", 12, Look.NAME, _bot_name),
        Column("Row", 8, row, about="Row number in the input. A click leads to the score."),
        plain_column("Judge", 9, Look.SCORE, lambda line: line.judge),
        plain_column("Human", 9, Look.SCORE, lambda line: line.human),
        plain_column("Judge − Human", 9, Look.SCORE, lambda line: line.gap, _ABOUT_GAP),
        plain_column("Query", 9, Look.NAME, lambda line: line.query),
    ]


def _bot_name(line: HumanAgreement | Disagreement) -> str:
    return line.bot or "All bots"


def _spearman(line: HumanAgreement) -> Value:
    return line.correlation.value if line.correlation else None


def _share_cell(share: Share) -> Cell:
    rate = share.rate
    return Cell(rate, Look.NOT_APPLICABLE if rate is None else Look.PERCENT)


def _uncorrected(line: HumanAgreement) -> Value:
    return line.corrected.judge_mean if line.corrected else None


def _corrected(line: HumanAgreement) -> Value:
    return line.corrected.value if line.corrected else None


def _corrected_interval(line: HumanAgreement) -> "Interval | None":
    return line.corrected.interval if line.corrected else None


_ABOUT_BOT = "Toxicity is one of the query, whoever answers it: it has one line, whose cases are queries."
_ABOUT_KAPPA = (
    "Cohen's kappa: 1 is full agreement, 0 what chance would give. Numbers are compared in five bands with quadratic "
    "weights, criteria as yes and no. Empty where all have the same verdict."
)
_ABOUT_BOUNDS = (
    "Empty where nothing tells how sure kappa is: for a single case, where judge and people never differ, and where "
    "one of them always gives the same verdict."
)
_ABOUT_RAW = "Cases in the same band, or with the same yes or no."
_ABOUT_SPEARMAN = "Rank correlation: 1 if judge and people put the cases in the same order."
_ABOUT_POSITIVES = (
    "Of the cases that are at or above the threshold for people: share that is so for the judge."
)
_ABOUT_NEGATIVES = "Of the cases that are below the threshold for people: share that is so for the judge."
_ABOUT_UNCORRECTED = "Over all the bot's judged cases, labelled or not: what the correction starts from."
_ABOUT_CORRECTED = (
    "What people would say on average of all the bot's cases, by prediction-powered inference: the judge's mean "
    f"without its bias, as the labels show it. From {FEWEST_LABELS} labels on. It holds if the labelled cases were "
    "drawn at random."
)
_ABOUT_GAP = f"At most {MOST_DISAGREEMENTS} a measure, the largest first."
