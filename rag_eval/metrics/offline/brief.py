"""What a short answer says together with its query: "Yes." to "Is parking free?", "Goethe" to "Who wrote Faust?".

It leaves out what is understood, and carries words that say nothing new: "it costs", "in the year". Words of a long
answer are taken as they are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from rag_eval.metrics.offline.asking import (
    ALLOWING,
    CLOSED,
    COURTESY,
    FORBIDDING,
    NEGATING,
    OPEN,
    OPENING_VERBS,
    OPENING_YES_OR_NO,
    PERMITTING,
    WITHOUT,
    YES_OR_NO,
    asking_of,
    beginning_stance,
    beginning_yes_or_no,
    ends_asking,
    has_opposite,
    negates_unspaced,
    polar_stems,
    small_words_in,
    small_words_of,
    unspaced_yes_or_no,
    wants_yes_or_no,
    with_no_more,
)
from rag_eval.metrics.offline.grounding import NOTHING_UNDERSTOOD, Understood, sentences_in
from rag_eval.metrics.offline.kinds import asks_for_person, expected_kind
from rag_eval.metrics.offline.refusal import is_refusal, refers_elsewhere
from rag_eval.metrics.offline.scripts import count_words, is_pair
from rag_eval.metrics.offline.wording import PREFIX, find_similar, query_stems
from rag_eval.records import Case
from rag_eval.texts.amounts import may_have_amount, restated
from rag_eval.texts.quantities import MONTHS, WEEKDAYS
from rag_eval.texts.words import (
    NEGATION,
    STOP_WORDS,
    Reading,
    has_words,
    names,
    normalise,
    numbers,
    read,
    read_all,
    read_claim,
    sentences,
    stem,
    stems_of,
    words,
)

SHORT = 8
"""Content words. In a text of so many, a missing word that is understood does not count at all."""
LONG = 14
"""In a text of so many, it counts like any other; between them in proportion."""
_LONGEST = 200
"""Characters. A longer text is not short."""


def is_brief(text: str) -> bool:
    """Whether a text is so short that it may be an answer of a few words."""
    return len(text) <= _LONGEST


@lru_cache(maxsize=2)  # two metrics look at a response
def understood(text: str, query: str, others: tuple[str, ...]) -> Understood:
    """How a text is compared with the others if it is short, and the query asks for something.

    Words of the query and words that carry an answer are not compared if the text says more than these.
    """
    if not is_brief(text) or ends_asking(text):
        return NOTHING_UNDERSTOOD
    claim = read_claim(text)
    own = claim.whole
    small = small_stems(query)
    length = count_words([word for word in own.content if word not in small] if small else own.content)
    weight = min(1.0, max(0.0, (length - SHORT) / (LONG - SHORT)))
    if weight == 1:
        return NOTHING_UNDERSTOOD
    light = _said_by_asking(query) | given_names(text, query, others)
    missing = own.stems.difference(*(each.stems for each in read_all(others)))
    equal = restated(text, others, missing) if missing else frozenset[str]()
    if not light:
        return Understood(restated=equal)
    asked = polar_stems(query)
    if not asked:
        light |= _of_one_root(own.stems, query)
    if not text.isascii():
        light |= reaching(own.stems, query, others)
    light |= _titles(query)
    new = own.stems - light
    if not new or _is_of_another_kind(text, own, query):
        return Understood(restated=equal)
    return Understood(light, certain(claim.sentences, query), equal, new <= asked, weight)


def _is_of_another_kind(text: str, own: Reading, query: str) -> bool:
    """Whether the query asks for a number or a date, and the text has none."""
    kind = expected_kind(query)
    if kind is None or not kind.is_number or numbers(own.stems):
        return False
    return not may_have_amount(text) and not kind.is_given(text, query)


def certain(parts: Sequence[Reading], query: str) -> frozenset[str]:
    """Stems of numbers, codes, names and names of days; of whom a query asks for, also at the beginning."""
    found = set(
        chain.from_iterable(chain(numbers(part.stems), _DAYS & part.stems, *names(part)) for part in parts)
    )
    for part in parts if asks_for_person(query) else ():
        for (piece, stems), after in pairwise(
            zip((*part.pieces, ""), (*part.stems_by_piece, ()), strict=True)
        ):
            is_name = piece[:1].isupper() and (after[0][:1].isupper() or after[0] in _PARTICLES)
            if is_name and _titles(query).isdisjoint(stems):
                found.update(stems)
    return frozenset(found)


@lru_cache(maxsize=2)
def _titles(query: str) -> frozenset[str]:
    """Stems of titles, if the query asks for a person; "M." is a man in French, and an initial elsewhere."""
    if not asks_for_person(query):
        return frozenset()
    return _TITLES | {"m"} if "qui" in _words_of_query(query)[1] else _TITLES


def _of_one_root(stems: AbstractSet[str], query: str) -> frozenset[str]:
    """Those that begin like a part of a word of the query: "opening" to "opens", "Gründung" to "gegründet"."""
    asked = " ".join(query_stems(query))
    return frozenset(
        each for each in stems if len(each) >= PREFIX and each.isalpha() and each[:PREFIX] in asked
    )


def reaching(stems: AbstractSet[str], query: str, others: Sequence[str]) -> frozenset[str]:
    """Pairs of characters that reach from a word of the others into one of the query, or into one that says nothing.

    Those that the others have are none: they are found.
    """
    pairs = list(filter(is_pair, stems))
    if not pairs:
        return frozenset()
    said = _CARRYING_CHARACTERS.union(query)
    known = said.union(*others)
    return frozenset(
        pair
        for pair in pairs
        if known.issuperset(pair) and not said.isdisjoint(pair) and not any(pair in other for other in others)
    )


@lru_cache(maxsize=2)
def _said_by_asking(query: str) -> frozenset[str]:
    """Stems of the words of a query that asks for something, and of those that may carry the answer to it.

    What a query for yes or no says is not understood: it may be wrong.
    """
    if polar_stems(query):
        return carrying(query) | YES_OR_NO | COURTESY | _OPENING
    asking = asking_of(query)
    if not asking or wants_yes_or_no(asking) or not _is_one_question(query, asking):
        return frozenset()
    return frozenset(map(stem, _words_of_query(query)[0])) | carrying(query)


@lru_cache(maxsize=2)
def carrying(query: str) -> frozenset[str]:
    """Stems of words that may carry the answer: small words of the query's language, and by the expected kind."""
    kind = expected_kind(query)
    listed = kind.carrying if kind else _OF_CHOICES if asking_of(query) == ["which"] else frozenset()
    return small_stems(query) | listed


