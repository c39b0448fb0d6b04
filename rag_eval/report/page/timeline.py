"""The page's section "History": a chart per bot, what changed in the last run, and the runs as a table."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rag_eval.report.history_sheet import history_columns
from rag_eval.report.page.figures import Point, timeline
from rag_eval.report.page.sections import TABLE_ROWS, folded, head, safe, table
from rag_eval.results.run_history import BotInTime, History, bots_in_time, changes_words
from rag_eval.results.verdict import NAME_LIMIT
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import counted, decimals, shorten

_CHARTED = 60
"""Runs of a bot that its chart shows, the last ones."""


def history_section(history: History) -> str:
    """Empty unless there are two runs to look at."""
    if len(history.runs) < 2:
        return ""
    bots = [list(lines) for _, lines in groupby(bots_in_time(history), key=lambda line: line.bot.bot)]
    words = "".join(f"<li>{safe(shorten(each, 300))}</li>" for each in changes_words(history))
    charts = "".join(f'<div class="time">{_chart(lines[-_CHARTED:])}</div>' for lines in bots)
    each = max(1, TABLE_ROWS // max(1, len(bots)))  # the last runs of each bot, the last one first
    listed = [line for lines in bots for line in lines[: -each - 1 : -1]]
    columns = history_columns(history)
    count = f"{len(history.runs):,} runs"
    return folded(
        f"History: {count}",
        f'<ul class="notes">{words}</ul>{charts}<div class="time">{table(columns, listed)}</div>',
        True,
    )


def write_history_page(target: Path, history: History, version: str) -> Path:
    """A page with this section only, and the version that made it. Returns where it is. Raises OutputError."""
    last = history.runs[-1]
    title = f"History of {shorten(last.input_name, 80)}"
    section = history_section(history) or "<p>There is one run so far.</p>"
    runs = f"{counted(len(history.runs), 'run')}, the last one on {last.started:%Y-%m-%d %H:%M}"
    heading = f'<p class="eyebrow">RAG Eval</p><h1 dir="auto">{safe(title)}</h1><p class="lead">{runs}</p>'
    page = f"{head(title, version)}<header>{heading}</header>{section}</main>\n</body>\n</html>\n"
    return write_text(target, page, "-o")


def _chart(lines: Sequence[BotInTime]) -> str:
    """One bot through time, with the last mean in words."""
    last = lines[-1]
    mean, interval = last.bot.rqs.value, last.bot.interval
    words = "no RQS" if mean is None else f"RQS {decimals(mean)}"
    words += f" (95% CI {' to '.join(map(decimals, interval))})" if interval else ""
    name = shorten(last.bot.bot, NAME_LIMIT)
    span = f"{lines[0].run.started:%Y-%m-%d} to {last.run.started:%Y-%m-%d}"
    points = [
        Point(line.run.started.timestamp(), line.bot.rqs.value, line.bot.interval, line.segment)
        for line in lines
    ]
    label = f"{name}: mean RQS of {len(lines):,} runs from {span}; the last one is {words}"
    return (
        f"<h3><bdi>{safe(name)}</bdi> <small>{words}, {safe(last.verdict)}</small></h3>"
        f"{timeline(label, points)}<p><small>{span}. Runs that are not comparable are not connected.</small></p>"
    )
