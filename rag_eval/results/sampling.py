"""Which cases of a run people should label: a stratified random sample, and some suspicious cases next to it."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise, zip_longest
from statistics import stdev

from rag_eval.errors import InputError
from rag_eval.records import CaseResult, PairVerdict, Score
from rag_eval.results.looks import key_of_text
from rag_eval.tables.review_file import BETTER, pair_name

FEWEST_OF_STRATUM = 2
"""Cases that are drawn of each stratum at least."""
_MOST_PARTS = 3
"""Of a bot's cases by RQS: thirds."""
_NOISY = 0.15
"""Standard deviation of the samples of a score from which on it is suspicious."""
_APART = 0.5
"""Distance of two metrics' scores of a case from which on they disagree."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One case of the sample."""

    line: int
    """Of the case among all cases, counted from 0."""
    stratum: str
    """'' for a suspicious case, which is no part of the random sample."""
    inclusion: float | None
    """Probability that a case of the stratum is drawn; None for a suspicious case."""


@dataclass(frozen=True, slots=True)
class Sample:
    cases: tuple[Drawn, ...]
    """In the order of labelling: any beginning of it has about as many of each stratum."""
    strata: Mapping[str, Mapping[str, Mapping[str, int]]]
    """By bot and stratum: number of its cases with a score, by measure."""
    parts: int
    """Into how many parts by RQS each bot's cases were divided."""
    left: int
    """Cases of the strata that are neither in it nor in an earlier random sample."""


@dataclass(frozen=True, slots=True)
class _Stratum:
    bot: str
    name: str
    lines: tuple[int, ...]


def scores_of(result: CaseResult, measures: Sequence[str]) -> Mapping[str, float]:
    """The case's values of the measures that have one; a criterion that passed is 1."""
    scores: Mapping[str, Score] = {**result.scores, **result.further}
    found = {name: scores[name].value if name in scores else result.on_criterion(name) for name in measures}
    return {name: value for name, value in found.items() if value is not None}


