"""Sheet "History": each bot's mean RQS through time with its interval, and what changed since the last run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.records import METRIC_LABELS, SPENT_LABELS
from rag_eval.report.annotations import Stack
from rag_eval.report.charts import Curve, time_chart
from rag_eval.report.column import (
    NUMBER_WIDTH,
    Cell,
    Column,
    ReportTable,
    amount_cell,
    narrow_column,
    plain_column,
)
from rag_eval.report.notes import Note
from rag_eval.report.styles import LINE_HEIGHT, Formats, Look
from rag_eval.report.worksheet import SheetTable, WrittenSheet
from rag_eval.results.paired import PairedMeans
from rag_eval.results.run_history import BotInTime, History, PairOfRun, bots_in_time, changes_words
from rag_eval.results.summary import Mean
from rag_eval.texts.display import counted, printable, shorten

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

    from rag_eval.report.outputs import FinishedRun

_SHEET = "History"
_MOST_RUNS = 40
"""On the sheet of a report, so that the chart below the table is near; a workbook of its own shows all."""
_WIDTH = 1120
"""Pixels of what floats below the table."""
_CHART_HEIGHT = 380
_MOST_CURVES = 8
"""Bots in the chart: the first of the table. More lines cannot be told apart."""
_FEW_DAYS = 5
"""Of so few, an axis has several numbers each, which are told apart by the time of day."""
_DAY_ZERO = datetime(1899, 12, 30, tzinfo=UTC)
"""What spreadsheets count days from."""


def write_history(sheet: "WrittenSheet[FinishedRun, BotInTime]", run: "FinishedRun") -> None:
    """A line per bot and run; below it a box with what changed in the last run, and the chart."""
    history = run.findings.history
    if history is None:
        raise ValueError("the findings have no history")
    words = changes_words(history)
    if len(history.runs) > _MOST_RUNS:
        words.append(
            f"This sheet shows the last {_MOST_RUNS} of {len(history.runs):,} runs; rag-eval history shows all."
        )
        history = replace(history, runs=history.runs[-_MOST_RUNS:])
    table = sheet.fill(replace(run, findings=replace(run.findings, history=history)))
    stack = Stack(sheet.worksheet, table.lines + 1, _WIDTH)
    _write_chart(sheet.book, stack, table, [*words, *history.damaged], bots_in_time(history))
    sheet.worksheet.print_area(0, 0, stack.last_row(LINE_HEIGHT), table.column("Judge"))


def _write_chart(
    book: "Workbook",
    stack: Stack,
    table: SheetTable[BotInTime],
    words: Sequence[str],
    lines: Sequence[BotInTime],
) -> None:
    stack.add_text("\n".join(shorten(sentence, 300) for sentence in words), {"size": 10})
    days = sorted({_day(line) for line in lines})
    if len(days) > 1 and (curves := _curves(table, lines)):  # an axis of one day would be of centuries
        form = "yyyy-mm-dd" if days[-1] - days[0] > _FEW_DAYS else "yyyy-mm-dd hh:mm"
        chart = time_chart(book, "Mean RQS with 95% CI", table.worksheet.name, curves, form)
        stack.add_charts({_ABOUT_CHART: chart}, _CHART_HEIGHT)


def write_history_workbook(target: Path, history: History) -> Path:
    """A workbook of two sheets: the chart with what changed, and all runs. Returns its path. Raises OutputError."""
    from rag_eval.report.book import new_workbook

    with new_workbook(target, (_SHEET, _RUNS.name)) as workbook:
        chart, runs = workbook.sheets.values()
        chart.hide_gridlines(2)
        formats = Formats(workbook.book)
        heading = f"{counted(len(history.runs), 'run')} of {shorten(history.runs[-1].input_name, 80)}"
        chart.write_string(0, 0, printable(heading), formats.run)
        table = WrittenSheet(workbook.book, runs, formats, _RUNS).fill(history)
        runs.repeat_rows(0)
        words = [*changes_words(history), *history.damaged]
        _write_chart(workbook.book, Stack(chart, 1, _WIDTH), table, words, bots_in_time(history))
        for sheet in (chart, runs):
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
    return workbook.place


def history_columns(history: History) -> list[Column[BotInTime]]:
    """One line per bot and run; latency and cost only if a run has them."""

    def mean(name: str, label: str) -> Column[BotInTime]:
        def mean_of(line: BotInTime) -> Mean:
            return line.bot.metrics.get(name, _NO_MEAN)

        def cell(line: BotInTime) -> Cell:
            found = mean_of(line)
            count = found.scored if found.scored != line.bot.rqs.scored else None
            look = Look.NOT_APPLICABLE if found.value is None else Look.SCORE
            return Cell(found.value, look, over=None if found.value is None else count)

        about = "Mean; in brackets its count if RQS has another one."
        return Column(label, NUMBER_WIDTH, cell, about=about, count=lambda line: mean_of(line).scored)

    return [
        plain_column("Bot", 20, Look.NAME, lambda line: line.bot.bot),
        plain_column("Run", 16, Look.WORD, lambda line: f"{line.run.started:%Y-%m-%d %H:%M}"),
        narrow_column("Avg RQS", Look.RQS, lambda line: line.bot.rqs.value),
        narrow_column("RQS 95 % low", Look.RQS, _end(0)),
        narrow_column("RQS 95 % high", Look.RQS, _end(1)),
        narrow_column("Scored", Look.COUNT, lambda line: line.bot.rqs.scored, _ABOUT_SCORED),
        narrow_column("Total Queries", Look.COUNT, lambda line: line.bot.queries),
        narrow_column("Change", Look.GAP, _of_change(lambda change: change.difference), _ABOUT_CHANGE),
        narrow_column("Queries compared", Look.COUNT, _of_change(lambda change: change.queries)),
        *(
            narrow_column(header, Look.COUNT, _of_change(count), _ABOUT_ONLY)
            for header, count in _ONLY.items()
        ),
        plain_column("Since the run before", 34, Look.WORD, lambda line: line.verdict, _ABOUT_VERDICT),
        *(mean(name, label) for name, label in METRIC_LABELS.items()),
        narrow_column("Failures", Look.PERCENT, lambda line: line.bot.failures, _ABOUT_FAILURES),
        *(
            _spent_column(name, history)
            for name in SPENT_LABELS
            if any(name in run.spent_units for run in history.runs)
        ),
        *(_PAIR_COLUMNS if any(run.pairs for run in history.runs) else ()),
        plain_column("Judge", 34, Look.NAME, lambda line: line.run.judge),
        plain_column("Input", 24, Look.NAME, lambda line: line.run.input_name),
        narrow_column("Cost", Look.RQS, lambda line: line.run.cost, _ABOUT_COST),
        *(
            Column(header, NUMBER_WIDTH, _for_chart(value), is_hidden=True)
            for header, value in ((_DAY, _day), (_BELOW, _below), (_ABOVE, _above))
        ),
    ]


def _spent_column(name: str, history: History) -> Column[BotInTime]:
    """Median latency or mean cost of the bot, with the unit that all runs have; others say their unit in a note."""
    units = {run.spent_units[name] for run in history.runs if name in run.spent_units}
    unit = f" ({shorten(units.pop(), 20)})" if len(units) == 1 and "" not in units else ""

    def cell(line: BotInTime) -> Cell:
        its = line.bot.spent.get(name)
        if its is None:
            return amount_cell(None)
        own = line.run.spent_units.get(name, "")
        note = None if unit or not own else Note(f"In {shorten(own, 20)}.")
        count = its.count if its.count != line.bot.queries else None
        return amount_cell(its.mean if name == "cost" else its.median, note, count)

    def count(line: BotInTime) -> int:
        return line.bot.spent[name].count if name in line.bot.spent else 0

    what = "Mean Bot" if name == "cost" else "Median Bot"
    return Column(f"{what} {SPENT_LABELS[name]}{unit}", 9, cell, about=_ABOUT_SPENT, count=count)


def _curves(table: SheetTable[BotInTime], lines: Sequence[BotInTime]) -> list[Curve]:
    """A piece of a line for each run of comparable means; those of one bot share its name and colour."""
    columns = [table.column(header) for header in (_DAY, "Avg RQS", _BELOW, _ABOVE)]
    bots = list(dict.fromkeys(line.bot.bot for line in lines))[:_MOST_CURVES]
    numbered = [(row, line) for row, line in enumerate(lines[: table.lines], 1) if line.bot.bot in bots]
    curves = []
    for (bot, _), piece in groupby(numbered, key=lambda each: (each[1].bot.bot, each[1].segment)):
        rows = [row for row, line in piece if line.bot.rqs.value is not None]
        if rows:
            curves.append(Curve(shorten(bot, 40), bots.index(bot), rows[0], rows[-1], *columns))
    return curves


def _end(index: int) -> Callable[[BotInTime], float | None]:
    return lambda line: line.bot.interval[index] if line.bot.interval else None


def _of_change(value: Callable[[PairedMeans], float]) -> Callable[[BotInTime], float | None]:
    return lambda line: value(line.change) if line.change else None


def _for_chart(value: Callable[[BotInTime], float | None]) -> Callable[[BotInTime], Cell]:
    return lambda line: Cell(value(line), Look.RQS)


def _day(line: BotInTime) -> float:
    """When the run began as the reader's clock showed it, in days."""
    return (line.run.started.replace(tzinfo=UTC) - _DAY_ZERO).total_seconds() / 86_400


