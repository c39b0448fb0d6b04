"""Sheet "Rubric": how often each bot passes, as a whole and on each criterion."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, name_width, plain_column
from rag_eval.report.styles import Look
from rag_eval.results.pass_rates import BotPassRates, PassRate

SHEET = "Rubric"
OVERALL = "Rubric as a whole"


class _Line(NamedTuple):
    bot: str
    criterion: str
    """Id of one criterion, or OVERALL."""
    rate: PassRate


def pass_rate_lines(bots: Sequence[BotPassRates]) -> Iterator[_Line]:
    """One row per criterion and bot, those of the whole rubric first. The bots of a criterion follow each other."""
    for bot in bots:
        yield _Line(bot.bot, OVERALL, bot.overall)
    for criterion in bots[0].criteria if bots else ():
        for bot in bots:
            yield _Line(bot.bot, criterion, bot.criteria[criterion])


def pass_rate_columns(facts: RunFacts) -> list[Column[_Line]]:
    return [
        plain_column("Criterion", 34, Look.NAME, lambda line: line.criterion),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        Column("Pass Rate", 10, lambda line: _rate_cell(line.rate.rate), about="Passed ÷ Judged."),
        Column("95 % low", 9, lambda line: _rate_cell(_bounds(line)[0]), about=_ABOUT_INTERVAL),
        Column("95 % high", 9, lambda line: _rate_cell(_bounds(line)[1]), about=_ABOUT_INTERVAL),
        plain_column("Passed", 9, Look.COUNT, lambda line: line.rate.passed),
        plain_column("Judged", 9, Look.COUNT, lambda line: line.rate.scored),
        plain_column("Not Judged", 9, Look.COUNT, lambda line: line.rate.failed, _ABOUT_NOT_JUDGED),
        plain_column("Not Applicable", 11, Look.COUNT, lambda line: line.rate.not_applicable),
    ]


def _rate_cell(rate: float | None) -> Cell:
    return Cell(rate, Look.NOT_APPLICABLE if rate is None else Look.PERCENT)


def _bounds(line: _Line) -> tuple[float | None, float | None]:
    from rag_eval.results.intervals import wilson_interval

    interval = wilson_interval(line.rate.passed, line.rate.scored)
    return (None, None) if interval is None else (interval.low, interval.high)


_ABOUT_INTERVAL = "95% confidence interval (Wilson) of the pass rate. Empty if no response was judged."
_ABOUT_NOT_JUDGED = "The judge gave no verdict. These responses are not part of any rate."
