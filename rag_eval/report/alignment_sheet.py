"""Sheets "Human Alignment", the judge's scores and the human labels, and "Disagreements", where they differ most."""

from collections.abc import Mapping
from dataclasses import replace

from rag_eval.records import RunFacts
from rag_eval.report.column import (
    Cell,
    Column,
    Place,
    grey_column,
    interval_columns,
    name_width,
    plain_column,
)
from rag_eval.report.styles import Look
from rag_eval.results.human_alignment import FEWEST_LABELS, Disagreement, HumanAgreement
from rag_eval.results.paired import MOST_DISAGREEMENTS
from rag_eval.results.summary import FEWEST_OF_CLASS, FEWEST_ROWS


def agreement_columns(facts: RunFacts) -> list[Column[HumanAgreement]]:
    """The columns of a table with one row per measure and bot."""
    compared: Column[HumanAgreement] = plain_column(
        "Compared", 18, Look.NAME, lambda line: " and ".join(line.raters), _ABOUT_RATERS
    )
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Bot", name_width(facts), Look.NAME, _bot_name, _ABOUT_BOT),
        *([compared] if facts.strata else []),
        *_AGREEMENT,
        *_MEANS,
    ]


def disagreement_columns(facts: RunFacts, places: Mapping[str, Place]) -> list[Column[Disagreement]]:
    """The columns of a table with one row per case.

    `places` has, by measure, the header of the column with its scores, in a table with one row per case; a row then
    links to its score.
    """

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
    f"(prediction-powered inference). Needs {FEWEST_LABELS} labels of cases drawn at random; "
    f"if cases are of conversations, {FEWEST_ROWS} of these."
)
_ABOUT_RATERS = (
    "Who is compared. People: the input's labels, or the median of the raters of a review. The agreement of two raters "
    "is the most that a judge can be expected to reach."
)
_ABOUT_MORE = (
    "How many more labels narrow the interval of the corrected mean to about ±0.05. Empty if no number of labels does: "
    "then more queries are needed."
)
_ABOUT_IMPLIED = (
    "The score that parts responses that people label 0.5 or higher from the others best. Empty with fewer than "
    f"{FEWEST_LABELS} labels, or {FEWEST_OF_CLASS} on either side."
)
_ABOUT_GAP = f"Up to {MOST_DISAGREEMENTS} per measure, the largest first."

_AGREEMENT: tuple[Column[HumanAgreement], ...] = (
    plain_column("Cases", 8, Look.COUNT, lambda line: line.count, "Cases with a label and a score."),
    plain_column("Labels without a score", 10, Look.COUNT, lambda line: line.unjudged),
    plain_column("Kappa", 8, Look.SCORE, lambda line: line.kappa.kappa, _ABOUT_KAPPA),
    *interval_columns("Kappa", 9.5, Look.SCORE, lambda line: line.kappa.interval, _ABOUT_BOUNDS),
    plain_column("Same verdict", 9, Look.PERCENT, lambda line: line.kappa.raw, _ABOUT_RAW),
    plain_column(
        "Spearman",
        9.5,
        Look.SCORE,
        lambda line: line.correlation.value if line.correlation else None,
        _ABOUT_SPEARMAN,
    ),
    plain_column("Mean absolute error", 9.5, Look.SCORE, lambda line: line.mean_absolute_error),
    plain_column(
        "Threshold",
        9.5,
        Look.SCORE,
        lambda line: line.threshold,
        "Scores at or above this count as positive.",
    ),
    grey_column("True-positive rate", 9.5, Look.PERCENT, lambda line: line.positives.rate, _ABOUT_POSITIVES),
    grey_column("True-negative rate", 9.5, Look.PERCENT, lambda line: line.negatives.rate, _ABOUT_NEGATIVES),
)
"""How far the judge agrees with people, or two raters with each other."""
_MEANS: tuple[Column[HumanAgreement], ...] = (
    plain_column("Human mean", 9, Look.SCORE, lambda line: line.human_mean, "Over the cases."),
    plain_column("Judge mean", 9, Look.SCORE, lambda line: line.judge_mean, "Over the same cases."),
    plain_column(
        "Judge mean, all cases",
        10,
        Look.SCORE,
        lambda line: line.corrected.judge_mean if line.corrected else None,
        _ABOUT_UNCORRECTED,
    ),
    plain_column(
        "Corrected mean",
        10,
        Look.SCORE,
        lambda line: line.corrected.value if line.corrected else None,
        _ABOUT_CORRECTED,
    ),
    *interval_columns(
        "Corrected", 9.5, Look.SCORE, lambda line: line.corrected.interval if line.corrected else None
    ),
    plain_column(
        "Labels to ±0.05",
        9.5,
        Look.COUNT,
        lambda line: line.corrected.more_labels if line.corrected else None,
        _ABOUT_MORE,
    ),
    plain_column(
        "Implied threshold",
        9.5,
        Look.SCORE,
        lambda line: line.implied.value if line.implied else None,
        _ABOUT_IMPLIED,
    ),
    *interval_columns(
        "Implied", 9.5, Look.SCORE, lambda line: line.implied.interval if line.implied else None
    ),
)
"""The mean of the labels beside that of the judge, and the threshold that the labels imply."""
