"""Sheets "Human Alignment", judge and people side by side, and "Disagreements", the cases on which they differ most."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, Place, Value, interval_columns, name_width, plain_column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import Table
from rag_eval.results.human_alignment import (
    FEWEST_LABELS,
    MOST_DISAGREEMENTS,
    Disagreement,
    HumanAgreement,
    Share,
)

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from rag_eval.results.intervals import Interval

SHEET = "Human Alignment"
DISAGREEMENTS = "Disagreements"


def write_alignment(
    worksheet: "Worksheet", formats: Formats, facts: RunFacts, agreements: Sequence[HumanAgreement]
) -> None:
    table = Table(worksheet, agreement_columns(facts), formats, header_height=44, line_height=18)
    for agreement in agreements:
        table.append(agreement)
    table.finish(frozen=2)


def write_disagreements(
    worksheet: "Worksheet",
    formats: Formats,
    facts: RunFacts,
    disagreements: Sequence[Disagreement],
    places: Mapping[str, Place],
) -> None:
    """`places` has the header of each measure's scores, where these stand one line a case."""
    table = Table(worksheet, disagreement_columns(facts, places), formats, header_height=30, line_height=18)
    for disagreement in disagreements:
        table.append(disagreement)
    table.finish(frozen=2)


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


def disagreement_columns(
    facts: RunFacts, places: Mapping[str, Place] = MappingProxyType({})
) -> list[Column[Disagreement]]:
    """One line a case. Without `places` nothing leads to the scores."""

    def row(line: Disagreement) -> Cell:
        header = places.get(line.measure)
        link = replace(header, row=header.row + line.line + 1) if header else None
        return Cell(line.row, Look.LINK if link else Look.COUNT, link=link)

    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Bot", name_width(facts), Look.NAME, _bot_name),
        Column("Row", 8, row, about="Row number in the input. A click leads to the score."),
        plain_column("Judge", 9, Look.SCORE, lambda line: line.judge),
        plain_column("Human", 9, Look.SCORE, lambda line: line.human),
        plain_column("Judge − Human", 9, Look.SCORE, lambda line: line.gap, _ABOUT_GAP),
        plain_column("Query", 60, Look.NAME, lambda line: line.query),
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
