"""The two sheets that sum a run up, and the printed page of all three."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.records import METRIC_LABELS, RunFacts
from rag_eval.report.about import details
from rag_eval.report.annotations import Stack, ThresholdCells
from rag_eval.report.charts import (
    MOST_BOTS,
    Bars,
    BotPoint,
    PointColumns,
    axes_of,
    height_of,
    point_chart,
    score_chart,
    share_chart,
)
from rag_eval.report.column import BotItem
from rag_eval.report.columns import ERROR_HEADERS, SHARE_HEADERS, bot_columns
from rag_eval.report.extra_columns import spent_error_headers, spent_figure_header, spent_title
from rag_eval.report.notes import lines_of
from rag_eval.report.styles import AMBER, BLUE, LINE_HEIGHT
from rag_eval.report.worksheet import SheetTable, WrittenSheet
from rag_eval.results.causes import fix_words
from rag_eval.results.findings import Findings
from rag_eval.results.summary import BotSummary, Standing, Summary
from rag_eval.results.trade_off import unbeaten_words
from rag_eval.results.verdict import RunVerdict, flagged_words, noise_words, unfit_words, verdict, verdict_on
from rag_eval.texts.display import amount, decimals, shorten, utf16_units

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

    from rag_eval.report.outputs import FinishedRun

_CELL_LINE = 38
"""Characters on one line of a verdict."""
_MOST_LINES = 4
"""Of a verdict or first fix, so that five bots are on one screen."""
_FEWER_LINES = 2
"""The same from HEAT_FROM bots on, so that twelve are."""
_WIDTH = 1120
"""Pixels of what floats below a table: a small screen shows it whole."""
_CHART_WIDTH = 460
"""Of the leaderboard's chart and heading, in pixels."""
_CHARTS_A_LINE = 3
_POINTS_HEIGHT, _MORE_HEIGHT = 280, 400
"""Of a chart of points, in pixels; the second from HEAT_FROM bots on."""
BOT_SHEET = "Bot Summary"
HEAT_FROM = 6
"""From this many bots on, colours in the table show the means instead of charts."""


def write_bots(sheet: "WrittenSheet[FinishedRun, BotSummary]", run: "FinishedRun") -> None:
    """Sheet "Bot Summary" with charts of the failure modes and of each metric."""
    table = sheet.fill(run)
    stack = Stack(table.worksheet, table.lines + 1, _WIDTH)
    if len(run.summary.bots) <= MOST_BOTS:
        _add_charts(sheet.book, stack, table, run.summary)
    table.print_on_pages((_WIDTH, stack.height), stack.last_row(sheet.table.line_height))
    if len(run.summary.bots) >= HEAT_FROM:
        table.add_heat([label for name, label in METRIC_LABELS.items() if name in run.facts.metrics])


def _add_charts(workbook: "Workbook", stack: Stack, table: SheetTable[BotSummary], summary: Summary) -> None:
    """Failure modes, and each metric's means unless the table shows them as heat. Avg RQS is on the leaderboard."""
    bots = summary.bots
    charts = {}
    modes = [_bars(table, header, bots) for header in SHARE_HEADERS.values()]
    if any(bars.has_bars for bars in modes):
        alt_text = "; ".join(bars.alt_text for bars in modes)
        charts[alt_text] = share_chart(workbook, "Failure modes, share of judged queries", modes)
    if len(bots) < HEAT_FROM:
        means = [_bars(table, header, bots) for header in METRIC_LABELS.values()]
        charts |= {bars.alt_text: score_chart(workbook, bars) for bars in means if bars.has_bars}
    columns = min(_CHARTS_A_LINE, max(1, len(charts)))
    for first in range(0, len(charts), columns):
        line = dict(list(charts.items())[first : first + columns])
        stack.add_charts(line, height_of(len(bots), bars=len(modes)), columns=columns)


def write_standings(sheet: "WrittenSheet[FinishedRun, Standing]", run: "FinishedRun") -> None:
    """Sheet "Leaderboard" with the thresholds' cells, what is to be known of the run, and a chart."""
    facts, summary, findings = run.facts, run.summary, run.findings
    worksheet, height = sheet.worksheet, _standing_height(facts, summary, findings)
    columns = sheet.table.columns(run)
    table = SheetTable(worksheet, columns, sheet.formats, sheet.table.header_height, height)
    thresholds = ThresholdCells(worksheet, len(columns), sheet.formats, facts)
    thresholds.write_header()
    for standing in summary.standings:
        table.append(standing)
        if table.lines == 1:  # rows can only be written from top to bottom
            thresholds.write(sheet.book, table.notes)
    table.finish(sheet.table.frozen)
    worksheet.activate()  # who opens the file sees the verdict first
    stack = Stack(worksheet, table.lines + 1, _CHART_WIDTH)
    said = verdict(facts, summary, findings)
    partial = f"PARTIAL RUN: {shorten(facts.partial, 200)}" if facts.partial else ""
    first = filter(None, [partial, unfit_words(facts), said.decision])
    stack.add_text("\n".join(first), {"size": 14, "bold": True, "color": BLUE})
    stack.add_text("\n".join(said.lines[1:]), {"size": 11})
    ranked = [line for line in summary.standings if line.rank is not None]
    bars = _bars(table, "Avg RQS", ranked, ERROR_HEADERS)
    if bars.has_bars and len(ranked) <= MOST_BOTS:
        stack.add_charts({bars.alt_text: score_chart(sheet.book, bars)}, height_of(len(ranked)))
    notes = [*run.limits, *noise_words(findings), *flagged_words(findings)]
    left = _CHART_WIDTH + Stack.GAP
    text = Stack(worksheet, table.lines + 1, _WIDTH - left, left)
    text.add_text("\n".join(["About this run", *details(facts, summary, notes)]), {"size": 10})
    for name in findings.trade_offs if len(ranked) <= MOST_BOTS else ():
        _add_trade_off(sheet.book, run, name, min(stack, text, key=lambda each: each.height))
    last = max(stack.last_row(height), text.last_row(height))
    worksheet.print_area(0, 0, last, len(table.columns) - 1)  # the thresholds would make all else smaller