def draw_sample(
    results: Sequence[CaseResult],
    measures: Sequence[str],
    cases: int,
    *,
    suspicious: float = 0.0,
    flags: Mapping[tuple[int, str], object] | None = None,
    drawn_before: frozenset[int] = frozenset(),
    chosen_before: frozenset[int] = frozenset(),
    strata_before: frozenset[str] = frozenset(),
    seed: int = 0,
) -> Sample:
    """Draw `cases` cases: stratified by bot and third of RQS, in proportion, at least two of each stratum.

    Cases without a score of any of the `measures` are left out. A share `suspicious` (0..1) is chosen outside the
    random sample: flagged, noisy or disagreeing cases. Halves, or whole bots, take the place of thirds where there are
    too few cases; cases without RQS are a stratum of their own.

    `drawn_before` are the lines of earlier random samples, which are not drawn again. `chosen_before` are those of
    earlier suspicious cases. They are not chosen again, but can be drawn: the cases on which the judge errs would
    otherwise leave the random sample. `strata_before` are the names of the strata of earlier samples: only
    samples of the same strata can be joined.
    Raises InputError if there is nothing to draw, or too little for two cases of each bot.
    """
    usable = [line for line, result in enumerate(results) if scores_of(result, measures)]
    if not usable:
        raise InputError("no case of the run has a score that people could label")
    odd = _suspicious(results, usable, measures, flags or {})
    others = [line for line in odd if line not in drawn_before | chosen_before]
    undrawn = sum(line not in drawn_before for line in usable)
    number = _random_cases(cases, suspicious, len(others), undrawn)
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, nothing secret
    parts, strata = _strata(results, usable, number, strata_before)
    spread = _spread(strata, number, others, cases, drawn_before, chance)
    sizes: dict[str, dict[str, Mapping[str, int]]] = {}
    for stratum in strata:
        sizes.setdefault(stratum.bot, {})[stratum.name] = _scored(results, stratum, measures)
    return Sample(tuple(spread), sizes, parts, undrawn - len(spread))


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two responses to a query, and what the judge prefers."""

    one: CaseResult
    other: CaseResult
    verdict: PairVerdict
    """On `one` next to `other`."""

    @property
    def bots(self) -> str:
        """Name of the pair of bots."""
        return pair_name(self.one.case.bot, self.other.case.bot)


def pairs_of(results: Sequence[CaseResult]) -> list[ComparedPair]:
    """All pairs that the judge compared, without the controls."""
    cases = {(result.case.row, result.case.bot): result for result in results}
    return [
        ComparedPair(result, cases[result.case.row, verdict.other], verdict)
        for result in results
        for verdict in result.pairs
        if verdict.other != result.case.bot
    ]


def draw_pairs(
    pairs: Sequence[ComparedPair],
    count: int,
    *,
    suspicious: float = 0.0,
    drawn_before: frozenset[int] = frozenset(),
    chosen_before: frozenset[int] = frozenset(),
    seed: int = 0,
) -> Sample:
    """Draw `count` pairs: of every two bots a simple random sample of their queries, in proportion, at least two.

    A query that is repeated counts once. Pairs that need no judge, those with equal or empty responses, and pairs that
    it failed to judge are left out. A share `suspicious` (0..1) is chosen outside the random sample: pairs that
    differ from RQS, the largest gap first, then those that depend on the order. `drawn_before` and `chosen_before` are
    as in `draw_sample`, of numbers of `pairs`. Raises InputError if there is nothing to draw, or too little.
    """
    found: dict[str, dict[str, int]] = {}
    for line, pair in enumerate(pairs):
        if pair.verdict.orders:
            found.setdefault(pair.bots, {}).setdefault(key_of_text(pair.one.case.question), line)
    if not found:
        raise InputError("no pair of the run was compared by the judge")
    strata = [
        _Stratum(
            bots,
            _name_of(f"{pairs[line].one.case.row}\t{bots}" for line in lines.values()),
            (*lines.values(),),
        )
        for bots, lines in found.items()
    ]
    usable = [line for stratum in strata for line in stratum.lines]
    odd = [line for line in usable if pairs[line].verdict.differs_from_rqs or pairs[line].verdict.is_flipped]
    odd.sort(
        key=lambda line: (
            not pairs[line].verdict.differs_from_rqs,
            -abs(pairs[line].verdict.rqs_gap or 0),
            line,
        )
    )
    others = [line for line in odd if line not in drawn_before | chosen_before]
    undrawn = sum(line not in drawn_before for line in usable)
    number = _random_cases(count, suspicious, len(others), undrawn)
    needed = sum(min(FEWEST_OF_STRATUM, len(stratum.lines)) for stratum in strata)
    if number < needed and not drawn_before:
        raise InputError(_too_few(number, f"{len(strata)} pairs of bots", needed, "pair of bots"))
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, nothing secret
    spread = _spread(strata, number, others, count, drawn_before, chance)
    sizes = {stratum.bot: {stratum.name: {BETTER: len(stratum.lines)}} for stratum in strata}
    return Sample(tuple(spread), sizes, 1, undrawn - len(spread))


def _spread(
    strata: "Sequence[_Stratum]",
    number: int,
    others: Sequence[int],
    cases: int,
    drawn_before: frozenset[int],
    chance: random.Random,
) -> list[Drawn]:
    """`number` random cases of the strata, and of the `others` as many as are left of the `cases`, in one order."""
    chosen = [
        _drawn(stratum, share, drawn_before, chance)
        for stratum, share in zip(strata, _allocated(strata, number, drawn_before), strict=True)
    ]
    taken = {case.line for of_stratum in chosen for case in of_stratum}
    spread = _interleaved(chosen, chance)
    aside = [line for line in others if line not in taken][: cases - number]
    for line in aside:
        spread.insert(chance.randint(0, len(spread)), Drawn(line, "", None))
    return spread


def _random_cases(cases: int, suspicious: float, odd: int, count: int) -> int:
    """How many of the `cases` are drawn at random out of `count`, of which `odd` are suspicious.

    It does not depend on the draw, since more cases after a draw of many suspicious ones would bias the sample. If too
    few suspicious cases are expected to be left for their share, it is as many as fill the sheet with them on average.
    """
    number = cases - round(cases * suspicious)
    if number >= count or odd * (count - number) >= (cases - number) * count:
        return number
    return count if odd >= count else min(count, (cases - odd) * count // (count - odd))


def _strata(
    results: Sequence[CaseResult], usable: Sequence[int], cases: int, before: frozenset[str]
) -> tuple[int, list[_Stratum]]:
    """Those of earlier samples, or as many parts of each bot as leave two cases for each."""
    bots: dict[str, list[int]] = {}
    for line in usable:
        bots.setdefault(results[line].case.bot, []).append(line)
    divided = {
        parts: [
            _named(bot, lines, results)
            for bot, of_bot in bots.items()
            for lines in _parts(results, of_bot, parts)
        ]
        for parts in range(_MOST_PARTS, 0, -1)
    }
    for parts, strata in divided.items():
        if before >= {stratum.name for stratum in strata}:
            return parts, strata
    for parts, strata in divided.items():
        if sum(min(FEWEST_OF_STRATUM, len(stratum.lines)) for stratum in strata) <= cases:
            return parts, strata
    needed = sum(min(FEWEST_OF_STRATUM, len(stratum.lines)) for stratum in strata)
    raise InputError(_too_few(cases, f"{len(bots)} bots", needed, "group of cases"))


def _too_few(cases: int, whom: str, needed: int, of_each: str) -> str:
    return (
        f"--cases: {cases} randomly drawn cases are too few for {whom}; at least {needed} are needed, "
        f"{FEWEST_OF_STRATUM} of each {of_each}"
    )


def _parts(results: Sequence[CaseResult], lines: Sequence[int], parts: int) -> list[list[int]]:
    """A bot's cases by RQS in parts of about the same size; those without RQS apart where there are enough of them."""
    ranked = [line for line in lines if results[line].rqs is not None]
    others = [line for line in lines if results[line].rqs is None]
    if len(ranked) < FEWEST_OF_STRATUM or len(others) < FEWEST_OF_STRATUM or parts == 1:
        # Too few for a stratum of their own: with the lowest, which a failed metric goes with most often.
        ranked, others = others + ranked, []
    ranked.sort(key=lambda line: (results[line].rqs if results[line].rqs is not None else -1.0, line))
    count = max(1, min(parts, len(ranked) // FEWEST_OF_STRATUM))
    edges = [len(ranked) * number // count for number in range(count + 1)]
    found = [ranked[first:last] for first, last in pairwise(edges)]
    return [*found, others] if others else found


def _named(bot: str, lines: Sequence[int], results: Sequence[CaseResult]) -> _Stratum:
    """The name says nothing about the scores, and is the same only for the same cases."""
    cases = (results[line].case for line in sorted(lines))
    return _Stratum(bot, _name_of(f"{case.row}\t{case.bot}" for case in cases), tuple(lines))


def _name_of(members: Iterable[str]) -> str:
    return (
        "s" + sha256("\n".join(members).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    )  # no program's number


def _allocated(strata: Sequence[_Stratum], cases: int, before: frozenset[int]) -> list[int]:
    """To the bots in proportion to their cases, and so to the strata of each; at least two of each stratum, unless
    there are earlier samples and fewer cases. What is not left of one, after those drawn before, is of the others."""
    sizes: dict[str, list[int]] = {}
    left: dict[str, list[int]] = {}
    for stratum in strata:
        sizes.setdefault(stratum.bot, []).append(len(stratum.lines))
        left.setdefault(stratum.bot, []).append(len({*stratum.lines} - before))
    least = (
        FEWEST_OF_STRATUM if cases >= sum(min(FEWEST_OF_STRATUM, len(each.lines)) for each in strata) else 0
    )
    fewest = [[min(least, most) for most in of_bot] for of_bot in left.values()]
    bots = _in_proportion(
        [sum(of_bot) for of_bot in sizes.values()],
        list(map(sum, fewest)),
        list(map(sum, left.values())),
        cases,
    )
    return [
        number
        for of_bot, at_least, at_most, share in zip(sizes.values(), fewest, left.values(), bots, strict=True)
        for number in _in_proportion(of_bot, at_least, at_most, share)
    ]


def _in_proportion(sizes: Sequence[int], fewest: Sequence[int], most: Sequence[int], cases: int) -> list[int]:
    """As many of each, between the fewest and the most; `cases` is at least the sum of the fewest."""
    if cases >= sum(most):
        return list(most)
    shares = _shares(sizes, most, cases)
    numbers = [
        min(limit, max(least, int(share))) for limit, least, share in zip(most, fewest, shares, strict=True)
    ]

    def lacks(index: int) -> tuple[float, int]:
        return shares[index] - numbers[index], -index

    while sum(numbers) < cases:
        numbers[max((each for each, limit in enumerate(most) if numbers[each] < limit), key=lacks)] += 1
    while sum(numbers) > cases:
        numbers[min((each for each, least in enumerate(fewest) if numbers[each] > least), key=lacks)] -= 1
    return numbers


def _shares(sizes: Sequence[int], most: Sequence[int], cases: int) -> list[float]:
    """`cases`, fewer than the sum of the most, in proportion to the sizes, but the most where that is more."""
    full: set[int] = set()
    while True:
        rest = cases - sum(most[each] for each in full)
        total = sum(size for each, size in enumerate(sizes) if each not in full)
        fuller = {each for each, size in enumerate(sizes) if rest * size > most[each] * total} | full
        if fuller == full:
            return [most[each] if each in full else rest * size / total for each, size in enumerate(sizes)]
        full = fuller


def _drawn(stratum: _Stratum, number: int, before: frozenset[int], chance: random.Random) -> list[Drawn]:
    """With the cases drawn before, which are labelled as well, the sample is a random one of the stratum."""
    left = [line for line in stratum.lines if line not in before]
    inclusion = min(1.0, (number + len(stratum.lines) - len(left)) / len(stratum.lines))
    return [Drawn(line, stratum.name, inclusion) for line in chance.sample(left, number)]


def _interleaved(chosen: Sequence[Sequence[Drawn]], chance: random.Random) -> list[Drawn]:
    """One of each stratum, then one of each again: who stops early has labelled about as many of each."""
    spread = []
    for round_ in zip_longest(*chosen):
        cases = [case for case in round_ if case is not None]
        chance.shuffle(cases)
        spread += cases
    return spread


def _suspicious(
    results: Sequence[CaseResult],
    lines: Sequence[int],
    measures: Sequence[str],
    flags: Mapping[tuple[int, str], object],
) -> list[int]:
    """The cases that are flagged, noisy or disagreeing, the most suspicious first."""

    def suspicion(line: int) -> tuple[bool, float]:
        result = results[line]
        scores = scores_of(result, measures).values()
        samples = [score.samples for score in result.scores.values() if len(score.samples) > 1]
        noise = max(map(stdev, samples), default=0.0)
        distance = max(scores) - min(scores)
        return (
            bool(flags.get((result.case.row, result.case.bot))),
            (noise if noise >= _NOISY else 0.0) + (distance if distance >= _APART else 0.0),
        )

    found = [(suspicion(line), line) for line in lines]
    found.sort(key=lambda each: (not each[0][0], -each[0][1], each[1]))
    return [line for suspected, line in found if any(suspected)]


def _scored(results: Sequence[CaseResult], stratum: _Stratum, measures: Sequence[str]) -> Mapping[str, int]:
    counts = dict.fromkeys(measures, 0)
    for line in stratum.lines:
        for name in scores_of(results[line], measures):
            counts[name] += 1
    return counts
