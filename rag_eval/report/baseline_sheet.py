"""Sheet "vs Baseline": what changed since an earlier run, on the queries that both judged."""

from collections.abc import Sequence

from rag_eval.records import RunFacts
from rag_eval.report.column import Column, interval_columns, name_width, plain_column
from rag_eval.report.styles import Look
from rag_eval.results.baseline import NAMES
from rag_eval.results.paired import Change, Direction, common_words
from rag_eval.texts.display import decimals


def change_columns(facts: RunFacts) -> list[Column[Change]]:
    """One line a bot and metric."""
    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda change: change.bot),
        plain_column("Metric", 20, Look.NAME, lambda change: NAMES[change.name]),
        plain_column(
            "Baseline", 10, Look.RQS, lambda change: change.before, "Mean over the queries compared."
        ),
        plain_column("Now", 10, Look.RQS, lambda change: change.now, "Mean over the queries compared."),
        plain_column("Change", 10, Look.RQS, lambda change: change.difference),
        *interval_columns("", 10, Look.RQS, lambda change: change.interval, _ABOUT_INTERVAL),
        plain_column("Queries compared", 10, Look.COUNT, lambda change: change.queries),
        plain_column(
            "Queries in all",
            10,
            Look.COUNT,
            lambda change: change.common.now,
            "Queries of the bot in this run.",
        ),
        plain_column(
            "Only in baseline", 10, Look.COUNT, lambda change: change.common.only_before, _ABOUT_ONLY
        ),
        plain_column("Only in this run", 10, Look.COUNT, lambda change: change.common.only_now, _ABOUT_ONLY),
        plain_column("Verdict", 14, Look.WORD, lambda change: _displayed(change.direction), _ABOUT_VERDICT),
    ]


def change_lines(changes: Sequence[Change], baseline: str, differences: Sequence[str] = ()) -> list[str]:
    """The changes as plain lines; those of RQS, and of any metric that changed for certain."""
    if not changes:
        return [f"Compared with {baseline}: no query is in both runs.", *differences]
    lines = [
        f"{change.bot}: {NAMES[change.name]} {decimals(change.before, 4)} before, {decimals(change.now, 4)} now"
        f"{_range(change)}: "
        f"{_displayed(change.direction)} ({common_words(change.queries)})"
        for change in changes
        if change.name == "rqs" or change.direction.value in ("better", "worse")
    ]
    none = "" if lines else f" no significant change in {len(changes)} means."
    return [f"Compared with {baseline}:{none}", *lines, *differences]


def _displayed(direction: Direction) -> str:
    return "not significant" if direction is Direction.UNDECIDED else direction.value


def _range(change: Change) -> str:
    numbers = [change.difference, *([change.interval.low, change.interval.high] if change.interval else [])]
    change_by, *limits = [decimals(number, is_signed=True) for number in numbers]
    return f", {change_by} (95% CI {' to '.join(limits)})" if limits else f", {change_by}"


_ABOUT_VERDICT = "Better or worse: significant after Holm correction over all rows (5%)."
_ABOUT_ONLY = (
    "Queries of the bot that are not compared, because the other run, or its sheet, does not have them."
)
_ABOUT_INTERVAL = "Simultaneous 95% CI of the change. It excludes 0 only if the change is significant."
