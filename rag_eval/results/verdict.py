"""A run in words: the decision, the numbers behind it, and what limits both; the same for every output. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_eval.errors import ECHO, how_to_judge_again
from rag_eval.records import MATCHING, METRIC_LABELS, OFFLINE, SCORE_LABELS, FailureMode, RunFacts
from rag_eval.results.findings import Findings
from rag_eval.results.human_alignment import FEWEST_LABELS, PEOPLE
from rag_eval.results.paired import Change, Direction
from rag_eval.results.summary import (
    FEWEST_ROWS,
    RELIABLE_ROWS,
    RQS,
    BotSummary,
    Mean,
    Standing,
    Summary,
    of_queries,
)
from rag_eval.texts.display import (
    counted,
    decimals,
    digits_beside,
    digits_that_differ,
    enumerated,
    percent,
    percent_range,
    shorten,
)

if TYPE_CHECKING:
    from rag_eval.results.comparison import Comparison, Rival
    from rag_eval.results.head_to_head import HeadToHead, PairSummary, Strength
    from rag_eval.results.intervals import Interval
    from rag_eval.results.labelled_pairs import LabelledPair

NAME_LIMIT = 60
_WHOLE_NAME = 200
"""Characters of a name in the decision, which no honest name reaches."""
_CELL_NAME = 30
"""Characters of a name in a narrow cell."""
_UNDECIDED = "No clear winner yet: "
TOO_CLOSE = 0.05
"""A lead below it is within what the offline judge confuses, however many queries there are."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What a run says, in sentences."""

    decision: str
    """Who is better, in at most 12 words beside the names; no statistics."""
    numbers: str
    """Lead, interval and queries, and what more would be needed."""
    limits: tuple[str, ...]
    """Who judged, what was not judged, what could change the decision: one sentence each."""
    side_by_side: str = ""
    """Who is preferred in pairs, and whether this agrees with RQS; empty without a head-to-head comparison."""
    digits: int = 2
    """Decimals of RQS in these sentences; what stands beside them has as many."""

    @property
    def answer(self) -> str:
        """Decision and numbers in one line."""
        return f"{self.decision} {self.numbers}".strip()

    @property
    def lines(self) -> tuple[str, ...]:
        """At most three, without empty ones; one more with a head-to-head comparison."""
        return tuple(filter(None, (self.decision, self.numbers, self.side_by_side, " ".join(self.limits))))


def verdict(facts: RunFacts, summary: Summary, findings: Findings) -> RunVerdict:
    """The three lines on a run that has ended, complete or not."""
    comparison = findings.comparison
    if comparison is None:
        decision, numbers = "No bot can be ranked.", _why_none(facts, summary)
    elif not comparison.rivals:
        decision, numbers = _on_one(comparison.winner, facts, summary, findings)
    else:
        close = _is_too_close(comparison, facts)
        decision = _decision(comparison, summary, is_too_close=close)
        numbers = _numbers(comparison, facts, summary)
    if comparison and (spent := _spent_words(comparison, summary, findings)):
        numbers = f"{numbers} {spent}"
    if clear := _clear_words(comparison, facts):
        decision = f"{decision.removesuffix('.')}{clear}."
    if facts.partial and (unfinished := _unfinished(facts, summary)):
        numbers = numbers if comparison is None else f"So far: {decision.removeprefix(_UNDECIDED)} {numbers}"
        decision = f"Not finished: {unfinished} judged."
    limits = tuple(_limits(facts, summary, findings))
    side = _side_by_side(findings)
    return RunVerdict(decision, numbers, limits, side, _digits(comparison, summary))


def _clear_words(comparison: "Comparison | None", facts: RunFacts) -> str:
    """What a run that stopped as planned adds to its decision; empty if by other weights nothing is decided."""
    if not facts.has_stopped_as_planned or comparison is None:
        return ""
    when = f"clear after {_looked(facts)}"
    if not comparison.rivals:
        return f"; gates {when}"
    return f", {when}" if comparison.rivals[0].is_significant else ""


def _looked(facts: RunFacts) -> str:
    """How many rows the last look saw: '80 of 200 rows'."""
    return f"{facts.looks[facts.looks_taken - 1].rows:,} of {counted(facts.rows, 'row')}"


def _unfinished(facts: RunFacts, summary: Summary) -> str:
    """How much is; empty if a run was stopped and lacks nothing."""
    if summary.judged < facts.rows:
        return f"{summary.judged:,} of {counted(facts.rows, 'row')}"
    scored, failed = summary.scored_and_failed
    return f"{scored:,} of {counted(scored + failed, 'case')}" if failed else ""