@lru_cache(maxsize=2)
def small_stems(query: str) -> frozenset[str]:
    """Stems of the small words of the query's language but negations; none for English, whose texts have none left."""
    return frozenset(map(stem, small_words_in(query) - NEGATING))


def given_names(name: str, query: str, others: Iterable[str]) -> frozenset[str]:
    """Stems of the given names of whom the query asks for, if one of the others has the family name without any."""
    parts = name.strip(_MARKS).split(maxsplit=_MOST_NAMES)
    if not 2 <= len(parts) <= _MOST_NAMES or not asks_for_person(query):
        return frozenset()
    small = [part for part in parts if not part[0].isupper()]
    is_name = parts[-1] not in small or len(small) == len(parts)  # in small letters, any may be a name
    if not is_name or not _PARTICLES | set(parts if len(small) == len(parts) else ()) >= set(small):
        return frozenset()
    if not STOP_WORDS.isdisjoint(map(str.lower, parts)):
        return frozenset()
    asked = frozenset(_words_of_query(query)[0])
    if not asked.isdisjoint(words(parts[-1])):
        return frozenset()
    own = frozenset(words(name))
    known = own | asked | _FUNCTION_WORDS | _PARTICLES | _titles(query)
    if not any(_has_family_name(parts[-1], other, own, known) for other in others):
        return frozenset()
    return frozenset(stems_of(" ".join(parts[:-1]))) - frozenset(stems_of(parts[-1]))


def says_not_given(response: Reading, query: str, chunks: Iterable[str], reference: str) -> bool:
    """Whether a response of one sentence only says that what the query asks for is not stated or known.

    Not to a query for yes or no, and not if the ground truth denies something, or a sentence of the chunks with half of
    its words does: "The cause of the disease is unknown." may be what they say.
    """
    if not is_brief(response.text):
        return False
    written = normalise(response.text)
    match = _NOT_GIVEN.search(written) or _NOT_GIVEN_FIRST.match(written)
    if match is None or len(sentences(response.text)) > 1 or polar_stems(query):
        return False
    own = set(stems_of(f"{written[: match.start()]} {written[match.end() :]}")) - _STANDING_FOR_IT
    own -= small_stems(query)
    said = find_similar(own, query_stems(query)) if own else None
    if said is None or said.missing:
        return False
    likely = [one for chunk in chunks for one in sentences_in(chunk) if 2 * len(own & one.stems) >= len(own)]
    return not any(_DENIAL.search(normalise(text)) for text in (reference, *(one.text for one in likely)))


def declines(response: Reading, query: str, chunks: Iterable[str], reference: str) -> bool:
    """Whether a response declines to answer. One that tells with regret what the texts say does not."""
    if says_not_given(response, query, chunks, reference):
        return True
    return is_refusal(response) and not _tells_with_regret(response.text, query, (*chunks, reference))


def _tells_with_regret(text: str, query: str, others: Iterable[str]) -> bool:
    """Whether an apology is followed by a yes or no, or by something that others say."""
    apology = _APOLOGY.match(text)
    said = [read(sentence) for sentence in sentences(text[apology.end() :])] if apology else []
    if not said or any(map(is_refusal, said)):
        return False
    if stance(text, query):
        return True
    known = [[sentence.stems for sentence in sentences_in(other)] for other in others]
    known += [[one | next_one for one, next_one in pairwise(its)] for its in known]
    return any(
        _is_told(one.stems, stems) for one in said if len(one.stems) > 1 for its in known for stems in its
    )


