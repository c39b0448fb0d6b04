"""Sheets "Head to Head" and "Pairs": bots against bots, and each comparison of two responses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from rag_eval.records import MATCHING, CaseResult, Outcome, PairVerdict
from rag_eval.report.case_table import CASES, fits_sheet
from rag_eval.report.column import Cell, Column, Place, interval_columns, plain_column
from rag_eval.report.styles import Look
from rag_eval.results.verdict import preference_words, strength_words, trust_words

if TYPE_CHECKING:
    from rag_eval.records import RunFacts
    from rag_eval.results.head_to_head import HeadToHead, PairSummary, Strength

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
        else "Pairs: all bots against all others, for every query."
    )
    return (how, *trust_words(found))


def plain_pairs(found: "HeadToHead | None") -> dict[str, Any] | None:
    """In values that JSON knows."""
    return None if found is None else asdict(found) | {"problem": found.trust.problem}


@dataclass(frozen=True, slots=True)
class PairLine:
    """Two responses to one query."""

    result: CaseResult
    verdict: PairVerdict
    case: Place | None = None
    """Its line on the sheet of the cases, if all of them have one."""


def case_pair_columns(facts: "RunFacts") -> list[Column[PairLine]]:
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
        plain_column("Reason", 60, Look.TEXT, lambda line: reason_of(line.verdict)),
    ]


def case_pair_lines(facts: "RunFacts") -> Callable[[CaseResult | None], Iterable[PairLine]]:
    fits, line = fits_sheet(facts), count(1)

    def lines(result: CaseResult | None) -> Iterator[PairLine]:
        if result is None:
            return
        case = Place(CASES.name, next(line), 0) if fits else None
        yield from (PairLine(result, verdict, case) for verdict in result.pairs)

    return lines


def _row_cell(line: PairLine) -> Cell:
    return Cell(line.result.case.row, Look.LINK if line.case else Look.COUNT, link=line.case)


def _point_column(name: str) -> Column[PairLine]:
    return plain_column(
        _CRITERIA[name], 10, Look.SCORE, lambda line: line.verdict.criteria.get(name), _ABOUT_VALUE
    )


def _value_cell(line: PairLine) -> Cell:
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


def _said(line: PairLine, order: int) -> str:
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
