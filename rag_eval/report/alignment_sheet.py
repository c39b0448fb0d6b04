"""Sheets "Human Alignment", judge and people side by side, and "Disagreements", the cases on which they differ most."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, Place, Value, interval_columns, name_width, plain_column
from rag_eval.report.styles import LINE_HEIGHT, Formats, Look
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
    table = Table(
        worksheet, disagreement_columns(facts, places), formats, header_height=30, line_height=2 * LINE_HEIGHT
    )
    for disagreement in disagreements:
        table.append(disagreement)
    table.finish(frozen=2)


def agreement_columns(facts: RunFacts) -> list[Column[HumanAgreement]]:
    """One line a measure and bot."""
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Bot", name_width(facts), Look.NAME, _bot_name, _ABOUT_BOT),
        plain_column("Cases", 8, Look.COUNT, lambda line: line.count, "Cases with a label and a score."),
        plain_column("Labels without a score", 10, Look.COUNT, lambda line: line.unjudged),
        plain_column("Kappa", 8, Look.SCORE, lambda line: line.kappa.kappa, _ABOUT_KAPPA),
        *interval_columns("Kappa", 9.5, Look.SCORE, lambda line: line.kappa.interval, _ABOUT_BOUNDS),
        plain_column("Same verdict", 9, Look.PERCENT, lambda line: line.kappa.raw, _ABOUT_RAW),
        plain_column("Spearman", 9.5, Look.SCORE, _spearman, _ABOUT_SPEARMAN),
        plain_column("Mean absolute error", 9.5, Look.SCORE, lambda line: line.mean_absolute_error),
        plain_column(
            "Threshold",
            9.5,
            Look.SCORE,
            lambda line: line.threshold,
            "Scores at or above this count as positive.",
        ),
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
        Column("Row", 8, row, about="Row number in the input. Click it to go to the score."),
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


_ABOUT_BOT = "Toxicity belongs to the query: it has one row for all bots, whose cases are queries."
_ABOUT_KAPPA = (
    "Cohen's kappa: 1 is full agreement, 0 is agreement by chance. Numbers: five bands, quadratic weights; "
    "criteria: yes or no. Empty if all verdicts are the same."
)
_ABOUT_BOUNDS = (
    "Empty if kappa has no interval: one case, no disagreement, or one side always gives the same verdict."
)
_ABOUT_RAW = "Share of cases in the same band, or with the same yes or no."
_ABOUT_SPEARMAN = "Rank correlation: 1 if the judge and the annotators order the cases alike."
_ABOUT_POSITIVES = (
    "Of the cases that the annotators put at or above the threshold, the share that the judge puts there."
)
_ABOUT_NEGATIVES = (
    "Of the cases that the annotators put below the threshold, the share that the judge puts there."
)
_ABOUT_UNCORRECTED = "Over all judged cases of the bot, labelled or not. The correction starts from it."
_ABOUT_CORRECTED = (
    "Estimated mean human label over all cases of the bot: the judge's mean, corrected for its bias "
    f"(prediction-powered inference). Needs {FEWEST_LABELS} labels of cases drawn at random."
)
_ABOUT_GAP = f"Up to {MOST_DISAGREEMENTS} per measure, the largest first."
