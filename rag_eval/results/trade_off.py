"""What the bots spend and what their responses are worth: differences to the best bot, and who is beaten in both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_eval.results.paired import Change, CommonQueries, JoinedValues, changes_of
from rag_eval.results.summary import BotSummary, Summary
from rag_eval.texts.display import enumerated, shorten

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval

Limits = tuple[float | None, float | None]
"""Of a 95% interval; None where there are too few values for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """One bot in a chart of RQS and what it spends, both over the bot's own queries."""

    bot: str
    rqs: float
    rqs_limits: Limits
    spent: float
    """Mean cost, or median latency."""
    limits: Limits
    count: int
    """Queries with a cost, or latency."""
    is_unbeaten: bool
    """No other bot is as good in both and better in one; by the figures themselves, without their intervals."""


def against_best(summary: Summary, best: str) -> tuple[Change, ...]:
    """What each other bot spends on a response next to the best one, over the queries for which both are known.

    `before` is the mean of the best bot, `now` that of the other. All differences are tested together.
    """
    pairs: dict[tuple[str, str], JoinedValues] = {}
    counts: dict[tuple[str, str], int] = {}
    common: dict[str, CommonQueries] = {}
    for name, values in summary.spent_values.items():
        for bot in values if best in values else ():
            both = JoinedValues()
            for one, other in zip(values[best], values[bot], strict=False):
                both.add(one, other)
            rows, columns = both.common()
            if bot != best and rows:
                pairs[bot, name] = _by_cluster(columns, rows, summary.spent_clusters)
                counts[bot, name] = len(rows)
                common[bot] = CommonQueries(before=summary.rows, now=summary.rows, both=summary.rows)
    return changes_of(pairs, common, dict.fromkeys(summary.spent_values, 0.0), counts)


def _by_cluster(
    columns: Sequence[Sequence[float]], rows: Sequence[int], clusters: Sequence[int] | None
) -> JoinedValues:
    """The columns as they are or, if rows belong together, one value for each conversation, with the same means."""
    from rag_eval.results.intervals import cluster_means

    joined = JoinedValues()
    if clusters is not None:
        columns = [cluster_means(each, [clusters[row] for row in rows]).tolist() for each in columns]
    for one, other in zip(*columns, strict=True):
        joined.add(one, other)
    return joined


def trade_offs(summary: Summary, own: Mapping[str, "Interval | None"]) -> Mapping[str, tuple[TradeOff, ...]]:
    """By cost and latency, the bots that have both it and an RQS; none for fewer than two. `own` are the intervals of
    RQS."""
    found = {}
    for name in summary.spent_values:
        bots = [bot for bot in summary.bots if name in bot.spent and bot.rqs.value is not None]
        if len(bots) > 1:
            places = {bot.bot: (bot.rqs.value or 0.0, _figure_of(bot, name)) for bot in bots}
            found[name] = tuple(
                TradeOff(
                    bot=bot.bot,
                    rqs=places[bot.bot][0],
                    rqs_limits=_ends(own.get(bot.bot)),
                    spent=places[bot.bot][1],
                    limits=_limits_of(bot, name),
                    count=bot.spent[name].count,
                    is_unbeaten=not any(_beats(other, places[bot.bot]) for other in places.values()),
                )
                for bot in bots
            )
    return found


def unbeaten_words(offs: Sequence[TradeOff]) -> str:
    """Which bots are beaten by none in both, for a chart in which these are circles."""
    names = enumerated([shorten(each.bot, 60) for each in offs if each.is_unbeaten])
    others = "" if all(each.is_unbeaten for each in offs) else " Crosses: another bot does."
    return f"Circles: no other bot beats {names} on both axes.{others}"


def _figure_of(bot: BotSummary, name: str) -> float:
    """The figure that stands for what a bot spends: the mean cost, the median latency."""
    return bot.spent[name].mean if name == "cost" else bot.spent[name].median


def _limits_of(bot: BotSummary, name: str) -> Limits:
    """The interval of `_figure_of`; none of a median if rows belong to conversations."""
    from rag_eval.results.intervals import quantile_interval, reported_interval

    spent = bot.spent[name]
    if name == "cost":
        return _ends(reported_interval(spent.values, clusters=spent.clusters))
    # Order statistics need rows that are independent.
    return (None, None) if spent.clusters else quantile_interval(spent.values, 0.5)


def _ends(interval: "Interval | None") -> Limits:
    return (interval.low, interval.high) if interval else (None, None)


def _beats(other: tuple[float, float], one: tuple[float, float]) -> bool:
    return other != one and other[0] >= one[0] and other[1] <= one[1]
