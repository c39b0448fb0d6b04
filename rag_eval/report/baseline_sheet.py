"""Sheet "vs Baseline": what changed since an earlier run, on the queries that both judged."""

from collections.abc import Callable

from rag_eval.records import SPENT_LABELS, RunFacts
from rag_eval.report.column import Cell, Column, amount_cell, name_width, plain_column
from rag_eval.report.styles import Look
from rag_eval.results.baseline import NAMES
from rag_eval.results.findings import Findings
from rag_eval.results.paired import NO_BOT, NO_COMMON, Change, Direction, common_words
from rag_eval.results.summary import spent_header
from rag_eval.texts.display import amount, decimals, digits_that_differ


def change_columns(facts: RunFacts) -> list[Column[Change]]:
    """One line a bot and metric, latency or cost."""
    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda change: change.bot),
        plain_column("Metric", 20, Look.NAME, lambda change: _named(change, facts)),
        _number("Baseline", lambda change: change.before, "Mean over the queries compared."),
        _number("Now", lambda change: change.now, "Mean over the queries compared."),
        _number("Change", lambda change: change.difference),
        _number("95 % low", lambda change: change.interval.low if change.interval else None, _ABOUT_INTERVAL),
        _number(
            "95 % high", lambda change: change.interval.high if change.interval else None, _ABOUT_INTERVAL
        ),
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
        plain_column(
            "Verdict",
            14,
            Look.WORD,
            _displayed,
            _ABOUT_VERDICT + (_ABOUT_SPENT if facts.spent_units else ""),
        ),
    ]


def _number(header: str, value_of: Callable[[Change], float | None], about: str = "") -> Column[Change]:
    def cell(change: Change) -> Cell:
        value = value_of(change)
        return amount_cell(value) if change.name in SPENT_LABELS else Cell(value, Look.RQS)

    return Column(header, 10, cell, about=about)


def _named(change: Change, facts: RunFacts) -> str:
    """As in 'RQS' or 'Cost (USD)'."""
    return spent_header(change.name, facts) if change.name in SPENT_LABELS else NAMES[change.name]


def change_lines(findings: Findings, facts: RunFacts, baseline: str, most: int | None = None) -> list[str]:
    """The changes as plain lines: those of RQS, latency and cost, and of any metric that changed for certain.

    If there are more than `most`, what is worse or better comes first.
    """
    changes = findings.changes or ()
    told = [change for change in changes if change.name == "rqs" or change.direction in _CERTAIN]
    none = "" if told else f" no significant change in {len(changes)} means."
    if not changes:
        common = findings.common.values()
        why = NO_COMMON
        if common and not any(queries.before for queries in common):
            why = NO_BOT
        elif any(queries.both for queries in common):
            why = "no query has a score in both runs"
        none = f" {why}."
    shown = [*told, *findings.spent_changes]
    if most is not None and len(shown) + len(findings.beside_changes) > most:
        shown.sort(key=lambda change: _CERTAIN.get(change.direction, len(_CERTAIN)))
    lines = [_told(change, facts) for change in shown]
    return [f"Compared with {baseline}:{none}", *lines, *findings.beside_changes]


_CERTAIN = {Direction.WORSE: 0, Direction.BETTER: 1}


def _told(change: Change, facts: RunFacts) -> str:
    is_spent = change.name in SPENT_LABELS
    before, now = (amount(mean) if is_spent else decimals(mean, 4) for mean in (change.before, change.now))
    what = f"{'mean ' if is_spent else ''}{_named(change, facts)}"
    return (
        f"{change.bot}: {what} {before} before, {now} now{_range(change)}: "
        f"{_displayed(change)} ({common_words(change.queries)})"
    )


def _displayed(change: Change) -> str:
    if change.is_open:
        return f"too few {change.too_few}"
    return "not significant" if change.direction is Direction.UNDECIDED else change.direction.value


def _range(change: Change) -> str:
    numbers = [change.difference, *([change.interval.low, change.interval.high] if change.interval else [])]
    digits = digits_that_differ((0.0, number) for number in numbers)
    change_by, *limits = [
        f"{'+' if number > 0 else ''}{amount(number)}"
        if change.name in SPENT_LABELS
        else decimals(number, digits, is_signed=True)
        for number in numbers
    ]
    return f", {change_by} (95% CI {' to '.join(limits)})" if limits else f", {change_by}"


_ABOUT_VERDICT = "Better or worse: significant after Holm correction over all rows (5%)."
_ABOUT_SPENT = " Latency and cost are tested apart from the scores; less is better."
_ABOUT_ONLY = (
    "Queries of the bot that are not compared, because the other run, or its sheet, does not have them."
)
_ABOUT_INTERVAL = "Simultaneous 95% CI of the change. It excludes 0 only if the change is significant."