def verdict_on(bot: str, facts: RunFacts, summary: Summary, findings: Findings) -> str:
    """The verdict on one bot in at most eight words beside the names, for a cell beside its own."""
    comparison = findings.comparison
    if comparison is None:
        return ""
    if bot not in findings.compared:
        return "not ranked: no RQS on the compared queries"
    if not comparison.rivals:
        return "the only ranked bot" if len(summary.bots) > 1 else _passes(_bot(summary, bot))
    winner = shorten(comparison.winner, _CELL_NAME)
    if bot in comparison.winners and len(comparison.winners) > 1:
        others = [shorten(each, _CELL_NAME) for each in comparison.winners if each != bot]
        return f"same score as {enumerated(others)}"
    if len(comparison.rivals) == 1 and _look_equal(comparison, summary) and not summary.too_few:
        other = comparison.rivals[0].bot if bot == comparison.winner else comparison.winner
        return f"same score as {shorten(other, _CELL_NAME)}"
    if bot != comparison.winner:
        rival = next(each for each in comparison.rivals if each.bot == bot)
        if not rival.is_comparable:
            return f"not comparable with {winner}: other metrics"
        return _beside(rival, comparison, facts, summary, ("worse than", "behind", winner))
    runner_up = comparison.rivals[0]
    name = shorten(runner_up.bot, _CELL_NAME)
    if not runner_up.is_comparable:
        return f"highest RQS; not comparable with {name}"
    if len(comparison.rivals) == 1 or summary.too_few:
        return _beside(runner_up, comparison, facts, summary, ("better than", "ahead of", name))
    return _reach(comparison, facts)


# Who is better


def _decision(comparison: "Comparison", summary: Summary, *, is_too_close: bool) -> str:
    winner, runner_up = _whole(comparison.winner), comparison.rivals[0]
    several = len(comparison.rivals) > 1
    if len(comparison.winners) > 1:
        names = enumerated([*map(_whole, comparison.winners)])
        if len(comparison.winners) > len(comparison.rivals):
            return f"{names} score the same."
        return f"{names} share first place among {len(comparison.rivals) + 1:,} bots."
    if not runner_up.is_comparable:
        return f"{winner} has the highest RQS, but {_whole(runner_up.bot)} is not comparable."
    if summary.too_few:
        return f"{_UNDECIDED}{_ahead(comparison)}."
    if not several and _look_equal(comparison, summary):
        return f"{winner} and {_whole(runner_up.bot)} score the same."
    if is_too_close:
        near = [rival.bot for rival in comparison.rivals if rival.difference < TOO_CLOSE]
        among = f": {_few([comparison.winner, *near])}" if several else ""
        return f"Too close for the offline judge to decide{among}."
    if not several:
        clear = f"{winner} is better than {_whole(runner_up.bot)}."
        return clear if runner_up.is_significant else f"{_UNDECIDED}{_ahead(comparison)}."
    open_ = [rival.bot for rival in comparison.rivals if rival.is_comparable and not rival.is_significant]
    if open_:
        return f"{winner} is ahead; {_few(open_)} may be as good."
    others = len(comparison.rivals) + 1
    if all(rival.is_comparable for rival in comparison.rivals):
        return f"{winner} is the best of {others:,}."
    return f"{winner} is the best of the bots that are comparable."


def _ahead(comparison: "Comparison") -> str:
    return f"{_whole(comparison.winner)} is ahead of {_whole(comparison.rivals[0].bot)}"


def _few(bots: Sequence[str]) -> str:
    """The first two by name: more would hide the decision."""
    names = [*map(_whole, bots)]
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2:,} others"]
    return enumerated(names)


def _is_too_close(comparison: "Comparison", facts: RunFacts) -> bool:
    return facts.is_proxy and comparison.rivals[0].difference < TOO_CLOSE


def _look_equal(comparison: "Comparison", summary: Summary) -> bool:
    """Not told apart, and equal to two decimals."""
    one, other = (decimals(mean) for mean in _means(summary)[:2])
    return one == other and not comparison.rivals[0].is_significant


def _means(summary: Summary) -> list[float]:
    """Mean RQS of the ranked bots, best first."""
    return [line.rqs.value or 0.0 for line in _ranked(summary)]


def _ranked(summary: Summary) -> list[Standing]:
    return [line for line in summary.standings if line.rank is not None]


# By how much


def _numbers(comparison: "Comparison", facts: RunFacts, summary: Summary) -> str:
    means, runner_up, several = _means(summary)[:2], comparison.rivals[0], len(comparison.rivals) > 1
    over = f"over {_queries(summary.compared, summary.rows)}"
    if len(comparison.winners) > 1 or (not several and _look_equal(comparison, summary)):
        whose = "both" if len(comparison.winners) <= 2 else "them"
        lead = _difference_words(
            runner_up, comparison.confidence, _digits(comparison, summary), is_repeated=bool(facts.looks)
        )
        return f"RQS is {decimals(means[0])} for {whose} {over}; difference {lead}."
    digits = _digits(comparison, summary)
    remark = "" if add_up(means, digits) else "the lead is computed before rounding"
    lead = _difference_words(runner_up, comparison.confidence, digits, is_repeated=bool(facts.looks))
    early = "leads of runs that stop early are a little too high" if _clear_words(comparison, facts) else ""
    whom = f"lead over {_short(runner_up.bot)}" if several else "lead"
    begin = f"RQS {' vs '.join(decimals(mean, digits) for mean in means)}: {whom} {lead} {over}"
    reach = [_reach(comparison, facts)] if several and not summary.too_few else []
    return "; ".join(filter(None, [begin, *reach, *_what_more(comparison, summary), remark, early])) + "."


