"""Answer correctness: how much the response says what the reference says."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from rag_eval.judge.calls import Call, gather, room_for
from rag_eval.metrics import ragas_prompts as prompts
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.case_verdicts import CaseVerdicts
from rag_eval.metrics.faithfulness import statements_of
from rag_eval.metrics.metric import (
    APART,
    DECLINES,
    NO_ANSWER,
    NO_REFERENCE,
    REPEATS,
    Metric,
    MetricInfo,
    left_out_evidence,
)
from rag_eval.metrics.offline.asking import NEGATING, beginning_yes_or_no, unspaced_yes_or_no, with_no_more
from rag_eval.metrics.offline.brief import (
    carrying,
    certain,
    declines_rightly,
    given_names,
    names_another,
    only_declines,
    small_stems,
    stance,
)
from rag_eval.metrics.offline.choices import function_words_chosen, takes_another_option
from rag_eval.metrics.offline.echo import without_echo, without_named_sources
from rag_eval.metrics.offline.grounding import WORD_WEIGHT, ground, said_by_function_words
from rag_eval.metrics.offline.kinds import expected_kind
from rag_eval.metrics.offline.scripts import count_words
from rag_eval.metrics.offline.wording import Likeness, find_exactly, find_similar, query_stems, raised
from rag_eval.metrics.omissions import fuller_reply, once_each, unmatched_statements
from rag_eval.records import Case, Evidence, FailureMode, Score
from rag_eval.texts.amounts import (
    differ,
    in_asked_powers,
    may_have_amount,
    may_have_rank,
    other_codes,
    restated,
)
from rag_eval.texts.quantities import (
    CURRENCIES,
    LENGTHS,
    MEASURE_STEMS,
    MONTHS,
    ONES,
    PERIODS,
    SIGNS,
    TIMES,
    WEEKDAYS,
)
from rag_eval.texts.signs import opposite_numbers, restated_signs
from rag_eval.texts.words import (
    NEGATION,
    STOP_WORDS,
    Reading,
    numbers,
    quote,
    read_claim,
    stem,
    stems_of,
)

_Reasoned = Sequence[tuple[str, str]]
"""Statements, each with a reason."""


class _AnswerCorrectness(Metric):
    """F1 of the statements of response and reference. 0 when only one side makes any, not applicable when none does."""

    name = "answer_correctness"

    def settle(self, case: Case) -> Score | None:
        if case.reference is None:
            return Score.not_applicable(self.name, NO_REFERENCE)
        return None if case.has_response else Score.scored(self.name, 0.0, "empty response")

    async def judge(self, case: Case) -> Score:
        reference = case.reference or ""
        (ours, of_ours), (theirs, of_theirs) = await gather(
            [statements_of(case, case.response), statements_of(case, reference)]
        )
        if settled := _one_sided(ours, theirs):
            return settled
        call = Call(
            task="answer_correctness.classification",
            messages=prompts.classification_prompt(case.query, ours, theirs, case.history),
            reply_type=replies.Classification,
            agrees_with={"response_statements": ours, "reference_statements": theirs},
            max_tokens=4096,
            room=room_for([*ours, *theirs]),
        )
        reply, missing = await fuller_reply(call, lambda reply: _left_out(ours, theirs, reply))
        hits, extra, lacking = (
            [(each.statement, each.reason) for each in once_each(found, sent)]
            for found, sent in ((reply.TP, ours), (reply.FP, ours), (reply.FN, theirs))
        )
        return _f1(hits, extra, lacking, [*of_ours, *of_theirs, *missing])


def _left_out(ours: Sequence[str], theirs: Sequence[str], reply: replies.Classification) -> list[str]:
    """Statements of the response and of the ground truth that the reply does not have.

    A statement of the response that agrees with the ground truth may stand for several of its statements.
    """
    hits, extra, missing = ([each.statement for each in found] for found in (reply.TP, reply.FP, reply.FN))
    return [
        *unmatched_statements(ours, [*hits, *extra]),
        *unmatched_statements(theirs, missing, hits, extra),
    ]


def _from_verdicts(case: Case, verdicts: CaseVerdicts) -> Score:
    ours, theirs = (verdicts.claims_of(side, case) for side in ("response", "ground_truth"))
    return _one_sided(ours, theirs) or _f1(
        [(text, "") for text, each in ours if each.in_other],
        [(text, each.reason) for text, each in ours if not each.in_other],
        [(text, "") for text, each in theirs if not each.in_other],
        [sentence for side in ("response", "ground_truth") for sentence in verdicts.passed_over(side, case)],
    )


def _one_sided(ours: Sequence[object], theirs: Sequence[object]) -> Score | None:
    """The score if the response or the ground truth makes no statement."""
    if ours and theirs:
        return None
    name = _AnswerCorrectness.name
    if not ours and not theirs:
        return Score.not_applicable(name, "neither the response nor the ground truth makes a statement")
    return Score.scored(name, 0.0, f"the {'ground truth' if ours else 'response'} makes no statement")


def _f1(hits: _Reasoned, extra: _Reasoned, missing: _Reasoned, left_out: Sequence[str]) -> Score:
    """`hits` and `extra`: statements of the response, in the ground truth or not; `missing`: not in the response."""
    f1 = 2 * len(hits) / (2 * len(hits) + len(extra) + len(missing)) if hits else 0.0
    kinds = (
        (hits, "statement", "in the ground truth", True),
        (extra, "statement", "not in the ground truth", False),
        (missing, "reference statement", "missing from the response", False),
    )
    evidence = tuple(
        Evidence(subject, statement, verdict, is_favourable, reason)
        for statements, subject, verdict, is_favourable in kinds
        for statement, reason in statements
    )
    evidence += left_out_evidence("statement", left_out)
    return Score.scored(_AnswerCorrectness.name, f1, evidence=evidence)


SHORT = 2
"""Up to so many words a reference is a name or a date: only what the response leaves out counts."""
LONG = 22
"""From so many words on it is a text: what the response adds counts fully. Between them it counts in proportion."""
ASKED_IN_SHORT, ASKED_IN_LONG = 0.9, 0.5
"""What a word of the query weighs in a short and in a long reference; any other weighs 1."""
MOST_GAIN = 1.4
"""The balance of what is found and what is added is at most so many times what is found."""
_MOST_WORDS_OF_A_SHORT_REFERENCE = 8
"""Content words. In a longer one every word counts."""
_WRONG_FACTOR = 0.4
"""What is left if the response has none of the numbers of a short reference, names another person, takes another option
of the query, or negates the reference."""
_MORE_OR_LESS = frozenset(
    stems_of("""
        more longer later less fewer earlier older younger mehr länger weniger später plus moins más menos più meno mais
        meer langer minder
    """)
)
"""Stems of what a negation makes a bound or "no longer" of."""
_KEY_SHARE = 0.5
"""What a response is worth that has the numbers of a short reference, or the names, as the query asks for either."""
YES_OR_NO_SHARE = 0.5
"""What a mere yes or no is worth if the reference says the same, and more."""
_HALF_WAY = 50
_MOST_LENIENCE = 2.0


class _OfflineAnswerCorrectness(_AnswerCorrectness):
    explanation: ClassVar[str] = (
        "Share of the reference's content words that the response contains. For a longer reference, what the response "
        "adds counts against it as well (F1), and a smaller share is enough for a high score."
    )

    def alike(self, case: Case) -> tuple[str, str] | None:
        reference = case.reference or ""
        answer = _answer(without_named_sources(case, reference=reference))
        settles = not answer or declines_rightly(answer, case) or _polar(reference, answer, case.query)
        return None if settles else (reference, answer)

    async def judge(self, case: Case) -> Score:
        case = without_named_sources(case, reference=case.reference or "")
        answer = _answer(case)
        if not answer:
            return Score.scored(self.name, 0.0, REPEATS)
        if declines_rightly(answer, case):
            seen = Evidence("reference", case.reference or "", "found", True, DECLINES)
            return Score.scored(self.name, 1.0, NO_ANSWER, evidence=(seen,))
        if polar := _polar(case.reference or "", answer, case.query):
            return polar
        reference, response = read_claim(case.reference or "").whole, read_claim(answer).whole
        apart = "" if answer == case.response else APART
        if not reference.content:
            return self._compare_every_word(reference, response, apart)
        length = count_words(reference.content)
        textual = min(1.0, max(0.0, (length - SHORT) / (LONG - SHORT)))
        if textual < 1:
            value, found = _of_words(reference, response, case.query)
        else:  # it has words enough
            value, found = 0.0, find_exactly(reference.stems, response.stems)
        evidence = [_reference_evidence(reference, found.missing, apart)]
        if textual:
            share = found.exactly().share_beside(query_stems(case.query), ASKED_IN_LONG)
            balance, extra = _balance(reference, response, share)
            value = lenient((1 - textual) * value + textual * balance, length)
            evidence.append(_response_evidence(response, extra))
        if (
            value
            and not response.stems <= {NEGATION}
            and reference.stems & response.stems <= NEGATING | {NEGATION}
            and only_declines(answer, case.query, case.chunks or (), case.reference or "")
        ):
            value *= _WRONG_FACTOR  # the "not" of "I do not know" is not that of "No."
        return Score.scored(self.name, value, evidence=tuple(evidence))

    def _compare_every_word(self, reference: Reading, response: Reading, apart: str) -> Score:
        """A reference of function words ("The Who") is compared by all of its words."""
        wanted = said_by_function_words(reference) or set(stems_of(reference.text))
        if not wanted:
            return Score.not_applicable(self.name, "the ground truth contains no words")
        found = find_similar(wanted, set(stems_of(response.text)))
        evidence = _reference_evidence(reference, found.missing, apart)
        return Score.scored(self.name, found.share, evidence=(evidence,))


def _polar(reference: str, answer: str, query: str) -> Score | None:
    """The score if the query is for yes or no and the reference says nothing else, or the answer says the opposite."""
    wanted = stance(reference, query)
    said = stance(answer, query) if wanted else None
    if not wanted or not said:
        return None
    is_opposite = wanted.affirms != said.affirms
    begins = any(beginning_yes_or_no(text)[0] is not None for text in (reference, answer))
    if not is_opposite and not begins and unspaced_yes_or_no(answer, query) is not None:
        return None  # two words of the query may differ
    if not is_opposite and not wanted.is_bare:
        return (
            _half_said(reference) if said.is_bare and beginning_yes_or_no(reference)[0] is not None else None
        )
    verdict = "contradicted" if is_opposite else "found"
    reason = "the response says the opposite" if is_opposite else ""
    seen = Evidence("reference", reference, verdict, not is_opposite, reason)
    return Score.scored(_AnswerCorrectness.name, float(not is_opposite), evidence=(seen,))


def _half_said(reference: str) -> Score:
    """The score of a mere yes or no if the reference says the same, and more."""
    seen = Evidence(
        "reference", reference, "only partly in the response", False, "the response says yes or no only"
    )
    return Score.scored(_AnswerCorrectness.name, YES_OR_NO_SHARE, evidence=(seen,))


def _of_words(reference: Reading, response: Reading, query: str) -> tuple[float, Likeness]:
    """0..1: how much the response says of what a reference that is no text says; and how its words are found."""
    asked = query_stems(query)
    wanted = _wanted(reference, response, query)
    given = _given(response, wanted, reference)
    chosen = function_words_chosen(response.text, query) if NEGATION not in response.stems else frozenset()
    if chosen and (right := function_words_chosen(reference.text, query)):
        wanted, given = wanted | right, given | chosen
    equal, extra, is_other = _amounts(reference, response, wanted, given)
    equal |= restated_signs(reference, (response,))
    if same := _in_asked_powers(reference, response, query):
        equal, is_other = equal | same, False
    given = given | equal if equal else given
    opposite = opposite_numbers(
        response, (reference,), query, small_stems(query), all_answer=True
    ) | other_codes(response.text, (reference.text,))
    given = given - opposite if opposite else given
    found = find_similar(wanted, given)
    value = found.share_beside(asked, ASKED_IN_SHORT)
    if (
        is_other
        or opposite
        or _lacks_number(wanted - asked, found.missing, reference, (response.stems, extra), query)
        or (found.missing and value and _is_of_another(response, reference, query))
        or takes_another_option(response, reference, query)
    ):
        value *= _WRONG_FACTOR
    elif _has_key(reference, given, query):
        value = max(value, _KEY_SHARE)
    return value * _WRONG_FACTOR if _negates(reference, response) else value, found


def _wanted(reference: Reading, response: Reading, query: str) -> AbstractSet[str]:
    """The words of a short reference that say something to the query: "1912" of "in the year 1912".

    Without the given names of whom it asks for if the response only has the family name.
    """
    if len(reference.content) > _MOST_WORDS_OF_A_SHORT_REFERENCE:
        return reference.stems
    light = small_stems(query)
    if missing := reference.stems - response.stems:
        units = frozenset() if query.isascii() else MEASURE_STEMS
        light |= missing & (carrying(query) | given_names(reference.text, query, (response.text,)) | units)
        light -= _replaced(missing, response.stems - reference.stems)
    return reference.stems - light or reference.stems


def _given(response: Reading, wanted: AbstractSet[str], reference: Reading) -> AbstractSet[str]:
    """The words that a response gives: its function words as well if a short reference has one as a name ("May")."""
    if len(reference.content) > _MOST_WORDS_OF_A_SHORT_REFERENCE or STOP_WORDS.isdisjoint(wanted):
        return response.stems
    return response.stems if reference.text.isupper() else response.stems | set(stems_of(response.text))


def _amounts(
    reference: Reading, response: Reading, wanted: AbstractSet[str], given: AbstractSet[str]
) -> tuple[AbstractSet[str], AbstractSet[str], bool]:
    """The wanted words of amounts of a short reference that the response writes in another way, with which words.

    And whether it has other amounts instead.
    """
    texts = reference.text, response.text
    if len(reference.content) > _MOST_WORDS_OF_A_SHORT_REFERENCE or not (missing := wanted - given):
        return frozenset(), frozenset(), False
    if not all(may_have_amount(text) or may_have_rank(text) for text in texts):
        return frozenset(), frozenset(), False
    equal = restated(reference.text, texts[1:], missing)
    extra = restated(response.text, texts[:1], response.stems - reference.stems)
    return equal, extra, differ(*texts)


def _in_asked_powers(reference: Reading, response: Reading, query: str) -> frozenset[str]:
    """Numbers of the reference that the response has, one of both in the millions that the query asks for."""
    theirs, said = (in_asked_powers(each.stems, query) for each in (reference, response))
    return frozenset(number for number, whole in theirs.items() if whole in response.stems) | (
        frozenset(said.values()) & reference.stems
    )


def _is_of_another(response: Reading, reference: Reading, query: str) -> bool:
    """Whether a response names another person than a short reference."""
    is_short = len(reference.content) <= _MOST_WORDS_OF_A_SHORT_REFERENCE
    return is_short and names_another(response.text, reference.text, query)


def _has_key(reference: Reading, given: AbstractSet[str], query: str) -> bool:
    """Whether all the numbers of a short reference are given, or its names, if the query asks for either."""
    kind = expected_kind(query)
    if kind is None or len(reference.content) > _MOST_WORDS_OF_A_SHORT_REFERENCE:
        return False
    key = (
        set(numbers(reference.stems)) if kind.is_number else certain((reference,), query) - small_stems(query)
    )
    return bool(key - query_stems(query)) and given >= key


def _negates(reference: Reading, response: Reading) -> bool:
    """Whether one of a short reference and the response negates a word of both."""
    if len(reference.content) > _MOST_WORDS_OF_A_SHORT_REFERENCE:
        return False
    shared = reference.stems & response.stems
    negated, other = (_negated(each) & shared for each in (reference, response))
    return negated != other


def _negated(text: Reading) -> set[str]:
    """The words behind a negation, or before one at the end; a no at the beginning answers, and negates none."""
    if beginning_yes_or_no(text.text)[0] is False:
        text = read_claim(beginning_yes_or_no(text.text)[1]).whole
    content = with_no_more(text.content)
    places = [place for place, word in enumerate(content) if word in NEGATING or word == NEGATION]
    has_bound = bool(places) and not _MORE_OR_LESS.isdisjoint(stems_of(text.text))
    return {word for place in places for word in _words_negated(content, place, has_bound)}


def _words_negated(content: Sequence[str], place: int, has_bound: bool) -> Sequence[str]:
    """The word behind a negation, or before one at the end: "open" of "no longer open", none of "no more than 12"."""
    behind = [word for word in content[place + 1 : place + 3] if not (has_bound and word in _MORE_OR_LESS)][
        :1
    ]
    if has_bound and behind and behind[0][0].isdigit():
        return ()
    return behind or content[place - 1 : place]


def _lacks_number(
    wanted: AbstractSet[str],
    missing: AbstractSet[str],
    reference: Reading,
    gives: tuple[AbstractSet[str], AbstractSet[str]],
    query: str,
) -> bool:
    """Whether a short reference has a number, a currency, a percent sign, a month or the like that the response lacks.

    A lack of all numbers counts if the query asks for a number or a date; one of several, a month, a weekday, a unit
    of time, and in a short response a number that is not asked for, only if it gives another one instead. `gives` are
    the words of the response, and those of them that do not count.
    """
    if not missing or len(wanted) > _MOST_WORDS_OF_A_SHORT_REFERENCE:
        return False
    own = set(numbers(wanted))
    given = gives[0] - gives[1] - query_stems(query)
    if own and not missing.isdisjoint(wanted & SIGNS):
        return True
    if _replaced(missing, given - wanted):
        return True
    if _codes(own & missing) and _codes(numbers(given - wanted)):
        return True
    kind = expected_kind(query)
    others = {each for each in set(numbers(given)) - own if not _may_be_afternoon(each, missing)}
    if kind is None or not kind.is_number:
        is_short = len(gives[0]) <= _MOST_WORDS_OF_A_SHORT_REFERENCE
        return is_short and bool(own & missing) and 0 < len(others) <= len(own & missing)
    if own.isdisjoint(missing):
        return not own and bool(others - {"1"}) and not ONES.isdisjoint(reference.stems)
    return own <= missing or bool(others)


def _may_be_afternoon(number: str, missing: AbstractSet[str]) -> bool:
    """Whether it may be one of the missing hours: "4" of "16"."""
    return number.isdecimal() and len(number) <= 2 and str(int(number) + 12) in missing


def _codes(listed: Iterable[str]) -> list[str]:
    """Those that have a letter: "b12"."""
    return [code for code in listed if code.isalnum() and not code.isdigit()]


def _replaced(missing: AbstractSet[str], given: AbstractSet[str]) -> frozenset[str]:
    """Those of the missing months, weekdays, units and currencies of which the response gives another one instead."""
    if _ANY_EXCLUSIVE.isdisjoint(missing):  # most often
        return frozenset()
    return frozenset().union(*(missing & names for names in _EXCLUSIVE if not names.isdisjoint(given)))


_EXCLUSIVE = (
    *(frozenset(map(stem, names)) for names in (MONTHS, WEEKDAYS)),
    TIMES.union(map(stem, PERIODS)),
    LENGTHS,
    CURRENCIES,
)
"""Stems of words of which an answer has one or another."""
_ANY_EXCLUSIVE = frozenset().union(*_EXCLUSIVE)


def _answer(case: Case) -> str:
    """What the response says besides repeating the query, unless the reference repeats it, too."""
    answer = without_echo(case.response, case.query)
    reference = case.reference or ""
    is_wanted = answer != case.response and without_echo(reference, case.query) != reference
    return case.response if is_wanted else answer


def lenient(share: float, length: float) -> float:
    """A share of a long reference on the scale of short ones: 0 and 1 stay, what is between them is raised.

    People call a response right that says less of a text than of a name, so the same value must mean the same.
    """
    return raised(share, min(max(0.0, length - SHORT) / _HALF_WAY, _MOST_LENIENCE))


def _balance(reference: Reading, response: Reading, recall: float) -> tuple[float, AbstractSet[str]]:
    """F1 of words and word pairs, at most MOST_GAIN times what is found; and what of the response is extra."""
    if reference.pairs:
        pairs = len(reference.pairs & response.pairs) / len(reference.pairs)
        recall = WORD_WEIGHT * recall + (1 - WORD_WEIGHT) * pairs
    found = ground(response, (reference,))
    both = found.share + recall
    return min(2 * found.share * recall / both, MOST_GAIN * recall) if both else 0.0, found.missing


def _reference_evidence(reference: Reading, missing: AbstractSet[str], apart: str) -> Evidence:
    reason = f"not in the response{apart}: {quote(reference, missing)}" if missing else ""
    return Evidence(
        "reference",
        reference.text,
        "only partly in the response" if missing else "found",
        not missing,
        reason,
    )


def _response_evidence(response: Reading, extra: AbstractSet[str]) -> Evidence:
    reason = f"not in the reference: {quote(response, extra)}" if extra else ""
    return Evidence(
        "response",
        response.text,
        "only partly in the reference" if extra else "in the reference",
        not extra,
        reason,
    )


INFO = MetricInfo(
    name="answer_correctness",
    about="Agreement of the response with the ground truth, 0 to 1.",
    weight=0.35,
    threshold=0.3,
    offline_threshold=0.48,
    embedding_threshold=0.52,
    failure=FailureMode.LOW_QUALITY,
    llm=_AnswerCorrectness,
    from_verdicts=_from_verdicts,
    offline=_OfflineAnswerCorrectness,
)
