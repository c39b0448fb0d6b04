"""What the scores of a run support: how sure each mean is, and whether the best bot really is better. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rag_eval.records import METRIC_LABELS, CaseResult, PlannedLook
from rag_eval.results.causes import BotCauses
from rag_eval.results.human_alignment import Alignment
from rag_eval.results.looks import Seen, stages_of
from rag_eval.results.paired import Change, CommonQueries
from rag_eval.results.pass_rates import BotPassRates
from rag_eval.results.summary import FEWEST_ROWS, RQS, Summary
from rag_eval.results.trade_off import TradeOff, against_best, trade_offs
from rag_eval.retrieval import RetrievalSummary

if TYPE_CHECKING:
    from rag_eval.results.comparison import Comparison, Rival
    from rag_eval.results.head_to_head import HeadToHead
    from rag_eval.results.intervals import Floats, Interval
    from rag_eval.results.run_history import History


@dataclass(frozen=True, slots=True)
class Findings:
    """Every interval is one of 95%; None for a mean of fewer than FEWEST_ROWS values."""

    own: Mapping[str, "Interval | None"]
    """By bot: of its mean RQS over all its own queries."""
    compared: Mapping[str, "Interval | None"]
    """By ranked bot: of its mean RQS over the queries that the ranking uses."""
    comparison: "Comparison | None"
    """The ranked bots against the best of them; None when there is none."""
    challengers: tuple[str, ...] = ()
    """Bots that could be ahead of the best one, depending on what was not judged."""
    changes: tuple[Change, ...] | None = None
    """Since the baseline; None without one."""
    spent_changes: tuple[Change, ...] = ()
    """Of latency and cost since the baseline; tested together, apart from the scores."""
    common: Mapping[str, CommonQueries] = field(default_factory=dict)
    """By bot: how many queries the baseline and this run have; none without a baseline."""
    beside_changes: tuple[str, ...] = ()
    """What else differs from the baseline, one sentence each: judge, metrics, weights."""
    not_comparable: str = ""
    """Why no change since the baseline counts, in words; empty if changes may."""
    pass_rates: tuple[BotPassRates, ...] = ()
    """Of the rubric, in the order of the bots; none without a rubric."""
    retrieval: Mapping[str, RetrievalSummary] = field(default_factory=dict)
    """By bot; of those whose retrieved documents are known beside the gold ones."""
    alignment: Alignment | None = None
    """Of the judge with people; None without human labels."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """By metric: standard deviation between the samples of a score; empty when each was asked for once."""
    unlike: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By ranked bot whose RQS is made of other metrics than the best one's: those that only one of the two has."""
    flagged: tuple[CaseResult, ...] = ()
    """Cases whose text seems to address the judge: those with the highest RQS, which should be looked at first."""
    worst: tuple[CaseResult, ...] = ()
    """Failed cases with the lowest RQS, the lowest first."""

    since_last: tuple[Change, ...] | None = None
    """Since the last comparable run of the history; None without one."""
    history: "History | None" = None
    """The runs so far, this one the last; None if none is kept."""
    spent: tuple[Change, ...] = ()
    """What the other bots spend next to the best one, see `trade_off.against_best`; none without latency and cost."""
    trade_offs: Mapping[str, tuple[TradeOff, ...]] = field(default_factory=dict)
    """RQS and latency, or cost, of the bots that have both, by name."""
    head_to_head: "HeadToHead | None" = None
    """Of responses that were compared in pairs; None if none were."""
    causes: tuple[BotCauses, ...] = ()
    """Why each bot fails, in the order of the bots."""

    def causes_of(self, bot: str) -> BotCauses | None:
        """Why this bot fails; None if nothing was counted."""
        return next((causes for causes in self.causes if causes.bot == bot), None)

    def spent_of(self, bot: str, name: str) -> Change | None:
        """What the bot spends next to the best one; None for that one itself, and where nothing is known."""
        return next((each for each in self.spent if (each.bot, each.name) == (bot, name)), None)

    def rival(self, bot: str) -> "Rival | None":
        """The bot beside the best one; None for the best one itself and for one that is not ranked."""
        rivals = self.comparison.rivals if self.comparison else ()
        return next((rival for rival in rivals if rival.bot == bot), None)


def find(
    summary: Summary,
    changes: tuple[Change, ...] | None = None,
    weights: Mapping[str, float] | None = None,
    looks: Sequence[PlannedLook] = (),
    rows: int = 0,
    **beside: Any,
) -> Findings:
    """The intervals and tests of a run, the same for the same scores; `beside` are further fields as they are.

    By the weights it is known which metrics make up RQS; without them, all do. `looks` are those that were planned for
    a run of so many `rows`.
    """
    import numpy as np

    from rag_eval.results.comparison import compare_with_best
    from rag_eval.results.intervals import reported_interval, reported_intervals

    bots = list(summary.rqs_values)
    intervals = reported_intervals([*summary.rqs_values.values()], clusters=summary.clusters)
    compared = dict(zip(bots, intervals, strict=True))
    # The compared rows are some of a bot's own: as many of them means the same ones, and the same interval.
    own = {
        bot.bot: compared[bot.bot]
        if bot.bot in compared and bot.rqs.scored == summary.compared
        else reported_interval(bot.rqs_values, clusters=bot.clusters.get(RQS))
        for bot in summary.bots
    }
    table = np.column_stack([summary.rqs_values[bot] for bot in bots]) if bots else np.empty((0, 0))
    staged = _staged(summary.seen, looks, rows, summary.reached) or _clustered(summary.clusters)
    comparison = compare_with_best(table, bots, **staged)
    unlike = _unlike(summary, comparison.winner, weights) if comparison else {}
    challengers = _challengers(summary, comparison.winner) if comparison else ()
    if comparison:
        staged = _staged(summary.gapped_seen, looks, rows, summary.reached)
        staged = staged or _clustered(summary.gapped_clusters)
        doubts = _doubts(summary, comparison, challengers, staged)
        comparison = _without_claims_about(unlike, _with_doubts(comparison, doubts))
        comparison = _of_enough_rows(comparison, summary.clusters)
    return Findings(
        own=own,
        compared=compared,
        comparison=comparison,
        challengers=challengers,
        changes=changes,
        unlike=unlike,
        spent=against_best(summary, comparison.winner) if comparison else (),
        trade_offs=trade_offs(summary, own),
        **beside,
    )