def add_up(means: Sequence[float], digits: int) -> bool:
    """Whether two rounded means differ by as much as their difference, when it is rounded."""
    one, other = (round(float(decimals(mean, digits)), digits) for mean in means)
    return decimals(one - other, digits) == decimals(means[0] - means[1], digits)


def _what_more(comparison: "Comparison", summary: Summary) -> Iterator[str]:
    rival = comparison.rivals[0]
    if not rival.is_comparable:
        yield "the two RQS are made of different metrics"
    elif summary.too_few:
        yield f"fewer than {FEWEST_ROWS} {summary.too_few} are too few for a conclusion"
    elif rival.doubt:
        yield f"not significant ({rival.doubt})"
    if needed := _needed(rival):
        yield f"{needed} would be needed"


def _reach(comparison: "Comparison", facts: RunFacts) -> str:
    """Over how many of the others the lead is significant, and not too small for the offline judge."""
    comparable = [rival for rival in comparison.rivals if rival.is_comparable]
    significant = [rival for rival in comparable if rival.is_significant]
    too_close = [rival for rival in significant if facts.is_proxy and rival.difference < TOO_CLOSE]
    beaten, others = len(significant) - len(too_close), len(comparable)
    if too_close and not beaten:
        return "too close to decide"
    kind = "others" if others == len(comparison.rivals) else "comparable others"
    if not beaten:
        return f"not significantly better than any of the {kind}" if others else "no other bot is comparable"
    if others == 1:
        return "better than the one comparable other"
    return f"better than {'all' if beaten == others else f'{beaten:,} of the'} {others:,} {kind}"


def _beside(
    rival: "Rival", comparison: "Comparison", facts: RunFacts, summary: Summary, words: tuple[str, str, str]
) -> str:
    """`words` are those of a clear and of an unclear difference, and the other bot's name."""
    clear, unclear, name = words
    gap = decimals(rival.difference, _digits(comparison, summary))
    if rival.is_tie:
        return f"same score as {name}"
    if summary.too_few:
        return f"{unclear} {name} by {gap}; too few {summary.too_few}"
    if _is_too_close(comparison, facts) and rival.difference < TOO_CLOSE:
        return f"{unclear} {name} by {gap}, too close"
    if rival.is_significant:
        return f"{clear} {name} by {gap}"
    return (
        f"{unclear} {name}, {rival.doubt}" if rival.doubt else f"{unclear} {name} by {gap}, not significant"
    )


def _difference_words(rival: "Rival", confidence: float, digits: int, *, is_repeated: bool) -> str:
    """The winner's lead with its interval: '0.04 (95% CI −0.01 to 0.09)'; a repeated one minds earlier looks."""
    lead = decimals(rival.difference, digits)
    if not rival.interval:
        return lead
    repeated = "repeated " if is_repeated else ""
    return f"{lead} ({repeated}{percent(confidence)} CI {interval_words(rival.interval, digits)})"


def _digits(comparison: "Comparison | None", summary: Summary) -> int:
    """As many as tell different means apart, show no lead or limit as 0 that is not, and add up if three do."""
    means = _means(summary)
    if comparison is None or len(means) < 2:
        return 2
    if len(comparison.rivals) == 1 and _look_equal(comparison, summary):
        return 2
    rival = comparison.rivals[0]
    ends = [rival.interval.low, rival.interval.high] if rival.interval else []
    digits = digits_that_differ((0.0, number) for number in (rival.difference, *ends))
    digits = max(digits, min(3, digits_that_differ(pairwise(means))))
    return digits if add_up(means[:2], digits) or not add_up(means[:2], digits + 1) else digits + 1


def interval_words(interval: "Interval", digits: int = 2) -> str:
    """'0.08–0.30', or '−0.04 to 0.31' where a minus would stand next to the dash."""
    low, high = decimals(interval.low, digits), decimals(interval.high, digits)
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def _needed(rival: "Rival") -> str:
    """The number of additional queries that the test needs to show the difference; empty if that is unknown."""
    from rag_eval.results.comparison import MANY_QUERIES

    if rival.more_queries is None:
        return ""
    if rival.more_queries >= MANY_QUERIES:
        return f"more than {MANY_QUERIES:,} more"
    return f"about {_rounded_up(rival.more_queries):,} more"


