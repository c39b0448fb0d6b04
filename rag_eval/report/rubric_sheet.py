"""Sheet "Rubric": how often each bot passes, as a whole and on each criterion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_eval.records import RunFacts
from rag_eval.report.column import Cell, Column, name_width, plain_column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import Table
from rag_eval.results.pass_rates import BotPassRates, PassRate

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SHEET = "Rubric"
OVERALL = "Rubric as a whole"


@dataclass(frozen=True, slots=True)
class PassRateLine:
    """One bot and one criterion, or the whole rubric."""

    bot: str
    criterion: str
    rate: PassRate


def write_pass_rates(
    worksheet: "Worksheet", formats: Formats, facts: RunFacts, bots: Sequence[BotPassRates]
) -> None:
    table = Table(worksheet, pass_rate_columns(facts), formats, header_height=30, line_height=18)
    for line in pass_rate_lines(bots):
        table.append(line)
    table.finish(frozen=2)


def pass_rate_lines(bots: Sequence[BotPassRates]) -> Iterator[PassRateLine]:
    """By criterion, so that the bots stand side by side; the whole rubric first."""
    for bot in bots:
        yield PassRateLine(bot.bot, OVERALL, bot.overall)
    for criterion in bots[0].criteria if bots else ():
        for bot in bots:
            yield PassRateLine(bot.bot, criterion, bot.criteria[criterion])


def pass_rate_columns(facts: RunFacts) -> list[Column[PassRateLine]]:
    return [
        plain_column("Criterion", 34, Look.NAME, lambda line: line.criterion),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        Column("Pass Rate", 10, _rate_cell, about="Passed ÷ Judged."),
        Column("95 % low", 9, lambda line: _bound_cell(line, 0), about=_ABOUT_INTERVAL),
        Column("95 % high", 9, lambda line: _bound_cell(line, 1), about=_ABOUT_INTERVAL),
        plain_column("Passed", 9, Look.COUNT, lambda line: line.rate.passed),
        plain_column("Judged", 9, Look.COUNT, lambda line: line.rate.scored),
        plain_column("Not Judged", 9, Look.COUNT, lambda line: line.rate.failed, _ABOUT_NOT_JUDGED),
        plain_column("Not Applicable", 11, Look.COUNT, lambda line: line.rate.not_applicable),
    ]


def _rate_cell(line: PassRateLine) -> Cell:
    rate = line.rate.rate
    return Cell(rate, Look.NOT_APPLICABLE if rate is None else Look.PERCENT)


def _bound_cell(line: PassRateLine, end: int) -> Cell:
    from rag_eval.results.intervals import wilson_interval

    interval = wilson_interval(line.rate.passed, line.rate.scored)
    if interval is None:
        return Cell(None, Look.NOT_APPLICABLE)
    return Cell((interval.low, interval.high)[end], Look.PERCENT)


_ABOUT_INTERVAL = "95% confidence interval (Wilson) of the pass rate over all queries of this kind."
_ABOUT_NOT_JUDGED = "The judge gave no verdict. No rate counts these cases."