def _below(line: BotInTime) -> float:
    return (line.bot.rqs.value or 0.0) - line.bot.interval[0] if line.bot.interval else 0.0


def _above(line: BotInTime) -> float:
    return line.bot.interval[1] - (line.bot.rqs.value or 0.0) if line.bot.interval else 0.0


def _compared(line: BotInTime) -> list[PairOfRun]:
    """With other bots, and not with an average one."""
    pairs = line.run.pairs_of(line.bot.bot)
    return [pair for pair in pairs if pair.other is not None and pair.win_rate is not None]


def _comparisons(line: BotInTime) -> int:
    return sum(pair.queries for pair in _compared(line))


def _win_rate_cell(line: BotInTime) -> Cell:
    count = _comparisons(line)
    won = sum((pair.win_rate or 0.0) * pair.queries for pair in _compared(line))
    return Cell(won / count, Look.PERCENT, over=count) if count else Cell(None, Look.PERCENT)


def _preferences(line: BotInTime) -> str:
    words = [pair.words for pair in line.run.pairs_of(line.bot.bot)]
    more = [f"{len(words) - _MOST_OTHERS} more"] if len(words) > _MOST_OTHERS else []
    judge = [f"judged by {shorten(line.run.pair_judge, 80)}"] if words and line.run.pair_judge else []
    return "; ".join([*words[:_MOST_OTHERS], *more, *judge])


