"""Sheets "Head to Head" and "Pairs": bots against bots, and each comparison of two responses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from rag_eval.records import MATCHING, CaseResult, Outcome, PairVerdict, RunFacts
from rag_eval.report.column import Cell, Column, Place, Value, interval_columns, plain_column
from rag_eval.report.styles import Look
from rag_eval.report.worksheet import CASE_SHEET, fits_sheet
from rag_eval.results.human_alignment import FEWEST_LABELS
from rag_eval.results.paired import consensus
from rag_eval.results.verdict import preference_words, strength_words, trust_words

if TYPE_CHECKING:
    from rag_eval.results.head_to_head import HeadToHead, PairSummary, Strength
    from rag_eval.results.labelled_pairs import LabelledPair

_CRITERIA = {"correct": "Correct", "supported": "Supported", "useful": "Useful"}


def pair_columns(found: "HeadToHead | None") -> "list[Column[PairSummary]]":
    """Of two bots, as the first one sees them."""
    names = [
        name for name in _CRITERIA if any(name in pair.criteria for pair in (found.pairs if found else ()))
    ]
    is_matching = found is not None and found.choice == MATCHING  # the verdict is that on strengths
    verdict: Column[PairSummary] = plain_column(
        "Verdict", 34, Look.TEXT, lambda pair: preference_words(pair, found)
    )
    return [
        plain_column("Bot", 20, Look.NAME, lambda pair: pair.one),
        plain_column("Against", 20, Look.NAME, lambda pair: pair.other),
        plain_column("Win Rate", 9, Look.PERCENT, lambda pair: pair.win_rate, _ABOUT_WIN_RATE),
        *interval_columns("Win Rate", 10, Look.PERCENT, lambda pair: pair.interval, _ABOUT_INTERVAL),
        plain_column("Queries", 9, Look.COUNT, lambda pair: pair.queries, _ABOUT_QUERIES),
        plain_column("Wins", 8, Look.COUNT, lambda pair: pair.wins, _ABOUT_WINS),
        plain_column("Ties", 8, Look.COUNT, lambda pair: pair.ties, _ABOUT_TIES),
        plain_column("Losses", 8, Look.COUNT, lambda pair: pair.losses),
        plain_column("Flips", 8, Look.COUNT, lambda pair: pair.flips, _ABOUT_FLIPS),
        plain_column("Failed", 8, Look.COUNT, lambda pair: pair.failed, _ABOUT_FAILED),
        *map(_criterion_column, names),
        plain_column("Longer Wins", 9, Look.PERCENT, _longer_wins, _ABOUT_LONGER),
        plain_column(
            "Win Rate at Equal Length", 11, Look.PERCENT, lambda pair: pair.at_equal_length, _ABOUT_EQUAL
        ),
        *([] if is_matching else [verdict]),
    ]


def label_columns(found: "HeadToHead | None") -> "list[Column[PairSummary]]":
    """Of two bots, as the first one sees them: what people prefer."""
    is_matching = found is not None and found.choice == MATCHING  # too few queries of each pair
    verdict: Column[PairSummary] = plain_column(
        "Verdict", 26, Look.TEXT, lambda pair: preference_words(pair.people) if pair.people else ""
    )
    return [
        plain_column("Bot", 20, Look.NAME, lambda pair: pair.one),
        plain_column("Against", 20, Look.NAME, lambda pair: pair.other),
        *_LABELS,
        *([] if is_matching else [verdict]),
    ]


def label_lines(found: "HeadToHead | None") -> "Iterator[PairSummary]":
    """Those of `pair_lines` that have labels."""
    return (pair for pair in pair_lines(found) if pair.people)


def _labelled_column(
    header: str, look: Look, value: "Callable[[LabelledPair], Value]", about: str
) -> "Column[PairSummary]":
    return plain_column(header, 10, look, lambda pair: value(pair.people) if pair.people else None, about)


def _criterion_column(name: str) -> "Column[PairSummary]":
    about = f"Win rate on the point '{name}' only."
    header = f"{_CRITERIA[name]} Win Rate"
    return plain_column(header, 10, Look.PERCENT, lambda pair: pair.criteria.get(name), about)


def pair_lines(found: "HeadToHead | None") -> "Iterator[PairSummary]":
    """Every two bots twice, once for each of them, by bot."""
    if found is None:
        return
    bots = [each.bot for each in found.strengths] or list(
        dict.fromkeys(bot for pair in found.pairs for bot in (pair.one, pair.other))
    )
    for bot in bots:
        yield from (pair.seen_from(bot) for pair in found.pairs if bot in (pair.one, pair.other))


def _longer_wins(pair: "PairSummary") -> float | None:
    return pair.longer_wins / pair.longer_of if pair.longer_of else None


def strength_columns(found: "HeadToHead | None") -> "list[Column[Strength]]":
    """With a verdict if no pair has one."""

    def words(each: "Strength") -> str:
        return strength_words(each, found) if found else ""

    verdict: Column[Strength] = plain_column("Verdict", 34, Look.TEXT, words, _ABOUT_BEHIND)
    return [
        plain_column("Bot", 20, Look.NAME, lambda each: each.bot),
        plain_column("Expected Win Rate", 11, Look.PERCENT, lambda each: each.win_rate, _ABOUT_STRENGTH),
        *interval_columns(
            "Expected Win Rate", 11, Look.PERCENT, lambda each: each.interval, _ABOUT_STRENGTH_INTERVAL
        ),
        plain_column(
            "Queries", 9, Look.COUNT, lambda each: each.queries, "Queries with at least one pair of this bot."
        ),
        *([verdict] if found and found.choice == MATCHING else []),
    ]


def pair_notes(found: "HeadToHead | None") -> Sequence[str]:
    """What shows whether the judge may be trusted, and how the figures come about."""
    if found is None:
        return ()
    how = (
        "Pairs: in each row every bot is in one pair at most. The strengths use all pairs together."
        if found.choice == MATCHING
        else "Pairs: all bots against all others, for every query. Verdicts are on pairs."
    )
    return (how, *trust_words(found))


@dataclass(frozen=True, slots=True)
class _PairLine:
    """Two responses to one query."""

    result: CaseResult
    verdict: PairVerdict
    case: Place | None
    """Its line on the sheet of the cases, if all of them have one."""


def case_pair_columns(facts: RunFacts) -> list[Column[_PairLine]]:
    return [
        Column("Row", 8, _row_cell, about=_ABOUT_ROW),
        plain_column("Query", 40, Look.TEXT, lambda line: line.result.case.query),
        plain_column("Bot", 16, Look.TEXT, lambda line: line.result.case.bot),
        plain_column("Against", 16, Look.TEXT, lambda line: line.verdict.other, _ABOUT_AGAINST),
        plain_column(
            "Preferred",
            18,
            Look.TEXT,
            lambda line: preferred(line.result.case.bot, line.verdict),
            _ABOUT_PREFERRED,
        ),
        Column("Value", 8, _value_cell, about=_ABOUT_VALUE),
        plain_column("Shown First", 16, Look.TEXT, lambda line: _said(line, 0), _ABOUT_FIRST),
        plain_column("Shown Second", 16, Look.TEXT, lambda line: _said(line, 1), _ABOUT_SECOND),
        *map(_point_column, _CRITERIA),
        plain_column("RQS Gap", 9, Look.GAP, lambda line: line.verdict.rqs_gap, _ABOUT_GAP),
        plain_column(
            "Differs from RQS",
            10,
            Look.WORD,
            lambda line: "YES" if line.verdict.differs_from_rqs else "",
            _ABOUT_DIFFERS,
        ),
        *(_HUMAN if facts.has_pair_labels else ()),
        plain_column("Reason", 60, Look.TEXT, lambda line: reason_of(line.verdict)),
    ]


def case_pair_lines(facts: RunFacts) -> Callable[[CaseResult | None], Iterable[_PairLine]]:
    fits, line = fits_sheet(facts), count(1)

    def lines(result: CaseResult | None) -> Iterator[_PairLine]:
        if result is None:
            return
        case = Place(CASE_SHEET, next(line), 0) if fits else None
        yield from (_PairLine(result, verdict, case) for verdict in result.pairs)

    return lines


def _row_cell(line: _PairLine) -> Cell:
    return Cell(line.result.case.row, Look.LINK if line.case else Look.COUNT, link=line.case)


def _point_column(name: str) -> Column[_PairLine]:
    return plain_column(
        _CRITERIA[name], 10, Look.SCORE, lambda line: line.verdict.criteria.get(name), _ABOUT_VALUE
    )


def _value_cell(line: _PairLine) -> Cell:
    if line.verdict.outcome is Outcome.FAILED:
        return Cell("failed", Look.FAILED)
    return Cell(line.verdict.value, Look.SCORE)


def preferred(bot: str, verdict: PairVerdict) -> str:
    """The name of the bot whose response is preferred to that of the other, or what else the judge found."""
    if verdict.value is None:
        return f"failed ({verdict.code})"
    if verdict.other == bot:
        return "control: tie" if verdict.value == 0 else "control: not a tie"
    if verdict.value == 0:
        return "depends on the order" if verdict.is_flipped else "tie"
    name = bot if verdict.value > 0 else verdict.other
    return name if abs(verdict.value) == 1 else f"{name}, in one order"


def _labelled(line: _PairLine) -> str:
    """Whose response people prefer, and how many of them if they are divided."""
    names = {1.0: line.result.case.bot, 0.0: "same", -1.0: line.verdict.other}
    counts = Counter(names[value] for value in line.verdict.labels.values())
    return ", ".join(
        counts if len(counts) == 1 else (f"{name} {count}" for name, count in counts.most_common())
    )


def _differs_from_labels(line: _PairLine) -> bool:
    human, judge = consensus(line.verdict.labels), line.verdict.preference
    return human is not None and judge is not None and human != judge


def _said(line: _PairLine, order: int) -> str:
    if order >= len(line.verdict.orders):
        return ""
    names = {"this": line.result.case.bot, "other": line.verdict.other}
    if line.verdict.other == line.result.case.bot:
        names = {"this": "first", "other": "second"}
    said = line.verdict.orders[order]
    return names.get(said, said)


def reason_of(verdict: PairVerdict) -> str:
    """What the judge wrote in both orders, or why it was not needed or failed."""
    return " | ".join(filter(None, verdict.reasons)) or verdict.reason


_ABOUT_ROW = "Row number in the input. Click it to go to the case."
_ABOUT_WIN_RATE = (
    "Share of queries for which this response is preferred. A tie counts half, and a preference in one order three "
    "quarters."
)
_ABOUT_INTERVAL = (
    "95% interval of this win rate. The verdict is on all pairs together, so an interval may exclude 50% without a "
    "preference. Empty for few queries."
)
_ABOUT_QUERIES = "Compared queries. Repeats of a query count once."
_ABOUT_WINS = "Preferred in both orders."
_ABOUT_TIES = "All other queries: ties, and preferences that depend on the order."
_ABOUT_FLIPS = "The same position won in both orders: the preference depends on the order."
_ABOUT_FAILED = "The judge failed. These queries are in no figure."
_ABOUT_LONGER = "Share of decided comparisons in which the longer response is preferred."
_ABOUT_EQUAL = (
    "Estimated win rate if both responses were equally long. Empty if one bot is nearly always longer."
)
_ABOUT_STRENGTH = "Expected win rate against an average bot, from the pairs of all bots (Bradley-Terry)."
_ABOUT_STRENGTH_INTERVAL = "95% interval by resampling queries."
_ABOUT_BEHIND = "By a test over all bots together."
_ABOUT_AGAINST = (
    "The other bot. In a control, a response is compared with itself: the judge must call it a tie."
)
_ABOUT_PREFERRED = "Preferred in both orders, unless the cell says otherwise."
_ABOUT_VALUE = "From -1, the other response is better, to 1, this one is: the mean of both orders."
_ABOUT_FIRST = "What the judge preferred when this response was shown first."
_ABOUT_SECOND = "What the judge preferred when this response was shown second."
_ABOUT_GAP = "RQS of this response minus that of the other one."
_ABOUT_DIFFERS = "The pair prefers the response with the lower RQS."
_ABOUT_HUMAN = "What the annotators prefer; empty for a pair without labels."
_ABOUT_DIFFERS_FROM_HUMAN = (
    "More than half of the annotators prefer something else than the judge in both orders."
)
_HUMAN: tuple[Column[_PairLine], ...] = (
    plain_column("Human", 18, Look.TEXT, _labelled, _ABOUT_HUMAN),
    plain_column(
        "Differs from Human",
        10,
        Look.WORD,
        lambda line: "YES" if _differs_from_labels(line) else "",
        _ABOUT_DIFFERS_FROM_HUMAN,
    ),
)
_ABOUT_HUMAN_RATE = "Share of labelled queries for which annotators prefer this response. 'same' counts half."
_ABOUT_LABELLED = "Queries of the random sample with a label. Repeats of a query count once."
_ABOUT_JUDGE_RATE = "By the judge, over the same queries."
_ABOUT_CORRECTED_RATE = (
    "Estimated human win rate over all compared queries: the judge's win rate, corrected for its bias "
    f"(prediction-powered inference). Needs {FEWEST_LABELS} labels drawn at random."
)
_ABOUT_SAME = "Share of these pairs on which annotators and judge say the same: first, same or second."
_ABOUT_DECIDED = "The same, of the pairs of which both prefer one response."
_LABELS: "tuple[Column[PairSummary], ...]" = (
    _labelled_column("Human Win Rate", Look.PERCENT, lambda each: each.win_rate, _ABOUT_HUMAN_RATE),
    *interval_columns(
        "Human Win Rate",
        10,
        Look.PERCENT,
        lambda pair: pair.people.interval if pair.people else None,
        _ABOUT_INTERVAL,
    ),
    _labelled_column("Labelled Queries", Look.COUNT, lambda each: each.queries, _ABOUT_LABELLED),
    _labelled_column("Judge Win Rate", Look.PERCENT, lambda each: each.judge_win_rate, _ABOUT_JUDGE_RATE),
    _labelled_column(
        "Corrected Win Rate",
        Look.PERCENT,
        lambda each: each.corrected.value if each.corrected else None,
        _ABOUT_CORRECTED_RATE,
    ),
    *interval_columns(
        "Corrected Win Rate",
        10,
        Look.PERCENT,
        lambda pair: pair.people.corrected.interval if pair.people and pair.people.corrected else None,
    ),
    _labelled_column(
        "Labels Compared",
        Look.COUNT,
        lambda each: each.agreement.count,
        "Labelled pairs with a verdict of the judge, without those on which annotators are divided.",
    ),
    _labelled_column("Same Preference", Look.PERCENT, lambda each: each.agreement.kappa.raw, _ABOUT_SAME),
    _labelled_column(
        "Same if Decided", Look.PERCENT, lambda each: each.agreement.decided.rate, _ABOUT_DECIDED
    ),
    _labelled_column(
        "Kappa",
        Look.SCORE,
        lambda each: each.agreement.kappa.kappa,
        "Cohen's kappa of first, same and second.",
    ),
)
"""What human labels say, if there are any."""