def _clustered(clusters: Sequence[int] | None) -> dict[str, Any]:
    """How the test must mind that rows belong together, as its arguments."""
    return {} if clusters is None else {"clusters": clusters}


def _of_enough_rows(comparison: "Comparison", clusters: Sequence[int] | None) -> "Comparison":
    """Without intervals and advice if it is over so few rows that they would mislead; no claim is lost.

    Of rows in conversations, these count.
    """
    if (comparison.rows if clusters is None else len({*clusters})) >= FEWEST_ROWS:
        return comparison
    rivals = (replace(rival, interval=None, more_queries=None) for rival in comparison.rivals)
    return replace(comparison, rivals=tuple(rivals))


def _challengers(summary: Summary, winner: str) -> tuple[str, ...]:
    """By what each mean would be if every missing value were 0, or 1."""
    means = {bot.bot: bot.rqs for bot in summary.bots}
    best = means.pop(winner)
    if best.bounds is None:
        return ()
    return tuple(
        bot
        for bot, mean in means.items()
        if mean.bounds and mean.failed + best.failed and mean.bounds[1] >= best.bounds[0]
    )


_FEW = 0.01
"""Share of the queries. Failures caused by content differ between two bots when more than these do."""


def _staged(seen: Seen | None, looks: Sequence[PlannedLook], rows: int, reached: int) -> dict[str, Any]:
    """How the test must mind that there were looks, as its arguments; none without looks."""
    from rag_eval.results.comparison import Stage

    if not looks or seen is None or not reached:
        return {}
    stages = [Stage(count, alpha) for count, alpha in stages_of(looks, seen, rows, reached)]
    return {"stages": stages, "clusters": seen.clusters}


def _doubts(
    summary: Summary, comparison: "Comparison", challengers: Collection[str], staged: Mapping[str, Any]
) -> dict[str, str]:
    """By rival: why what was not judged keeps a lead from being significant, although the scores are."""
    from rag_eval.results.comparison import Verdict, bots_behind

    claimed = [rival.bot for rival in comparison.rivals if rival.verdict is Verdict.SIGNIFICANT]
    if not claimed:
        return {}
    sure = set(claimed)
    if summary.gapped_rqs:
        sure &= bots_behind(comparison.winner, *_worst_case(summary, comparison.winner), **staged)
    blocked = {bot.bot: bot.failed_by_content for bot in summary.bots}
    doubts = {
        bot: "unjudged cases could change it" for bot in claimed if bot not in sure or bot in challengers
    }
    for bot in claimed:
        if abs(blocked[comparison.winner] - blocked[bot]) > _FEW * summary.rows:
            doubts[bot] = f"content failures differ: {blocked[comparison.winner]:,} and {blocked[bot]:,}"
    return doubts


def _worst_case(summary: Summary, winner: str) -> tuple["Floats", list[str]]:
    """Scores as they would be if whatever was not judged spoke against the winner: its own 0, of the others 1."""
    import numpy as np

    bots = list(summary.gapped_rqs)
    columns = [np.nan_to_num(summary.gapped_rqs[bot], nan=float(bot != winner)) for bot in bots]
    return np.column_stack(columns), bots


def _with_doubts(comparison: "Comparison", doubts: Mapping[str, str]) -> "Comparison":
    rivals = (
        rival.doubted(doubts[rival.bot]) if rival.bot in doubts else rival for rival in comparison.rivals
    )
    return replace(comparison, rivals=tuple(rivals))


def _unlike(summary: Summary, winner: str, weights: Mapping[str, float] | None) -> dict[str, tuple[str, ...]]:
    """By what was scored at least once on the compared queries: a bot without contexts has no faithfulness."""
    made_of = {
        line.bot: {
            name
            for name, mean in line.metrics.items()
            if mean.scored and (weights is None or weights.get(name))
        }
        for line in summary.standings
        if line.rank is not None
    }
    differing = {bot: names ^ made_of[winner] for bot, names in made_of.items()}
    return {
        bot: tuple(name for name in METRIC_LABELS if name in names)
        for bot, names in differing.items()
        if names
    }


def _without_claims_about(bots: Collection[str], comparison: "Comparison") -> "Comparison":
    from rag_eval.results.comparison import Verdict

    rivals = (
        replace(rival, verdict=Verdict.NOT_COMPARABLE, more_queries=None, doubt="")
        if rival.bot in bots
        else rival
        for rival in comparison.rivals
    )
    return replace(comparison, rivals=tuple(rivals))