_MOST_OTHERS = 5
"""Bots that are named with the win rate against them."""
_ABOUT_WINS = (
    "Share of the bot's comparisons with other bots that it won, a tie as half; in brackets their number. Runs with "
    "other bots are not comparable."
)
_PAIR_COLUMNS: Sequence[Column[BotInTime]] = (
    Column("Win Rate", NUMBER_WIDTH + 4, _win_rate_cell, about=_ABOUT_WINS, count=_comparisons),
    plain_column(
        "Head to Head",
        62,
        Look.NAME,
        _preferences,
        "Win rate against each other bot, with the verdict of that run.",
    ),
)
_DAY, _BELOW, _ABOVE = "Day", "Below", "Above"
_RUNS: ReportTable[History, BotInTime] = ReportTable(
    name="Runs",
    columns=history_columns,
    lines=bots_in_time,
    group_of=lambda line: line.bot.bot,
)
_NO_MEAN = Mean(None, None, 0)
_ABOUT_SCORED = "Queries of the bot that have an RQS in this run."
_ABOUT_CHANGE = "Change of the mean RQS since the run before, over the queries of both. Empty if not tested."
_ONLY: Mapping[str, Callable[[PairedMeans], int]] = {
    "Only before": lambda change: change.common.only_before,
    "Only now": lambda change: change.common.only_now,
}
_ABOUT_ONLY = "Queries of the bot that only one of the two runs has. They are not compared."
_ABOUT_VERDICT = (
    "Paired tests on the queries of both runs, with Holm correction over all means of a run (5%)."
)
_ABOUT_FAILURES = "Share of the judged queries with at least one failure mode."
_ABOUT_SPENT = "Of the bot's responses, from the input; in brackets their number if it is not all of them."
_ABOUT_COST = "Of the judge's calls in this run. Empty if unknown."
_ABOUT_CHART = (
    "Mean RQS of each bot through time with its 95% CI. Runs that are not comparable are not connected."
)