def _add_trade_off(workbook: "Workbook", run: "FinishedRun", name: str, stack: Stack) -> None:
    """A chart of RQS and cost, or latency, of each bot, from the cells of Bot Summary."""
    facts, summary, offs = run.facts, run.summary, run.findings.trade_offs[name]
    headers = [column.header for column in bot_columns(facts, summary, run.findings)]
    rows = {bot.bot: row for row, bot in enumerate(summary.bots, 1)}
    figure = spent_figure_header(name, facts)
    first, second, third, fourth = map(headers.index, (*spent_error_headers(name), *ERROR_HEADERS))
    places = PointColumns(
        BOT_SHEET, headers.index("Bot"), headers.index(figure), (first, second), headers.index("Avg RQS"),
        (third, fourth),
    )  # fmt: skip
    points = [BotPoint(rows[each.bot], each.bot, each.spent, each.rqs, each.is_unbeaten) for each in offs]
    told = "; ".join(f"{shorten(each.bot, 40)} {decimals(each.rqs)}, {amount(each.spent)}" for each in offs)
    title, words = f"RQS and {spent_title(name, facts)}", unbeaten_words(offs)
    height = _POINTS_HEIGHT if len(offs) < HEAT_FROM else _MORE_HEIGHT
    chart = point_chart(workbook, title, words, places, points, axes_of(offs), (stack.width, height))
    stack.add_charts({f"{title}: {told}. {words}": chart}, height)


def _standing_height(facts: RunFacts, summary: Summary, findings: Findings) -> float:
    """Of all rows, in points: that of the longest verdict or first fix."""
    texts = [verdict_on(line.bot, facts, summary, findings) for line in summary.standings]
    texts += [fix_words(causes) for causes in findings.causes]
    lines = max([lines_of([text], _CELL_LINE) for text in texts], default=1)
    return LINE_HEIGHT * min(lines, _MOST_LINES if len(summary.bots) < HEAT_FROM else _FEWER_LINES)


def set_up_page(
    worksheet: "Worksheet", facts: RunFacts, said: RunVerdict | None = None, *, is_one_page: bool = False
) -> None:
    """Landscape, as wide as one page, the table's header on every page, and above it the answer.

    On one page no chart is cut by a page break.
    """
    worksheet.set_landscape()
    worksheet.set_paper(_A4)
    worksheet.set_margins(left=0.4, right=0.4, top=1.0 if said else 0.6, bottom=0.6)
    is_on_several = bool(worksheet.repeat_col_range)
    worksheet.fit_to_pages(1, int(is_one_page and not is_on_several))
    worksheet.repeat_rows(0)
    worksheet.set_tab_color(AMBER if facts.partial else BLUE)
    if said or facts.partial:
        header = _page_header(facts, said or RunVerdict("", "", ()))
        worksheet.set_header(header, {"margin": 0.3, "scale_with_doc": False})
    run = f"{_in_page_header(facts.input_name, 50)}, {facts.started:%Y-%m-%d %H:%M}"
    worksheet.set_footer(f"&L{run}&C&A&RPage &P of &N")


_A4 = 9


def _page_header(facts: RunFacts, said: RunVerdict) -> str:
    """Decision, numbers and limits, as far as they fit into the 255 characters that Excel allows."""
    partial = f"PARTIAL RUN: {shorten(facts.partial, 40)} " if facts.partial else ""
    texts = [partial + said.decision, f"{said.numbers} {said.side_by_side}".strip(), " ".join(said.limits)]
    room = 250 - sum(map(len, _LINES))
    header = "&L"
    # The judge is always named: that much is left free for the last line.
    for style, whole, kept in zip(_LINES, texts, (_OTHERS, min(len(texts[2]), _JUDGE), 0), strict=True):
        text = whole
        while len(text) > room - kept and "; " in text:
            text = text.rpartition("; ")[0] + "."
        shown = _in_page_header(text, room - kept)
        room -= utf16_units(shown)
        # A blank, or a number that follows would be taken for a part of the size.
        header += style + (" " if shown[:1].isdigit() else "") + shown
    return header


_OTHERS, _JUDGE = 120, 60
"""Characters that are kept free for the other lines."""
_LINES = ("&B&13", "&B\n&9", "\n&8")
"""How each line of a page's header begins: bold on or off, and the size."""


def _in_page_header(text: str, limit: int) -> str:
    """At most `limit` characters as they are written there, where "&" takes two; empty without room for a word."""
    for most in range(limit, 12, -1):
        doubled = shorten(text, most).replace("&", "&&")
        if utf16_units(doubled) <= limit:
            return doubled
    return ""


def _bars(
    table: SheetTable[BotItem],
    header: str,
    lines: Sequence[BotItem],
    error_headers: Sequence[str] = (),
) -> Bars:
    index = table.column(header)
    values = dict(zip((line.bot for line in lines), _numbers(table, index, lines), strict=True))
    columns = [table.column(each) for each in error_headers]
    errors = [(column, _numbers(table, column, lines)) for column in columns]
    return Bars(header, table.worksheet.name, table.column("Bot"), index, values, errors)


def _numbers(table: SheetTable[BotItem], index: int, lines: Sequence[BotItem]) -> list[float | None]:
    """What a column shows in these lines; None in place of anything but a number."""
    cells = [table.columns[index].cell(line).value for line in lines]
    return [value if isinstance(value, int | float) else None for value in cells]