def _rounded_up(count: int) -> int:
    """To a multiple of half its leading power of ten, as an estimate deserves: 57 → 60, 132 → 150."""
    step = max(1, int(10 ** (len(str(count)) - 1)) // 2)
    return -(-count // step) * step


# At what cost


def _spent_words(comparison: "Comparison", summary: Summary, findings: Findings) -> str:
    """A sentence on the bot that is not significantly worse than the best one, and significantly cheaper by most or, if
    no cost is known, faster; empty if there is none. Bots whose difference is doubtful are left out."""
    equal = [
        rival
        for rival in comparison.rivals
        if rival.is_comparable and not rival.is_significant and not rival.doubt
    ]
    if summary.too_few:
        return ""
    names = {each.name for each in findings.spent}
    name = "cost" if "cost" in names else "latency"
    less = [
        found
        for rival in equal
        if (found := findings.spent_of(rival.bot, name)) and found.direction is Direction.BETTER
    ]
    if not less:
        return ""
    found = min(less, key=lambda each: each.now / each.before)
    share = _share_words(found.now / found.before)
    what = "costs {} of {}" if name == "cost" else "takes {} of the time of {}"
    over = "" if found.queries == comparison.rows else f" over {of_queries(found.queries, summary.rows)}"
    is_tie = next(rival.is_tie for rival in equal if rival.bot == found.bot)
    worth = "scores the same" if is_tie else "is not significantly worse"
    return f"{_short(found.bot)} {what.format(share, _short(comparison.winner))}{over} and {worth}."


def _share_words(share: float) -> str:
    """As in 'about a quarter', or whole per cents where no plain fraction is near."""
    near = [words for fraction, words in _FRACTIONS.items() if abs(share / fraction - 1) <= _NEAR]
    if near:
        return f"about {near[0]}"
    return percent(share) if 0.005 <= share < 0.995 else "less than 1%" if share < 0.5 else "more than 99%"


_FRACTIONS = {
    1 / 10: "a tenth",
    1 / 5: "a fifth",
    1 / 4: "a quarter",
    1 / 3: "a third",
    1 / 2: "half",
    2 / 3: "two thirds",
    3 / 4: "three quarters",
}
_NEAR = 0.06
"""How far a share may be from a fraction, as a part of it."""


# One bot, and none


def _on_one(name: str, facts: RunFacts, summary: Summary, findings: Findings) -> tuple[str, str]:
    bot = _bot(summary, name)
    value, interval = next(line.rqs.value for line in _ranked(summary)), findings.compared.get(name)
    passes = _passes(bot)
    decision = f"{_whole(name)} {passes}." if passes else f"{_whole(name)} has an RQS."
    if len(summary.bots) > 1:
        decision = f"Only {_whole(name)} can be ranked."
    limits = f" (95% CI {interval_words(interval)})" if interval else ""
    over = f"over {_queries(summary.compared, summary.rows)}"
    thresholds = f"; {words}" if (words := _against_thresholds(bot, facts)) else ""
    return decision, f"RQS, the quality score from 0 to 1, is {decimals(value)}{limits} {over}{thresholds}."


def _passes(bot: BotSummary) -> str:
    """Empty where nothing was scored that could show a failure."""
    if not bot.judged_queries or not any(mean.scored for mean in bot.metrics.values()):
        return ""
    kind = "" if bot.judged_queries == bot.total_queries else "judged "
    return f"passes {of_queries(bot.full_modes[FailureMode.OK], bot.judged_queries, kind)}"


def _against_thresholds(bot: BotSummary, facts: RunFacts) -> str:
    """Which means are below their thresholds."""
    below = []
    for name, mean in bot.metrics.items():
        least = facts.thresholds.get(name)
        if least is not None and mean.value is not None and mean.value < least:
            below.append(
                f"{METRIC_LABELS[name]} {decimals(mean.value, digits_beside(least, mean.value))} (threshold {least:g})"
            )
    return f"means below their threshold: {', '.join(below)}" if below else "no mean is below its threshold"


def _bot(summary: Summary, name: str) -> BotSummary:
    return next(bot for bot in summary.bots if bot.bot == name)


def _why_none(facts: RunFacts, summary: Summary) -> str:
    """Why, and what to do."""
    scored, failed = summary.scored_and_failed
    if not failed and not scored:
        return (
            "No metric of RQS applies to any query. Add responses and a column Ground_Truth or Context, or switch "
            "a metric on in [metrics]."
        )
    if not scored and facts.partial:
        return f"Nothing was judged: {shorten(facts.partial, 200).rstrip('.')}."
    again = how_to_judge_again(failure_codes(facts, summary))
    if not scored:
        return f"Not one of {counted(failed, 'case')} could be judged ({_codes(summary)}). {again}"
    if not failed:
        return (
            "No query has an RQS for every bot: the bots answer different queries. Compare them one by one."
        )
    return f"No query has an RQS for every bot: {counted(failed, 'case')} not judged ({_codes(summary)}). {again}"


# Its limits


def _limits(facts: RunFacts, summary: Summary, findings: Findings) -> Iterator[str]:
    yield _judged_by(facts)
    if facts.cut_rows:
        yield f"First {facts.rows:,} of {facts.rows + facts.cut_rows:,} rows (max_rows)."
    if facts.has_stopped_as_planned and not _clear_words(findings.comparison, facts):
        yield f"The run stopped as planned after {_looked(facts)}."
    yield from _not_judged(facts, summary, findings)
    yield from _other_metrics(findings)
    yield from _few_compared(summary)
    count, name = summary.evidence
    if FEWEST_ROWS <= count < RELIABLE_ROWS:
        yield f"With only {count} {name} the intervals are too narrow if failures are rare."
    elif summary.too_few == "conversations" and not _has_lead(findings.comparison):
        yield f"Fewer than {FEWEST_ROWS} conversations are too few for an interval."
    yield from _corrected(findings)
    yield from _since_baseline(findings)


def _has_lead(comparison: "Comparison | None") -> bool:
    """Whether the numbers of the verdict say by how much the best bot is ahead of one with the same metrics."""
    return comparison is not None and bool(comparison.rivals) and comparison.rivals[0].is_comparable


def _judged_by(facts: RunFacts) -> str:
    if not facts.is_proxy:
        return f"Judged by {shorten(facts.judge, 120)}."
    if facts.judge == OFFLINE:
        return "Judged by the offline judge, which only compares words."
    return f"Judged by the {shorten(facts.judge, 120)}, which compares words and the meaning of texts."


def _not_judged(facts: RunFacts, summary: Summary, findings: Findings) -> Iterator[str]:
    _, failed = summary.scored_and_failed
    if not failed or findings.comparison is None:
        return
    codes = "" if facts.partial else f" ({_codes(summary)})"
    told = f"{counted(failed, 'case')} {'was' if failed == 1 else 'were'} not judged{codes}"
    if not findings.challengers:
        yield f"{told}."
    elif len(findings.comparison.winners) > 1:
        yield f"{told}; this could change who is first."
    else:
        names = enumerated([*map(_short, findings.challengers)], "or")
        yield f"{told}; this could put {names} first."


def failure_codes(facts: RunFacts, summary: Summary) -> set[str]:
    """Why scores, recommendations and verdicts on pairs failed, the calls among them that were not made."""
    return {*facts.usage.failures, *(code for bot in summary.bots for code in bot.failures)}


def _codes(summary: Summary) -> str:
    """The most frequent reasons for failed scores."""
    codes: Counter[str] = Counter()
    for bot in summary.bots:
        codes.update(bot.failures)
    told = [shorten(code, 40) for code, _ in codes.most_common(3)]
    return ", ".join([*told, *(["…"] if len(codes) > 3 else [])]) or "no reason is known"


def _other_metrics(findings: Findings) -> Iterator[str]:
    if not findings.unlike:
        return
    bots = enumerated([*map(_short, findings.unlike)])
    concerned = {name for names in findings.unlike.values() for name in names}
    labels = ", ".join(label for name, label in METRIC_LABELS.items() if name in concerned)
    yield f"Not comparable with the best bot: {bots}. {labels} could be scored for only one of the two bots."


def _few_compared(summary: Summary) -> Iterator[str]:
    """Whoever has few scores makes the comparison small for all; half of another bot's is worth a word."""
    ranked = {line.bot for line in _ranked(summary)}
    scored = {bot.bot: bot.rqs.scored for bot in summary.bots if bot.bot in ranked}
    if not scored or summary.compared * 2 > max(scored.values()):
        return
    bot, fewest = min(scored.items(), key=lambda item: item[1])
    reason = f"{_short(bot)} has an RQS for only {fewest:,}"
    if fewest > summary.compared * 2:
        reason = "different bots lack an RQS for different queries"
    yield f"Few queries are compared because {reason}. Bot Summary shows the mean of each bot over its own queries."


_MOST_BOTS = 3
"""Bots whose corrected mean, or change, the third line names."""


def _corrected(findings: Findings) -> Iterator[str]:
    """Of the measure with the most labels."""
    lines = [line for line in findings.alignment.agreements if line.corrected] if findings.alignment else []
    if not lines:
        return
    labels: Counter[str] = Counter()
    for line in lines:
        labels[line.label] += line.corrected.labelled if line.corrected else 0
    label, count = labels.most_common(1)[0]
    means = [
        f"{_short(line.bot)} {decimals(line.corrected.value)} ({interval_words(line.corrected.interval)})".strip()
        for line in lines
        if line.label == label and line.corrected
    ]
    more = [f"{len(means) - _MOST_BOTS:,} more"] if len(means) > _MOST_BOTS else []
    yield f"Corrected by {counted(count, 'human label')}: mean {label} {', '.join([*means[:_MOST_BOTS], *more])}."


def _since_baseline(findings: Findings) -> Iterator[str]:
    if findings.changes is None:
        return
    if reason := shorten(findings.not_comparable, 200):
        yield f"{reason[0].upper()}{reason[1:]}."
        return
    shares = [queries for queries in findings.common.values() if queries.before]
    if not shares:
        return
    least = min(shares, key=lambda queries: queries.both / queries.before)
    over = f"over {least.both:,} of its {least.before:,} queries"
    of_rqs = [change for change in findings.changes if change.name == RQS]
    if of_rqs:
        few = next((each.too_few for each in of_rqs if each.is_open), "")
        none = (
            f"fewer than {FEWEST_ROWS} {few} are too few for a conclusion"
            if few
            else "no significant change of RQS"
        )
        told = _directions(of_rqs, [_short(change.bot) for change in of_rqs]) or none
    else:
        names = [f"{METRIC_LABELS[each.name]} of {_short(each.bot)}" for each in findings.changes]
        told = "; ".join(filter(None, ("RQS is not compared", _directions(findings.changes, names))))
    yield f"Compared with the baseline, {over}: {told}."


def _directions(changes: Sequence[Change], names: Sequence[str]) -> str:
    """The names of the changes by their direction; empty if none is significant."""
    found = {
        direction: [
            name for change, name in zip(changes, names, strict=True) if change.direction is direction
        ]
        for direction in (Direction.BETTER, Direction.WORSE)
    }
    return "; ".join(f"{direction.value}: {enumerated(those)}" for direction, those in found.items() if those)


# Pairs


def _side_by_side(findings: Findings) -> str:
    """Whether pairs say what RQS says of the two best bots, and what people prefer if that is clear."""
    return " ".join(filter(None, (_by_judge(findings), _by_people(findings))))


def _by_people(findings: Findings) -> str:
    found, comparison = findings.head_to_head, findings.comparison
    if found is None or comparison is None or not comparison.rivals:
        return ""
    pair = found.pair(comparison.winner, comparison.rivals[0].bot)
    people = pair and pair.people
    if not pair or not people or people.win_rate is None:
        return ""
    if not people.is_significant:
        return _not_confirmed(pair, people)
    winner = pair.one
    if people.win_rate < 0.5:
        winner, people = pair.other, people.mirrored()
    limits = (
        f" (95% CI {percent_range(people.interval.low, people.interval.high)})" if people.interval else ""
    )
    over = counted(people.queries, "labelled query", "labelled queries")
    return f"Annotators prefer {_short(winner)} in {percent(people.win_rate or 0)} of {over}{limits}."


def _not_confirmed(pair: "PairSummary", people: "LabelledPair") -> str:
    """On labels that correct a clear preference of the judge to an open one; empty if they do not."""
    corrected, by_judge = people.corrected, pair.win_rate
    if not pair.is_significant or corrected is None or by_judge is None:
        return ""
    if not corrected.interval.has(0.5) or corrected.interval.has(by_judge):
        return ""
    return (
        f"Labels do not confirm this: corrected by them, the win rate of {_short(pair.one)} is "
        f"{percent(corrected.value)} (95% CI {percent_range(corrected.interval.low, corrected.interval.high)})."
    )


def _by_judge(findings: Findings) -> str:
    found, comparison = findings.head_to_head, findings.comparison
    if found is None or not found.asked:
        return ""
    if found.trust.problem:
        return f"Side by side there is no verdict: {found.trust.problem}. Use a stronger judge."
    if comparison is None or not comparison.rivals:
        return ""
    best, rival = comparison.winner, comparison.rivals[0]
    if found.choice == MATCHING:
        return _by_strengths(found, best)
    pair = found.pair(best, rival.bot)
    if pair is None or pair.win_rate is None:
        return f"Side by side, {_short(best)} and {_short(rival.bot)} could not be compared."
    return " ".join(filter(None, (_by_pair(pair, rival), _most_preferred(found, best))))


def _most_preferred(found: "HeadToHead", best: str) -> str:
    """On another bot that is preferred to more bots than the one with the highest RQS is; empty without one."""
    wins = Counter(
        pair.one if (pair.win_rate or 0) > 0.5 else pair.other for pair in found.pairs if pair.is_significant
    )
    ((most, count),) = wins.most_common(1) or [(best, 0)]
    others = len({bot for pair in found.pairs for bot in (pair.one, pair.other)}) - 1
    if others < 2 or count <= wins[best]:
        return ""
    of_best = wins[best] or "none"
    return f"{_short(most)} is preferred to {count:,} of {others:,} other bots, {_short(best)} to {of_best}."


def _by_pair(pair: "PairSummary", rival: "Rival") -> str:
    """On the bot with the highest RQS, as it sees the next one, the `rival` by RQS."""
    best, other = _short(pair.one), _short(pair.other)
    if few := _too_few(pair):
        figures = _pair_figures(pair, "over")
        return f"Side by side, {best} has a win rate of {figures}; too few {few} for a conclusion."
    if not pair.is_significant:
        only = " The interval is of this pair only; over all pairs the preference is not clear enough."
        return (
            f"Side by side there is no clear preference between {best} and {other}: {best} has a win rate of "
            f"{_pair_figures(pair, 'over')}.{only if pair.is_clear_by_itself else ''}"
        )
    is_same = (pair.win_rate or 0) > 0.5
    shown = pair if is_same else pair.seen_from(pair.other)
    told = f"{_short(shown.one)} is preferred in {_pair_figures(shown)}."
    if not rival.is_comparable:
        return f"Their RQS cannot be compared; side by side, {told}"
    if not rival.is_significant:
        return f"RQS does not separate them; side by side, {told}"
    if is_same:
        return f"{best} leads by both measures: side by side, {told}"
    return f"The two measures disagree: side by side, {told} {_by_criterion(shown)}".strip()


def _pair_figures(pair: "PairSummary", over: str = "of") -> str:
    """'58% of 20 queries (95% CI 51–65%; 11 wins, 4 ties, 5 losses; 2 of 20 depend on the order)'."""
    parts = [f"95% CI {percent_range(pair.interval.low, pair.interval.high)}"] if pair.interval else []
    counts = ((pair.wins, "win", "wins"), (pair.ties, "tie", "ties"), (pair.losses, "loss", "losses"))
    parts.append(", ".join(f"{count:,} {one if count == 1 else several}" for count, one, several in counts))
    parts += [f"{pair.flips:,} of {pair.judged:,} depend on the order"] if pair.flips else []
    parts += [f"{pair.failed:,} not judged"] if pair.failed else []
    parts += [f"{percent(pair.at_equal_length)} at equal length"] if pair.at_equal_length is not None else []
    return f"{percent(pair.win_rate or 0)} {over} {_queries(pair.queries, pair.queries)} ({'; '.join(parts)})"


def _by_criterion(pair: "PairSummary") -> str:
    """What the judge preferred on each point."""
    told = ", ".join(f"{name} {percent(rate)}" for name, rate in pair.criteria.items())
    return f"Win rates by point: {told}." if told else ""


def _by_strengths(found: "HeadToHead", best: str) -> str:
    strongest = next(iter(found.strengths), None)
    if strongest is None:
        return ""
    limits = (
        f" (95% CI {percent_range(strongest.interval.low, strongest.interval.high)})"
        if strongest.interval
        else ""
    )
    behind = sum(each.is_behind for each in found.strengths)
    others = len(found.strengths) - 1
    beats = f"{behind:,} of {others:,} others" if behind < others else f"all {others:,} others"
    told = (
        f"{_short(strongest.bot)} is expected to win {percent(strongest.win_rate)}{limits} against an average bot, and "
        f"is significantly preferred to {beats}"
    )
    if strongest.bot == best:
        return f"Side by side, the same bot is first: {told}."
    if any(each.bot == best and each.is_behind for each in found.strengths):
        return f"The two measures disagree: side by side, {told}, {_short(best)} among them."
    return f"Side by side, another bot is first, not clearly before {_short(best)}: {told}."


PREFERRED, NOT_PREFERRED = "preferred", "not preferred"
_UNFIT = "no verdict: the judge failed its controls"


def strength_words(strength: "Strength", found: "HeadToHead") -> str:
    """The verdict on a bot among all others for a cell next to its figures; empty if there is none."""
    if found.trust.problem:
        return _UNFIT
    return "weaker than the strongest" if strength.is_behind else ""


def preference_words(pair: "PairSummary | LabelledPair", found: "HeadToHead | None" = None) -> str:
    """The verdict on two bots for a cell beside their figures: that of people, or of the judge, whom `found` shows."""
    if pair.win_rate is None:
        return "not judged" if found else "no random labels"
    if found and found.trust.problem:
        return _UNFIT
    if few := _too_few(pair):
        return f"too few {few}"
    if not pair.is_significant:
        return "not clear over all pairs" if pair.is_clear_by_itself else "no clear preference"
    return PREFERRED if pair.win_rate > 0.5 else NOT_PREFERRED


def _too_few(pair: "PairSummary | LabelledPair") -> str:
    """The name of what is too few for an interval and a verdict; empty if there are enough."""
    if pair.queries < FEWEST_ROWS:
        return "queries"
    return "" if pair.interval else "conversations"


def trust_words(found: "HeadToHead") -> Iterator[str]:
    """What shows whether the judge compares responses or something else, one sentence each."""
    trust = found.trust
    if trust.problem:
        yield f"No verdict: {trust.problem}. Use a stronger judge."
    yield (
        f"Controls: the judge called {trust.controls_tied:,} of {trust.controls:,} pairs of identical responses a tie "
        "(at least 70% are needed)."
    )
    if trust.decided:
        yield (
            f"Position: the response that is shown first won {percent(trust.first_wins / trust.decided)} of "
            f"{trust.decided:,} decisions (35–65% is accepted)."
        )
    if trust.judged:
        yield (
            f"Flips: in {trust.flips:,} of {trust.judged:,} comparisons ({percent(trust.flips / trust.judged)}) the "
            "same position won in both orders. Flips are frequent if bots are equally good."
        )
    if trust.longer_of:
        yield (
            f"Length: the longer response is preferred in {percent(trust.longer_wins / trust.longer_of)} of "
            f"{trust.longer_of:,} decided comparisons."
        )
    if found.compared:
        yield f"RQS: {found.differing:,} of {found.compared:,} comparisons prefer the response with the lower RQS."
    if found.failed:
        yield f"Not judged: {found.failed:,} of {found.asked:,} pairs. They are in no figure."


def labelled_words(found: "HeadToHead | None") -> Iterator[str]:
    """How far the judge and people agree on pairs, and two people with each other, one sentence each; and which bots
    have no corrected win rate."""
    for each in found.agreements if found else ():
        decided, kappa = each.decided, each.kappa
        if not each.count or kappa.raw is None:
            continue
        limits = f" (95% CI {interval_words(kappa.interval)})" if kappa.interval else ""
        beyond = f"; kappa {decimals(kappa.kappa)}{limits}" if kappa.kappa is not None else ""
        only = (
            f"; {percent(decided.rate)} of {decided.of:,} if both prefer one response"
            if decided.rate is not None
            else ""
        )
        who = " and ".join("annotators" if name == PEOPLE else _short(name) for name in each.raters)
        yield (
            f"Labels: {who} prefer the same in {percent(kappa.raw)} of {counted(each.count, 'pair')}{only}{beyond}."
        )
    yield from _uncorrected_words(found.pairs if found else ())


def _uncorrected_words(pairs: "Sequence[PairSummary]") -> Iterator[str]:
    """Why a corrected win rate is missing, for all labelled bots at once."""
    missing: dict[str, list[str]] = {"random labels": [], "labels": [], "conversations": [], "": []}
    for pair in pairs:
        if pair.people and not pair.people.corrected:
            bots = f"{_short(pair.one)} and {_short(pair.other)} ({pair.people.queries:,})"
            few = "labels" if pair.people.queries < FEWEST_LABELS else _too_few(pair.people)
            is_drawn = pair.people.queries or not pair.people.agreement.count
            missing[few if is_drawn else "random labels"].append(
                bots if is_drawn else bots.rpartition(" (")[0]
            )
    if missing["random labels"]:
        yield (
            f"Labels: no corrected win rate for {enumerated(missing['random labels'])}; none of the labelled pairs was "
            "drawn at random from those of this run."
        )
    if missing["labels"]:
        yield (
            f"Labels: a corrected win rate needs {FEWEST_LABELS} labelled queries of two bots; too few for "
            f"{enumerated(missing['labels'])}."
        )
    if missing["conversations"]:
        yield (
            f"Labels: no corrected win rate for {enumerated(missing['conversations'])}; fewer than {FEWEST_ROWS} "
            "labelled conversations are too few for an interval."
        )
    if missing[""]:
        yield (
            f"Labels: no corrected win rate for {enumerated(missing[''])}; all labels say the same, or the "
            "judge failed on too many of these queries."
        )


# Beside the verdict


def unfit_words(facts: RunFacts) -> str:
    """A sentence on a judge that repeats its prompt; empty for any other."""
    echoes, calls = (counts.get(ECHO, 0) for counts in (facts.usage.refused, facts.usage.failures))
    if echoes < _ECHOES_OF_AN_UNFIT_JUDGE or (calls == 1 and echoes <= _ECHOES_OF_ONE_CALL):
        return ""
    return (
        f"The judge repeated examples of its prompt in {echoes:,} replies: this model is not fit to judge. "
        "Use a larger model; rag-eval compare-judges shows whether one agrees with human labels."
    )


_ECHOES_OF_AN_UNFIT_JUDGE = 2
_ECHOES_OF_ONE_CALL = 3
"""A call that fails has so many at most."""


def noise_words(findings: Findings) -> list[str]:
    """A sentence on how far the judge's samples of one score lie apart; none without samples."""
    told = ", ".join(
        f"{SCORE_LABELS.get(name, name)} {decimals(value, 3)}" for name, value in findings.noise.items()
    )
    return [f"Standard deviation between the judge's samples of one score: {told}."] if told else []


def flagged_words(findings: Findings) -> list[str]:
    """A sentence that names the flagged cases with the highest RQS; none without any."""
    named = [
        f"row {result.case.row} {_short(result.case.bot)} {decimals(result.rqs or 0)}"
        for result in findings.flagged
    ]
    return [f"Please check the flagged cases with the highest RQS: {', '.join(named)}."] if named else []


ABOUT_COUNTS = (
    "A count in brackets: the mean is over that many rows, because the other rows do not have this score."
)
"""Below a table with counts in brackets."""


def mean_words(mean: Mean | None, rows: int) -> str:
    """A mean for a line of so many rows: '0.71', or '0.71 (18)' if it is over another number of rows."""
    if mean is None or mean.value is None:
        return "–"
    return f"{decimals(mean.value)} ({mean.scored:,})" if mean.scored != rows else decimals(mean.value)


def has_other_counts(summary: Summary) -> bool:
    """Whether `mean_words` shows a count for any mean of the leaderboard."""
    return any(
        mean.value is not None and mean.scored != line.rqs.scored
        for line in summary.standings
        for mean in line.metrics.values()
    )


def _queries(part: int, whole: int) -> str:
    """'20 queries' where it is all of them, otherwise '18 of 20 queries'."""
    return of_queries(part, whole).partition(" of ")[2] if part == whole else of_queries(part, whole)


def _whole(name: str) -> str:
    return shorten(name, _WHOLE_NAME)


def _short(name: str) -> str:
    return shorten(name, NAME_LIMIT)