def _is_told(stems: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Whether others have most of a sentence's stems, and deny as it does."""
    is_denied = [NEGATION in each or not NEGATING.isdisjoint(each) for each in (stems, others)]
    return is_denied[0] == is_denied[1] and find_similar(stems, others).share >= _MOSTLY_TOLD


def only_declines(text: str, query: str, chunks: Iterable[str], reference: str = "") -> bool:
    """Whether a short text does nothing but decline to answer, or tell whom else to ask."""
    claim = read_claim(text)
    content = claim.whole.content
    if (
        len(content) > 4 * _MOST_WORDS_OF_A_MERE_REFUSAL
        or count_words(content) > _MOST_WORDS_OF_A_MERE_REFUSAL
    ):
        return False
    said = [one for one in claim.sentences if not refers_elsewhere(one)]
    return bool(said) and all(declines(one, query, chunks, reference) for one in said)


@lru_cache(maxsize=2)  # the metrics and bots of a row often share all of them
def has_no_answer(reference: str | None, query: str, chunks: tuple[str, ...]) -> bool:
    """Whether a ground truth says that there is no answer: "The documents do not tell.", but not "None.".

    What the chunks say as well is an answer: "The age of the stone cannot be determined.".
    """
    text = _APOLOGY.sub("", reference or "")
    if read_claim(text).whole.stems <= {NEGATION}:
        return False
    is_bare = _is_bare_refusal(text)
    if not is_bare and not (only_declines(text, query, chunks) and _is_about_knowing(text, query)):
        return False
    said = [read(sentence) for sentence in sentences(text)]
    if not is_bare and _answers(said, query, ()):
        return False
    known = [sentence.stems for chunk in chunks for sentence in sentences_in(chunk)]
    if is_bare:
        return not any(_is_told(said[0].stems, other) for other in known)
    return not all(_is_told_by(one.stems, known) for one in said)


def _is_bare_refusal(text: str) -> bool:
    """Whether it says in few words, all by themselves, that something is not stated: "Not mentioned."."""
    return is_brief(text) and _NOT_STATED.fullmatch(normalise(text)) is not None


def _is_about_knowing(text: str, query: str) -> bool:
    """Whether a text that declines speaks of knowing or telling, and the query does not ask whether a source tells."""
    if polar_stems(query) and _ANY_SOURCE.search(normalise(query)):
        return False
    written = normalise(text)
    if not _LETTER.search(written):
        return True
    return beginning_yes_or_no(text)[0] is None and _KNOWING.search(written) is not None


def _is_told_by(stems: AbstractSet[str], known: Iterable[AbstractSet[str]]) -> bool:
    """Whether one of others says the same. "I do not know." is told by none."""
    return (len(stems - {NEGATION}) > 1 or NEGATION not in stems) and any(
        _is_told(stems, other) for other in known
    )


def declines_rightly(answer: str, case: Case) -> bool:
    """Whether a response declines to answer a query to which the ground truth says that there is no answer."""
    chunks = case.chunks or ()
    if not has_no_answer(case.reference, case.query, chunks):
        return False
    said = [read(sentence) for sentence in sentences(_APOLOGY.sub("", answer))]
    if not _is_bare_refusal(answer) and not any(
        declines(one, case.query, chunks, "") for one in (read_claim(answer).whole, *said)
    ):
        return False
    return not _answers(said, case.query, chunks)


def _answers(said: Sequence[Reading], query: str, chunks: tuple[str, ...]) -> bool:
    """Whether one of the sentences of a text that declines answers all the same: "I don't know. It costs 5 euros.".

    It does with a number (or a name, if the query asks for one) that the query and the chunks do not have, or with
    words of the query in a sentence that neither declines nor offers help. What the chunks say of other matters is no
    answer.
    """
    readings = [sentence for chunk in chunks for sentence in sentences_in(chunk)]
    asked = query_stems(query)
    known = frozenset(stems_of(query)).union(asked, *(one.stems for one in readings))
    for one in said:
        parts = map(read, filter(None, _BETWEEN_CLAUSES.split(_NUMBER_OF_SOURCE.sub("", one.text))))
        if any(not known.issuperset(numbers(part.stems)) and not is_refusal(part) for part in parts):
            return True
        if is_refusal(one) or _SAYS_NO_FACT.search(normalise(one.text)):
            continue
        if asks_for_person(query) and certain((one,), query) - known:
            return True
        is_about = bool(asked) and find_similar(asked, one.stems).share > _MOST_UNASKED
        if (
            is_about
            and not says_not_given(one, query, chunks, "")
            and not any(_is_told(one.stems, other.stems) for other in readings)
        ):
            return True
    return False


def names_another(text: str, reference: str, query: str) -> bool:
    """Whether a text has half of the name of whom the query asks for, and another one in place of the other half.

    "Edmund Finch" or "Peter Hale" for "Edmund Hale"; a title, an initial and another spelling of a name are none.
    """
    parts = _name_in(reference, query) if asks_for_person(query) else ()
    if not parts:
        return False
    given, family = words(parts[0]), words(parts[-1])
    said = set(words(text))
    if said.issuperset(given) == said.issuperset(family):
        return False
    known = {*words(reference), *words(query), *_PARTICLES, *_FUNCTION_WORDS}
    return any(_is_another(*each, known, query) for each in _in_place_of(given, family, text.split()))


def _in_place_of(given: list[str], family: list[str], pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pieces with a capital letter right behind the given name or right before the family name, and what they replace.

    In "die Architektin Hale" none: behind an article, the piece is a noun.
    """
    for before, piece, after in zip(["", *pieces], pieces, pieces[1:], strict=False):
        if piece[-1] in _ENDS or not (piece[0].isupper() and after[0].isupper()):
            continue
        if words(piece) == given:
            yield after, "".join(family)
        elif words(after) == family and before.lower() not in _ARTICLES:
            yield piece, "".join(given)


def _is_another(part: str, name: str, known: AbstractSet[str], query: str) -> bool:
    """Whether a part of a name is another one: no known word, title, word like one of the query, or other spelling."""
    if not known.isdisjoint(words(part)) or _of_one_root(frozenset(stems_of(part)), query):
        return False
    return not _is_title(part, query) and not _is_respelled(part, name)


def _name_in(reference: str, query: str) -> Sequence[str]:
    """The parts of the only name of several parts in a text, but for those of the query and of places."""
    parts = reference.strip(_MARKS).split()
    if 2 <= len(parts) <= _MOST_NAMES and all(part[0].isupper() or part in _PARTICLES for part in parts):
        return parts
    small = STOP_WORDS | small_words_of(words(query))
    runs: list[list[str]] = [[]]
    for before, part in pairwise(["", *parts]):
        is_name = part[0].isupper() and not small.issuperset(words(part)) and not _is_title(part, query)
        if is_name and (runs[-1] or before not in _BEFORE_PLACES):
            runs[-1].append(part.strip(_MARKS))
        if (not is_name and part not in _PARTICLES) or part[-1] in _ENDS[1:]:
            runs.append([])
    asked = set(words(query))
    several = [run for run in runs if len(run) > 1 and not asked.issuperset(words(" ".join(run)))]
    return several[0] if len(several) == 1 else ()


def _is_title(part: str, query: str) -> bool:
    """Whether a part of a name is a title or an office, or ends with one as "Bundeskanzler" does."""
    own = stems_of(part)
    if not (_titles(query) | _NO_NAMES).isdisjoint(own):
        return True
    return any(one.endswith(title) for one in own for title in _NO_NAMES if len(title) > _SHORTEST_TITLE)


def _is_respelled(piece: str, name: str) -> bool:
    """Whether a piece of a text may be a name in another spelling, or its initial: "Braun" and "Brown"."""
    own = "".join(words(piece))
    if len(own) < 2:
        return True
    likeness = SequenceMatcher(None, own, name).ratio()
    return likeness >= (_LEAST_LIKENESS_OF_NAMES if own[:1] == name[:1] else _LEAST_LIKENESS_AT_THE_END)


def in_short(target: str, query: str, chunks: Sequence[str]) -> str | None:
    """What to look for in chunks: the family name of whom the query asks for, nothing more for a yes or no."""
    said = stance(target, query)
    if said and said.is_bare:
        return None
    return target.split()[-1] if given_names(target, query, chunks) else target


def _has_family_name(family: str, text: str, own: AbstractSet[str], known: AbstractSet[str]) -> bool:
    """Whether the text has it without the given name of another person before it, or a longer name."""
    pieces = text.split()
    wanted = stems_of(family)
    spelled, written = normalise(family), normalise(text)
    if any(one[:-1] in spelled and one[:-1] not in written for one in wanted):  # told fast
        return False
    for place, piece in enumerate(pieces):
        if stems_of(piece) != wanted:
            continue
        after = pieces[place + 1 : place + 2] if piece[-1] not in _ENDS else []
        beside = [*_names_before(pieces[:place], known, is_lower=text.islower()), *after]
        if not any(_is_other_name(each, own, known, is_lower=text.islower()) for each in beside):
            return True
    return False


def _names_before(pieces: Sequence[str], known: AbstractSet[str], *, is_lower: bool) -> Iterator[str]:
    """The words right before a family name that may be of the same name; in a text without capitals, one."""
    for place in range(len(pieces) - 1, -1, -1):
        piece = pieces[place]
        is_abbreviated = _INITIAL.fullmatch(piece) or known >= set(words(piece))
        if piece[-1] in _ENDS and not is_abbreviated:
            return
        if (
            piece in _PARTICLES and not is_lower
        ):  # "Drama von Goethe" is no name, "by August von Goethe" has one
            before = pieces[max(0, place - 2) : place]
            if len(before) > 1 and not before[0][0].isupper() and before[0] not in _PARTICLES | {"by"}:
                return
        elif not is_lower and not piece[0].isupper():
            return
        yield piece
        if is_lower:
            return


def _is_other_name(piece: str, own: AbstractSet[str], known: AbstractSet[str], *, is_lower: bool) -> bool:
    """Whether it may be a part of a name that is not known, nor an initial of a known one, or the other way round."""
    if not (is_lower or piece[0].isupper()):
        return False
    return not all(
        word in known or any(1 in (len(word), len(other)) and word[0] == other[0] for other in own)
        for word in words(piece)
    )


# Yes or no


def _is_one_question(query: str, asking: Sequence[str]) -> bool:
    """Whether it has a question mark or begins with an asking word, and is one sentence: a chat says more."""
    return (ends_asking(query) or _words_of_query(query)[0][:1] == (*asking,)) and len(sentences(query)) == 1


class Stance(NamedTuple):
    """What a text says to a query for yes or no."""

    affirms: bool
    is_bare: bool
    """It says nothing else than words of the query."""
    is_word: bool = False
    """It says nothing else but small words: "Yes, you can."."""


@lru_cache(maxsize=4)
def stance(text: str, query: str) -> Stance | None:
    """None for another query, and for a text that says neither."""
    asked = polar_stems(query)
    if not asked:
        return None
    if not text.isascii() and is_brief(text) and (affirms := unspaced_yes_or_no(text, query)) is not None:
        return Stance(affirms, is_bare=True, is_word=True)
    affirms, rest = beginning_stance(text)
    if affirms is None:
        text = _APOLOGY.sub("", text)
        affirms, rest = beginning_stance(text)
    if affirms is not None:
        content = _content(words(rest), query) - COURTESY if is_brief(rest) else None
        is_bare = content is not None and content <= asked | {NEGATION}
        empty = (
            PERMITTING
            if affirms
            else PERMITTING | _DENYING | (frozenset() if asked.isdisjoint(OPEN) else CLOSED)
        )
        is_word = not has_words(rest) or (content is not None and content <= empty)
        return Stance(affirms, is_bare or is_word, is_word)
    if not is_brief(text) or ends_asking(text):
        return None
    own = words(text)
    if not own or own[0] in OPENING_VERBS or own == [*_words_of_query(query)[0]]:
        return None
    content = _content(own, query)
    if own[0] in _RESTRICTING and not content - {stem(own[0])} <= asked:
        return None
    if content <= PERMITTING | {NEGATION} and not OPENING_YES_OR_NO.isdisjoint(own):
        return Stance(NEGATION not in content, is_bare=True, is_word=True)  # "It does."
    roots = content | _without_ge(content, query)
    share = _share_of_leave(find_similar(asked, roots).share, content, asked) if content else 0.0
    if share <= _MOST_UNASKED or len(sentences(text)) > 1:
        return None
    return Stance(not _negates(text, query, asked), is_bare=content <= asked | {NEGATION})


def polar_support(affirms: bool, query: str, chunks: tuple[str, ...]) -> tuple[float, bool, AbstractSet[str]]:
    """How far (0..1) a sentence of the chunks says the query's words, if it says them; and which words it lacks.

    The flag says whether it says the opposite: it negates them, and the answer is yes, or the other way round.
    """
    asked = polar_stems(query)
    best = (0.0, False, asked)
    for chunk in chunks:
        before: AbstractSet[str] = frozenset()
        for sentence in read_claim(chunk).sentences:
            goes_on = not _PRONOUNS.isdisjoint(words(sentence.pieces[0]))
            stems = before | sentence.stems if goes_on else sentence.stems
            before = stems
            opposite = set[str]()
            if not query.isascii() and has_opposite(sentence.text, query):
                opposite = {each for each in asked if has_opposite(sentence.text, each)}
            found = find_similar(asked, stems | opposite | _without_ge(stems, query))
            share = _share_of_leave(found.share, sentence.stems, asked) if found.missing else found.share
            if share > best[0]:
                is_opposite = _negates(sentence.text, query, asked) == affirms
                best = (share, is_opposite, found.missing)
    return best


def _share_of_leave(share: float, stems: AbstractSet[str], asked: AbstractSet[str]) -> float:
    """0..1: the share of the query's words that a text has, if one of its words stands for a missing one."""
    return min(1.0, share + 1 / len(asked)) if share and _speaks_of_leave(stems, asked) else share


def _speaks_of_leave(stems: AbstractSet[str], asked: AbstractSet[str]) -> bool:
    """Whether one of the words stands for one of the query's: "allowed" for "bring", "closed" for "open"."""
    return not stems.isdisjoint(ALLOWING | _DENYING - {NEGATION}) or (
        not asked.isdisjoint(OPEN) and not stems.isdisjoint(CLOSED)
    )


@lru_cache(maxsize=2)
def _words_of_query(query: str) -> tuple[tuple[str, ...], AbstractSet[str]]:
    """Its words, and the small words of its language."""
    own = words(query)
    return tuple(own), small_words_of(own)


def _content(own: Sequence[str], query: str) -> set[str]:
    """Stems of those of a text's words that say something."""
    _, small = _words_of_query(query)
    return {stem(word) for word in own if word not in STOP_WORDS and word not in small} - _OPENING


def _without_ge(stems: AbstractSet[str], query: str) -> set[str]:
    """What is behind "ge" of German and Dutch participles: "parkt" of "geparkt", which is found by "parken"."""
    _, small = _words_of_query(query)
    if small.isdisjoint(_WITH_PARTICIPLES):
        return set()
    return {each[2:] for each in stems if each.startswith("ge") and len(each) > PREFIX + 2}


def _negates(text: str, query: str, asked: AbstractSet[str]) -> bool:
    """Whether a clause negates or forbids the asked words; of several clauses, one that has all of them tells.

    "There is no fee, and parking is available" negates nothing that "Is parking available?" asks.
    """
    if not query.isascii() and not text.isascii() and _negates_unspaced(text, asked):
        return True
    clauses = list(_clauses(text))
    if len(clauses) > 1:
        clauses = [one for one in clauses if not find_similar(asked, set(stems_of(one))).missing] or clauses
    return any(_clause_negates(one, query, asked) for one in clauses)


def _clauses(text: str) -> Iterator[str]:
    """The text cut at marks and words such as "and", if there is a verb that may open a question on either side."""
    clause: list[str] = []
    has_verb = False
    for part in _BETWEEN_CLAUSES.split(text):
        is_clause = _has_verb(part)
        if has_verb and is_clause:
            yield " ".join(clause)
            clause = []
        clause.append(part)
        has_verb = has_verb or is_clause
    yield " ".join(clause)


def _has_verb(text: str) -> bool:
    return not OPENING_YES_OR_NO.isdisjoint(words(text)) or _OTHER_VERB.search(text) is not None


def _clause_negates(clause: str, query: str, asked: AbstractSet[str]) -> bool:
    """Whether a negation is before one of the asked words, with at most one word between them; or it is forbidden.

    A negation before a word that allows, such as "not allowed", is one of all that is asked, as "closed" is of "open".
    """
    asking, small_words = _words_of_query(query)
    small = ((STOP_WORDS | small_words) - NEGATING) | WITHOUT.intersection(asking)
    own = [word for word in with_no_more(words(clause)) if word not in small]
    if any(word in FORBIDDING and stem(word) not in asked for word in own):
        return True
    is_open = not asked.isdisjoint(OPEN)
    for place, word in enumerate(own):
        if is_open and stem(word) in CLOSED:
            near = {stem(each) for each in own[place + 1 : place + 3] or own[max(0, place - 3) : place]}
            if len(find_similar(asked, near).missing) < len(asked):
                return True
        if word in NEGATING or stem(word) == NEGATION:
            following = {stem(each) for each in own[place + 1 : place + 3]}
            if word not in WITHOUT and not following.isdisjoint(ALLOWING):
                return True
            following |= _without_ge(following, query)
            if following and len(find_similar(following, asked).missing) < len(following):
                return True
    return False


def _negates_unspaced(text: str, asked: AbstractSet[str]) -> bool:
    """Whether the clause of a text in Chinese or Japanese that has most of the asked words negates them."""
    pairs = list(filter(is_pair, asked))
    if not pairs:
        return False
    clause = max(_CLAUSE_ENDS.split(text), key=lambda each: sum(pair in each for pair in pairs))
    return negates_unspaced(clause) != has_opposite(clause, " ".join(pairs))


_MOSTLY_TOLD = 0.75
"""The share of the stems of a sentence that another one has which says the same."""
_APOLOGY = re.compile(
    r"""\A\s*(?:
        (?:(?:i|we)['’]?\s?(?:a?m|are|re)\s)?(?:so\s|very\s|really\s)?(?:sorry|afraid)
        |(?:(?:i|we|my|our)\s)?(?:sincere(?:ly)?\s)?apologi(?:es|[sz]e)|unfortunately|regrettably
        |(?:es\s)?tut\s(?:mir|uns)\s(?:sehr\s)?leid|leider|entschuldigung
        |(?:je\ssuis\s|nous\ssommes\s)?désolée?s?|malheureusement|je\sregrette
        |lo\s(?:siento|lamento)|disculpe|desafortunadamente|lamentablemente|mi\sdispiace|sono\sspiacente|purtroppo
        |desculpe|lamento|sinto\smuito|infelizmente|helaas|het\sspijt\sme|przykro\smi|przepraszam|niestety
        |к\sсожалению|извините|мне\sжаль|простите|üzgünüm|maalesef|عذر[اً]*|آسف|للأسف
        |क्षमा\sकरें|माफ़\sकरें|माफ\sकीजिए|मुझे\sखेद\sहै|죄송(?:합니다|하지만|해요)?만?|미안합니다|xin\slỗi|rất\stiếc|(?:mohon\s)?maaf
        |[很非]?常?抱歉|对不起|對不起|申し訳(?:ありません|ございません|ない)(?:です)?が?|すみませんが?|残念ながら|ขออภัย|ขอโทษ
    )(?:\b|(?<=[^\x00-\u04ff]))[\s,;:.!，。、！–—-]*(?:(?:but|aber|mais|pero|ma|mas|maar|ale|но)\b\s*)?(?=\S)""",
    re.IGNORECASE | re.VERBOSE,
)
"""At the beginning, before a yes or no ("I'm sorry, but no.") or a fact."""
_SOURCES = (
    r"(?:context|documents?|texte?s?|passages?|articles?|sources?|excerpts?|dokument\w*|kontext|unterlagen|quellen?"
    r"|contexte|extraits?|contexto|textos?|documentos?|fuentes?|contesto|test[oi]|document[oi]|font[ei]|tekst|bron(?:nen)?)"
)
_NOT_STATED = re.compile(
    r"\W*(?:(?:(?:the )?(?:answer|information|data)(?: is| was)? )?not(?: (?:mentioned|specified|stated|found|given"
    r"|provided|available|disclosed|indicated|included|known|answerable))"
    r"|(?:(?:dazu|hierzu|daruber) gibt es )?keine (?:angaben?|informationen?)|k\.? ?a"
    r"|nicht (?:angegeben|erwahnt|genannt|spezifiziert|bekannt|vorhanden)|unbekannt"
    r"|non (?:mentionn|indiqu|precis|specifi|communiqu)ee?s?|inconnue?s?"
    r"|no (?:se )?(?:menciona|especifica|indica)(?:d[oa]s?)?|no (?:disponible|consta)|desconocid[oa]s?"
    r"|non (?:(?:e|viene) )?(?:menzionat|specificat|indicat|riportat)[oaie]|sconosciut[oaie]"
    r"|nao (?:mencionad|especificad|informad|indicad)[oa]s?|desconhecid[oa]s?"
    r"|niet (?:vermeld|genoemd|gespecificeerd|bekend|gevonden)|onbekend|geen informatie beschikbaar"
    r"|nie (?:podano|okreslono|wspomniano)|brak (?:danych|informacji)|не (?:указано|упоминается|известно)|неизвестно"
    r"|(?:the )?answer is not(?= in )|(?:insufficient|not enough) (?:context|information|data)"
    r"|記載なし|不明|未提及|未说明|未知"
    rf")(?: (?:in|im|dans|en|nel|na|no)(?: \w+){{0,2}} {_SOURCES})?\W*"
)
"""In normal form: a whole text that says so in few words."""
_ANY_SOURCE = re.compile(rf"\b{_SOURCES}\b")
_LETTER = re.compile("[a-z]")
_KNOWING = re.compile(
    r"\b(?:know|idea|sure|certain|aware|clear|unclear|unknown|silent|nothing|sa(?:y|id)|state|tell|told|answer|unanswer|inform"
    r"|data|detail|mention|specif|provid|giv|found|find|includ|contain|discuss|address|cover|indicat|explain|determin|locat"
    r"|available|context|insufficient|confirm|n/?a\b|none\b"
    r"|wei(?:ss|ß)|wissen|ahnung|angab|angegeb|auskunft|sicher|sagen|sagt|steht|erwahn|genannt|nennt|enthalt|beantwort"
    r"|hervor|unbekannt|daten|hinweis|aufgefuhrt|beschrieben|ersichtlich"
    r"|sa(?:is|it)|di(?:t|sent)\b|repon|mentionn|indiqu|preci|trouv|fourni|donne|connais|dispose|inconnu"
    r"|se\b|respon|contest|dato|encontr|encuentr|encuen|conozc|dec?ir|dic|especific|proporcion|menciona|indica|descono|figura"
    r"|so\b|rispo|trov|menzion|fornisc|dire|sapp|riport|sei\b|diz|consig|forne"
    r"|weet|vermeld|genoemd|gegevens|vind|antwoord|beantwoord|wiem|odpowied|znalaz|podan|okresl"
    r"|bilmiyor|bilgi|yanıt|cevap|belirt|biet|thong tin|tra loi|tim|tahu|jawab|menjawab|menemukan|disebutkan|inform)",
)
"""In normal form: beginnings of words of knowing, telling and finding, in the languages with Latin letters."""
_NUMBER_OF_SOURCE = re.compile(
    rf"\b{_SOURCES}\W+\d+|(?<!\d)\d+\W+{_SOURCES}\b|\b(?:update\w*|knowledge)\W+(?:\w+\W+){{0,3}}\d{{4}}\b",
    re.IGNORECASE,
)
"""How many sources there are, which one, and of which year."""
_SAYS_NO_FACT = re.compile(
    rf"\?|\b(?:{_SOURCES}|please|contact|ask|help|feel free|check|visit|refer|information|informationen|bitte|wenden"
    r"|fragen|helfen|hilfe|veuillez|contacte[rz]|aider?|informations|por favor|consulte|contacto|ayuda\w*|informacion"
    r"|contatt\w+|aiut\w+|informazioni|neem|helpen|informatie)\b"
)
"""In normal form: words of a sentence that asks back, offers help, or speaks of the sources."""
_RESTRICTING = frozenset(
    words("only nur lediglich seul seuls seule seules uniquement solo solamente únicamente apenas alleen")
)
"""At the beginning of what is neither yes nor no: "Only guide dogs are allowed."."""
_BETWEEN_CLAUSES = re.compile(
    r"[,;:–—]\s+(?:(?:and|but|so|und|aber|et|mais|y|pero)\s)?"
    r"|\s(?:and|but|so|yet|while|whereas|although|though|und|aber|doch|während|obwohl|et|mais|donc|y|pero)\s",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"\b(?:(?:it|there|that|he|she)['’]s|cannot|est|ont|y a)\b|\w['’](?:re|ve|ll)\b", re.IGNORECASE
)
_CLAUSE_ENDS = re.compile("[，、,；;]")
_WITH_PARTICIPLES = frozenset(("nicht", "het"))
"""A small word of each language whose participles begin with "ge"."""
_PRONOUNS = frozenset(
    words("it they he she this these those er sie es diese dieser dieses il elle ils elles ce cela")
)
"""At the beginning of a sentence, which then goes on about what the one before it is about."""
_MOST_WORDS_OF_A_MERE_REFUSAL = 16
"""Content words; a longer one mostly says something of the matter as well."""
_MOST_UNASKED = 0.5
"""A text that has more of a query for yes or no answers it, without saying yes or no."""
_OPENING = frozenset(map(stem, OPENING_YES_OR_NO))
_DENYING = frozenset(map(stem, FORBIDDING)) | {NEGATION}
_OF_CHOICES = frozenset(("one", "ones", "come"))
"""Stems of what may stand for words of the query: "the blue one", "it comes in blue"."""
_CARRYING_CHARACTERS = frozenset("的是在有了于於为為共约約从從到和与與名人はがをにでとものすまいら")
"""Of Chinese and Japanese: characters of words that say nothing new."""
_MOST_NAMES = 5
_DAYS = frozenset(map(stem, MONTHS | WEEKDAYS))
_TITLES = frozenset(
    map(
        stem,
        words(
            "mr mrs ms miss dr prof professor herr frau mme mlle monsieur madame sr sra señor señora dra doctor doctora"
        ),
    )
)
_MARKS = " .,;:!?\"'“”"
_PARTICLES = frozenset(words("von van de da di la le der den del dos du zu bin ibn al"))
_NO_NAMES = frozenset(
    map(
        stem,
        words("""
            president king queen prince princess emperor pope bishop saint sir lord lady captain general judge senator
            officer reverend father mother brother sister uncle aunt detective sergeant colonel major admiral governor
            chancellor minister mayor director professor doctor coach author architect engineer
            actually probably possibly perhaps maybe apparently presumably originally
            präsident präsidentin könig königin kaiser papst bischof richter richterin kanzler kanzlerin ministerin
            stürmer stürmerin torwart
            bürgermeister bürgermeisterin direktor direktorin architekt architektin ingenieur ingenieurin trainer
            président présidente roi reine empereur pape évêque juge ministre maire directeur directrice architecte
            presidente presidenta rey reina papa obispo juez ministro ministra alcalde alcaldesa directora arquitecto
        """),
    )
)
"""Stems of words that stand before a family name and are often written with a capital letter."""
_SHORTEST_TITLE = 5
"""Letters above which a word may end with a title: not Rabbath with "bath"."""
_ARTICLES = frozenset(words("the der die das den dem ein eine einen einem le la un une el una"))
_BEFORE_PLACES = frozenset(words("in at near from to im bei aus nach en dans de"))
_ENDS = ".,;:!?"
_FUNCTION_WORDS = frozenset(word for word in STOP_WORDS if len(word) > 1)
"""Without letters that may be an initial."""
_INITIAL = re.compile(r"[^\W\d_]\.")
_LEAST_LIKENESS_OF_NAMES, _LEAST_LIKENESS_AT_THE_END = 0.6, 0.8
"""If they begin alike, as "Braun" and "Brown", and if not, as "Gaddafi" and "Qaddafi"."""
_NOT_GIVEN = re.compile(
    r"(?:\b(?:(?:is|are|was|were|has|have)(?:n't| not)|: not)(?: been)?(?: explicitly| specifically| clearly)?"
    r" (?:stated|specified|mentioned|indicated|disclosed|known)"
    r"|\b(?:is|are|was|were|remains?) (?:unknown|unclear|unspecified)"
    r"|\b(?:ist|sind|wird|werden|wurden?)(?: leider)?"
    r" (?:nicht (?:angegeben|genannt|erwahnt|bekannt|vermerkt|ersichtlich)|unbekannt)"
    r"|\b(?:n'est|ne sont|n'a|n'ont) pas (?:ete )?(?:mentionn|indiqu|precis|specifi|connu|communiqu)\w*"
    r"|\b(?:est|sont) inconnue?s?"
    r"|\bno (?:esta|estan|es|son|ha sido|han sido) (?:indicad|especificad|mencionad|conocid)\w*"
    r"|\b(?:es|son) desconocid[oa]s?)\W*$"
)
_NOT_GIVEN_FIRST = re.compile(r"(?:no se (?:indica|menciona|especifica|conoce|sabe)n?|se desconoce)\b")
"""In normal form: what a sentence ends or begins with that says so of the rest of it."""
_STANDING_FOR_IT = (
    STOP_WORDS
    | frozenset(map(stem, STOP_WORDS))
    | frozenset(
        map(
            stem,
            words("""
                number name date exact total amount identity value
                anzahl zahl name datum genaue genauer | nombre nom date exact exacte | número nombre fecha exacto exacta
            """),
        )
    )
)
"""Stems that stand for what a query asks for: "the number of employees"."""
_DENIAL = re.compile(
    r"\b(?:not?|never|nobody|nothing|none|neither|cannot|un(?:known|clear|certain|specified|disclosed|resolved|solved)"
    r"|myster\w+|disput\w+|debated|lost|open|anon[iy]m\w*|ungeklart|umstritten|offen|verloren|discut\w*|ignor\w*|nicht|kein\w*|nie(?:mand)?|unbekannt|unklar|pas|jamais|aucune?|inconnue?s?|nunca|nadie|ningun\w*|desconoc\w+)\b|n't\b"
)
