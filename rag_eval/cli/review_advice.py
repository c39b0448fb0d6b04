"""Which bots get no corrected mean of the labels on a review sheet, and how many cases to draw instead."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, exp, lgamma

from rag_eval.records import SCORE_LABELS
from rag_eval.report.review_sheet import Review
from rag_eval.results.human_alignment import FEWEST_LABELS
from rag_eval.results.paired import groups_of
from rag_eval.results.sampling import Drawn
from rag_eval.results.summary import FEWEST_ROWS
from rag_eval.tables.review_file import bot_words, group_of

_Place = tuple[str, str]
"""Bot and measure, which have a corrected mean of their own."""
_CERTAINTY = 0.95
"""Share of the draws in which the advised number of cases has enough labels."""


def advice(review: Review, suspicious: float) -> Iterator[str]:
    """Which bots get no corrected mean of this many labels, and how many are enough, if any number is."""
    drawn = [*review.before, *(case for case in review.sample.cases if case.stratum)]
    labels, sizes = _labels(review, drawn), _sizes(review)
    everything = (Drawn(line, "", None) for line in range(sum(review.bots().values())))
    talks = _conversations(review, everything)
    alone = {place: count for place, count in talks.items() if count < FEWEST_ROWS <= sizes[place]}
    if alone:
        yield (
            f"A {review.estimate} needs {FEWEST_ROWS} conversations, however many labels there are. Too few: "
            f"{_listed(review, alone)}."
        )
    rule = f"A {review.estimate} needs {FEWEST_LABELS} labels of a {review.group}"
    small = {
        (bot, measure): most if most < FEWEST_LABELS else size
        for (bot, measure), size in sizes.items()
        if size < FEWEST_LABELS and (bot, measure) not in alone
        for most in [max(sizes[bot, each] for each in review.measures)]
    }
    if small:
        yield f"{rule}. Too few {review.noun}s can be labelled: {_listed(review, small)}."
    possible = [place for place in sizes if place not in small and place not in alone]
    few = dict.fromkeys(place for place in possible if labels[place] < FEWEST_LABELS)
    if few:
        needed = max(_needed(review, place, FEWEST_LABELS) for place in possible)
        new = "new " if review.before else ""
        yield (
            f"{rule}; {_listed(review, few)} will have fewer. About {_with_suspicious(review, needed, suspicious):,} "
            f"{new}{review.noun}s are enough (--cases)."
        )
    yield from _of_few_conversations(review, drawn, [place for place in possible if place not in few])


def _with_suspicious(review: Review, needed: int, share: float) -> int:
    """How many cases a sheet must have so that `needed` of them are random, beside this share of suspicious ones."""
    drawn = review.sample.cases
    odd = sum(not case.stratum for case in drawn)
    has_all = odd < round(len(drawn) * share)  # of the suspicious ones; a larger sheet has no more
    number = needed + odd if has_all else ceil(needed / (1 - share))
    return min(number, review.sample.left + len(drawn))  # of all there are, every one is drawn at random


def _of_few_conversations(review: Review, drawn: Sequence[Drawn], places: Sequence[_Place]) -> Iterator[str]:
    """Who has conversations and labels enough, but labels of too few conversations."""
    talks = _conversations(review, drawn)
    few = {place: talks[place] for place in places if talks.get(place, FEWEST_ROWS) < FEWEST_ROWS}
    if few:
        yield (
            f"A {review.estimate} needs labels of {FEWEST_ROWS} conversations; the drawn {review.noun}s are of fewer: "
            f"{_listed(review, few)}. Draw more (--cases) or others (--seed)."
        )


def _labels(review: Review, drawn: Iterable[Drawn]) -> Counter[_Place]:
    return Counter(
        (group_of(review.case_of(case).bot), measure) for case in drawn for measure in review.scored(case)
    )


def _sizes(review: Review) -> dict[_Place, int]:
    """Number of cases that could have a label."""
    return {
        (bot, measure): sum(counts.get(measure, 0) for counts in strata.values())
        for bot, strata in review.sample.strata.items()
        for measure in review.measures
    }


def _conversations(review: Review, cases: Iterable[Drawn]) -> dict[_Place, int]:
    """Number of conversations that these cases are of, where any has several of them."""
    found: defaultdict[_Place, list[int]] = defaultdict(list)
    for case in cases:
        for measure in review.scored(case):
            found[group_of(review.case_of(case).bot), measure].append(review.conversation(case))
    groups = {place: groups_of(told, range(len(told))) for place, told in found.items()}
    return {place: len({*each}) for place, each in groups.items() if each is not None}


def _needed(review: Review, place: _Place, fewest: int) -> int:
    """How many cases of all bots have so many labels of this bot and measure, with those of earlier sheets."""
    bot, measure = place
    cases = {
        name: sum(max(counts.values()) for counts in strata.values())
        for name, strata in review.sample.strata.items()
    }
    before = [review.scored(case) for case in review.before if group_of(review.case_of(case).bot) == bot]
    left = cases[bot] - len(before)
    wanted = fewest - sum(measure in scored for scored in before)
    scored = min(left, _sizes(review)[place] - fewest + wanted)
    number = wanted
    if wanted > 0 and scored < left:
        number += bisect_left(
            range(wanted, left),
            True,
            key=lambda count: _certainty(wanted, left, scored, count) >= _CERTAINTY,
        )
    return ceil(max(0, number) * sum(cases.values()) / cases[bot])


def _certainty(wanted: int, cases: int, scored: int, count: int) -> float:
    """Probability that at least `wanted` of `count` random cases are `scored` ones (hypergeometric distribution)."""

    def ways(of: int, chosen: int) -> float:
        return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)

    fewest = max(0, count - (cases - scored))
    return 1 - sum(
        exp(ways(scored, hits) + ways(cases - scored, count - hits) - ways(cases, count))
        for hits in range(fewest, wanted)
    )


def _listed(review: Review, places: Mapping[_Place, int | None]) -> str:
    """Bots with their numbers; with the measures, unless it is all of them."""
    found: defaultdict[tuple[str, int | None], list[str]] = defaultdict(list)
    for (bot, measure), number in places.items():
        found[bot, number].append(SCORE_LABELS.get(measure, measure))
    return ", ".join(
        bot_words(bot)
        + ("" if number is None else f" {number:,}")
        + ("" if len(names) == len(review.measures) else f" ({', '.join(names)})")
        for (bot, number), names in found.items()
    )
