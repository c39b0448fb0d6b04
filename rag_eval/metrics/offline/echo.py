"""What a response says besides repeating the query: a question that is repeated answers nothing.

An echo is told by its form, because an honest answer uses the words of the query, too. It is a clause that says
nothing new and asks: the query itself, or its words with its asking word ("how long you may keep a book"), with a
question mark, or next to words that speak of a question ("you asked") or lead into one ("when it comes to"). A
statement ("a loan is four weeks long"), a relative clause ("Goethe, who wrote Faust, …") and a short heading ("Hours:
9 to 5") are none.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from rag_eval.metrics.offline.asking import (
    ANNOUNCING,
    OPENING_VERBS,
    SPEAKING,
    SPEAKING_STEMS,
    SURROUNDING,
    asking_of,
    asks_whether,
    places_of_speaking,
    polar_stems,
    says_yes_or_no,
    small_words_of,
    unspaced_speaking,
    wants_yes_or_no,
    without_unspaced_announcing,
)
from rag_eval.metrics.offline.scripts import count_words, is_unspaced
from rag_eval.metrics.offline.wording import find_similar, query_stems
from rag_eval.records import Case
from rag_eval.texts.source_lists import asks_for_sources, names_sources, without_sources
from rag_eval.texts.words import (
    STOP_WORDS,
    WRITTEN_WORD,
    Reading,
    has_words,
    normalise,
    read,
    read_claim,
    read_sentences,
    sentences,
    stem,
    stems_of,
    words,
)

_LEAST_REPEATED = 0.7
"""Share of a question's words, small ones included, from which on a clause in other words repeats the question."""
_MOST_NEW = 0.5
"""Share of new content in a clause that has the asking word and stands next to "you asked"."""
_LONG = 4
"""Words. A shorter query without an asking word may well be the subject of an honest sentence."""
_MOST_WORDS_BEHIND = 5
"""A longer answer that begins with yes or no says itself what it is about."""
_LEAST_OF_PART = 0.125
"""Share of the query's content words that a sentence of it must have to be looked for."""


class _Part(NamedTuple):
    """The query or a sentence of it, as far as it tells fast that a response does not repeat it."""

    text: str
    content: AbstractSet[str]
    written: str
    """Stems of the words that carry content, in order, between spaces."""


class _Question(NamedTuple):
    """A sentence of the query, or all of it."""

    stems: AbstractSet[str]
    """Of all words."""
    written: str
    """The same in order, between spaces."""
    letters: str
    """The text in normal form, without anything between its words."""
    asks: bool
    """Whether its words ask. With a question mark only, it may read like a statement."""
    is_long: bool


class _Query(NamedTuple):
    questions: Sequence[_Question]
    stems: AbstractSet[str]
    small: AbstractSet[str]
    asking: Sequence[str]
    n_speaking: int
    """Words that speak of a question, if the query is about one: "What did she ask?"."""


class _Clause(NamedTuple):
    """What is between two marks."""

    start: int
    end: int
    before: str
    """The marks and the white space before it; empty next to a verbatim echo without any."""
    after: str
    verbatim: _Question | None
    """What it repeats word for word."""
    stems: Sequence[str]
    is_empty: bool
    """Only small words, and words that announce a topic or speak of a question."""
    new: float
    """0..1: share of its content that the query does not have."""
    announces: bool
    speaks: bool
    """Of a question."""
    asks: bool
    """It has an asking word of the query."""
    reports: bool
    """To a query about a question, it says which: "She asked what it costs"."""
    has_verb: bool
    """Of those that open a question, and so join a subject to what is said of it in a statement."""

    @property
    def has_question_mark(self) -> bool:
        return _QUESTION_MARK.match(self.after) is not None

    @property
    def is_quoted(self) -> bool:
        """Not as a title is, behind which the sentence goes on."""
        is_closed = _OPENED.search(self.before) is not None and _CLOSED.match(self.after) is not None
        return is_closed and self.is_ended

    @property
    def is_ended(self) -> bool:
        return self.after.strip(f"{_QUOTES} ") != ""

    @property
    def ends_sentence(self) -> bool:
        """With a question mark, but not one that is quoted."""
        return not _SENTENCE_ENDS.isdisjoint(_QUOTED_QUESTION_MARK.sub("", self.after))

    @property
    def is_title(self) -> bool:
        is_heading = self.is_quoted and "\n" in self.after
        return (
            ":" in self.after
            or "：" in self.after
            or is_heading
            or _PARAGRAPH_END.match(self.after) is not None
        )


def without_named_sources(case: Case, *, reference: str = "") -> Case:
    """The case with a response without the sources that it names at its end or in brackets.

    The same case if there are none, if the query asks for sources, or if `reference` names some, too.
    """
    rest = without_sources(case.response)
    if rest == case.response or asks_for_sources(case.query) or names_sources(reference):
        return case
    return replace(case, response=rest)


@lru_cache(maxsize=2)
def without_echo(response: str, query: str) -> str:
    """The response without what only repeats the query; empty if nothing else is left.

    An echo within a sentence leaves "…". A response without an echo is returned as it is. So is a repeated query with
    little more than a yes or no behind it, because both together are a statement: "Is parking free? Yes."
    """
    rest, place = "", 0
    for span in _suspects(response, query):
        asked = _read_query(query)
        for start, end, left in _cuts(_clauses(response, span, asked), asked):
            rest += response[place:start] + left
            place = end
    if not place:
        return response
    rest = (rest + response[place:]).strip()
    return response if _completes(rest, _read_query(query)) else rest if has_words(rest) else ""


def _completes(rest: str, asked: _Query) -> bool:
    """Whether the rest only says yes or no to the query."""
    is_yes_or_no = wants_yes_or_no(asked.asking) and says_yes_or_no(rest)
    return is_yes_or_no and count_words(words(rest)) <= _MOST_WORDS_BEHIND


def _suspects(response: str, query: str) -> Iterable[tuple[int, int]]:
    """Start and end of the sentences that may hold an echo, neighbours together. Told fast: most often none.

    With less than a quarter of the query's words, a response is not relevant, whether it repeats them or not.
    """
    whole, said = read_claim(response)
    asked = query_stems(query)
    n_shared = len(asked & whole.stems)
    if 4 * n_shared < len(asked) or (2 * n_shared < len(asked) and not _has_several(query)):
        return ()
    parts = [part for part in _parts(query) if 2 * len(part.content & whole.stems) >= len(part.content)]
    if len(said) > 1:
        written = _joined(whole.content)
        if any(part.written in written and _letters(part.text) in _letters(response) for part in parts):
            return ((0, len(response)),)  # it may be word for word in several sentences or lines
    suspects = [any(_is_suspect(sentence, part) for part in parts) for sentence in said]
    return _spans(said, suspects, response) if any(suspects) else ()


def _is_suspect(text: Reading, part: _Part) -> bool:
    """Whether most of its words are in the text, and with them something that makes a question of them."""
    if 2 * len(part.content & text.stems) < len(part.content):
        return False
    speaking = SPEAKING_STEMS & text.stems
    if speaking and not speaking <= part.content:
        return True
    if not text.text.isascii() and unspaced_speaking(text.text):
        return True
    is_asking = any(mark in text.text for mark in _QUESTION_MARKS)
    asking = () if is_asking else asking_of(part.text)
    if wants_yes_or_no(asking) and asks_whether(text.text):
        if len(SURROUNDING & text.stems) > 1:
            return True
        is_asking = True
    if not (is_asking or asking or (part.content <= text.stems and part.written in _joined(text.content))):
        return False
    written = normalise(text.text)
    if asking and not any(_has_word(written, word) for word in asking):
        return False
    stems = _stems(part.text)
    # Without its last letter, most words are found in their other forms, too.
    n_found = sum([one[: -1 if len(one) > 4 else None] in written for one in stems])
    return n_found >= _LEAST_REPEATED * len(stems)


def _has_word(text: str, word: str) -> bool:
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        if is_unspaced(word) or not (text[place - 1 : place].isalnum() or text[end : end + 1].isalnum()):
            return True
        place = text.find(word, end)
    return False


@lru_cache(maxsize=2)
def _stems(text: str) -> frozenset[str]:
    """Those of all words; of plain letters the words themselves, which are found faster."""
    return frozenset(_LETTERS.findall(text.lower()) if text.isascii() else stems_of(text))


@lru_cache(maxsize=2)
def _parts(query: str) -> list[_Part]:
    """The query, and of several sentences those with a share of its content, with one word only if they ask."""
    asked = query_stems(query)
    whole = _Part(query, asked, _joined(read(query).content))
    if not _has_several(query):
        return [whole]
    parts = [_Part(one.text, one.stems & asked, _joined(one.content)) for one in read_sentences(query)]
    parts = [one for one in parts if len(one.content) >= _LEAST_OF_PART * len(asked)]
    parts = [whole, *(one for one in parts if len(one.content) > 1 or asking_of(one.text))]
    by_text = {(one.text, one.written): one for one in parts}  # one line may be in it a thousand times
    return list(by_text.values())


def _has_several(query: str) -> bool:
    """Whether a sentence may end before the last word. Linear, however many marks are in a row."""
    end = _SENTENCE_END.search(query)
    last = _LAST_CHARACTER.search(query) if end else None
    return end is not None and last is not None and end.start() < last.start()


def _spans(said: Sequence[Reading], suspects: Sequence[bool], text: str) -> Iterator[tuple[int, int]]:
    start = stop = 0
    was_suspect = False
    for sentence, is_suspect in zip(said, suspects, strict=True):
        is_suspect |= was_suspect and sentence.text[0] in _QUOTES  # behind the question mark of a quotation
        if was_suspect and not is_suspect:
            yield start, next(_BEHIND.finditer(text, stop)).end()
        place = text.find(sentence.text, stop)
        if place >= 0:
            stop = place + len(sentence.text)
        else:
            place = max(stop, text.find(sentence.pieces[0], stop))
            for piece in sentence.pieces:
                found = text.find(piece, stop)  # a number may be spelled with a space
                stop = found + len(piece) if found >= 0 else stop
        if is_suspect and not was_suspect:
            start = place
        was_suspect = is_suspect
    if was_suspect:
        yield start, len(text)


@lru_cache(maxsize=2)
def _read_query(query: str) -> _Query:
    texts = sentences(query)
    every = list(map(words, texts))
    questions = list(map(_read_question, texts, every))
    if len(texts) > 1:  # the whole is never a statement
        whole = _read_question(query, list(chain.from_iterable(every)))
        questions.append(whole._replace(asks=True))
    asking = [word for text in texts for word in _asking_of_all(text)]
    stems = frozenset[str]().union(*(one.stems for one in questions))
    small = STOP_WORDS | small_words_of(chain.from_iterable(every))
    return _Query(questions, stems, small, asking, sum(map(_count_speaking, texts, every)))


def _asking_of_all(text: str) -> Sequence[str]:
    """Its asking words, but for one that only begins a clause of a query for yes or no: "Can I pay when I leave?"."""
    asking = asking_of(text)
    return () if asking and polar_stems(text) and not wants_yes_or_no(asking) else asking


def _count_speaking(text: str, own: Sequence[str]) -> int:
    """How many words speak of a question, if the sentence asks about one: "What did she ask?", "Did she ask …?".

    In "I want to ask what it costs", they only lead into the query itself.
    """
    places = places_of_speaking(text, own)
    asking = asking_of(text)
    if not places:
        return 0
    opens = not OPENING_VERBS.isdisjoint(own[:1]) and _FIRST_PERSON.isdisjoint(own)
    is_about = opens or any(word in own and own.index(word) < places[-1] for word in asking)
    return len(places) if is_about else 0


def _read_question(text: str, own: Sequence[str]) -> _Question:
    asks = bool(asking_of(text)) or not OPENING_VERBS.isdisjoint(own[:1])
    stems = list(map(stem, own))
    is_long = count_words(own) >= _LONG
    return _Question(frozenset(stems), _joined(stems), _letters(text), asks, is_long)


def _joined(stems: Iterable[str]) -> str:
    return f" {' '.join(stems)} "


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(normalise(text)))


def _clauses(response: str, span: tuple[int, int], asked: _Query) -> Iterator[_Clause]:
    begin, stop = span
    verbatim = list(_verbatim(response, span, asked))
    hidden, shown = "", begin
    for start, end, _ in verbatim:  # the marks within it are none
        hidden += response[shown:start] + _HIDING * (end - start)
        shown = end
    hidden += response[shown:stop]
    questions = {start: question for start, _, question in verbatim}
    edges = [(edge, edge) for start, end, _ in verbatim for edge in (start, end)]
    marks = [(begin + match.start(), begin + match.end()) for match in _GAP.finditer(hidden)]
    gaps = _merged(sorted([*edges, *marks]), response)
    for (opened, start), (end, closed) in pairwise([(begin, begin), *gaps, (stop, stop)]):
        text = response[start:end]
        if WRITTEN_WORD.search(text):
            start += len(text) - len(text.lstrip())
            after = response[end:closed] if end < len(response) else "\n"
            yield _clause(text.strip(), start, response[opened:start], after, questions.get(start), asked)


def _merged(gaps: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The gaps, one for those without a word between them."""
    found: list[tuple[int, int]] = []
    for start, end in gaps:
        if found and not WRITTEN_WORD.search(text, found[-1][1], start):
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _verbatim(response: str, span: tuple[int, int], asked: _Query) -> Iterator[tuple[int, int, _Question]]:
    """Where a sentence of the query is word for word, whatever is between the words; in order."""
    found = list(WRITTEN_WORD.finditer(response, *span))
    written = [_letters(match[0]) for match in found]
    starts = [0, *accumulate(map(len, written))]
    letters = "".join(written)
    sought = {one.letters: one for one in asked.questions if one.letters and one.letters in letters}
    if not sought:
        return
    longest_first = re.compile("|".join(map(re.escape, sorted(sought, key=len, reverse=True))))
    place = 0
    while hit := longest_first.search(letters, place):
        first, last = hit.span()
        head, tail = bisect_right(starts, first) - 1, bisect_left(starts, last) - 1
        start = _place_in(found[head], written[head], first - starts[head])
        end = _place_in(found[tail], written[tail], last - starts[tail])
        if start is None or end is None:
            place = first + 1
        else:
            yield start, end, sought[hit[0]]
            place = last


def _place_in(word: re.Match[str], written: str, letter: int) -> int | None:
    """Where a letter of a normalised word is; None within a word, unless words do not stand apart in its script."""
    if letter in (0, len(written)):
        return word.end() if letter else word.start()
    return word.start() + letter if is_unspaced(written) and len(word[0]) == len(written) else None


def _clause(
    text: str, start: int, before: str, after: str, verbatim: _Question | None, asked: _Query
) -> _Clause:
    plain = without_unspaced_announcing(text)
    own = words(plain)
    stems = list(map(stem, own))
    content = {
        one
        for one, word in zip(stems, own, strict=True)
        if word not in asked.small and one not in SURROUNDING
    }
    places = places_of_speaking(text, own) if asked.n_speaking else []
    is_lone = asked.n_speaking > 0 and len(places) <= asked.n_speaking
    asking = {*asked.asking, asks_whether(text)} if is_lone and places else set[str]()
    return _Clause(
        start,
        start + len(text),
        before,
        after,
        verbatim,
        stems,
        not content,
        len(find_similar(content, asked.stems).missing) / len(content) if content else 0.0,
        not verbatim
        and (plain != text or not ANNOUNCING.isdisjoint(stems) or _joined(own).endswith(_ANNOUNCING_PHRASES)),
        not is_lone and _speaks(text, own, asked, has_content=bool(content)),
        any(word in text if is_unspaced(word) else word in own for word in asked.asking)
        or _asks_whether(text, stems, asked),
        any(word in asking for word in own[places[0] :]) if asking else False,
        not OPENING_VERBS.isdisjoint(own),
    )


def _speaks(text: str, own: Sequence[str], asked: _Query, *, has_content: bool) -> bool:
    around = () if has_content else SURROUNDING.intersection(map(stem, own)) - asked.stems
    return (
        unspaced_speaking(text)
        or any(word in SPEAKING and stem(word) not in asked.stems for word in own)
        or len(around) > 1  # "you want to know"
    )


def _asks_whether(text: str, stems: Iterable[str], asked: _Query) -> bool:
    """Whether it has "whether" or the like and words around a question, to a query for yes or no."""
    return (
        wants_yes_or_no(asked.asking)
        and (word := asks_whether(text)) not in {"", *asked.stems}
        and (unspaced_speaking(text) or not SURROUNDING.isdisjoint(set(stems) - asked.stems - {word}))
    )


def _cuts(clauses: Iterable[_Clause], asked: _Query) -> Iterator[tuple[int, int, str]]:
    """Start and end of each echo, with what belongs to it, and what is left in its place."""
    for sentence in _sentences(clauses):
        echoes = _echoes(sentence, asked)
        last = -1
        for number in sorted(echoes):
            if number <= last:
                continue
            first = last = number
            while first > 0 and (first - 1 in echoes or _belongs(sentence[first - 1], asked)):
                first -= 1
            while last + 1 < len(sentence) and (
                last + 1 in echoes or _follows(sentence[last], sentence[last + 1], asked)
            ):
                last += 1
            yield _cut(sentence[first], sentence[last], is_beginning=first == 0)


def _sentences(clauses: Iterable[_Clause]) -> Iterator[list[_Clause]]:
    """A question may end within what is read as a sentence, as before a small letter."""
    sentence: list[_Clause] = []
    for clause in clauses:
        sentence.append(clause)
        if clause.ends_sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _echoes(sentence: Sequence[_Clause], asked: _Query) -> set[int]:
    """Numbers of the clauses that repeat the query."""
    found: set[int] = set()
    leads = True  # so far the sentence says nothing of its own
    speaks = False
    for number, clause in enumerate(sentence):
        before, behind = sentence[max(0, number - 1) : number], sentence[number + 1 : number + 2]
        speaks |= clause.speaks or any(one.speaks and one.is_empty for one in behind)
        if not clause.verbatim:
            is_echo = _is_echo(clause, asked, leads, speaks)
        elif clause.verbatim.asks:
            is_echo = _is_echo_of_question(clause, before, leads, speaks)
        else:
            is_echo = _is_echo_of_part(clause, before, leads, speaks, is_long=clause.verbatim.is_long)
        if is_echo:
            found.add(number)
        leads = leads and (is_echo or clause.speaks or _belongs(clause, asked))
    return found


def _is_echo_of_question(clause: _Clause, before: Sequence[_Clause], leads: bool, speaks: bool) -> bool:
    """Whether a question of the query, word for word, is an echo and not part of what the response says."""
    if clause.has_question_mark or clause.is_quoted or ":" in clause.before:
        return True
    if any(one.announces or not _BEFORE_QUESTION.isdisjoint(one.stems[-1:]) for one in before):
        return True  # "Regarding …"
    if not leads or speaks:  # "You asked: …"
        return leads
    # "As to who wrote Faust: …", but not "It is who wrote Faust …"
    is_apart = clause.before != "" or not any(one.has_verb for one in before)
    return clause.is_ended and is_apart


def _is_echo_of_part(
    clause: _Clause, before: Sequence[_Clause], leads: bool, speaks: bool, *, is_long: bool
) -> bool:
    """The same for a part of the query that asks nothing by itself."""
    if clause.has_question_mark and (is_long or leads or clause.before):  # but not "Do you need parking?"
        return True
    if not leads:
        return False
    if speaks:  # "You asked: parking is free", but not "To answer your question, parking is free."
        return "," not in clause.before
    if any(one.announces for one in before):
        return is_long or clause.is_quoted or clause.is_title
    is_heading = clause.is_title and (clause.before != "" or not before)
    return is_long and (is_heading or (clause.is_quoted and clause.ends_sentence))


def _is_echo(clause: _Clause, asked: _Query, leads: bool, speaks: bool) -> bool:
    if clause.reports and not clause.has_question_mark:
        return False
    if clause.is_empty or clause.new > (_MOST_NEW if speaks and clause.asks else 0):
        return False
    own = set(clause.stems)
    if any(len(own & one.stems) >= _LEAST_REPEATED * len(one.stems) for one in asked.questions):
        is_title = _QUOTED_QUESTION_MARK.fullmatch(clause.after.rstrip()) is not None  # its sentence goes on
        return (clause.has_question_mark and not is_title) or (clause.asks and (leads or clause.is_quoted))
    return leads and speaks and clause.asks


def _belongs(clause: _Clause, asked: _Query) -> bool:
    """Whether it says nothing of its own next to an echo."""
    return clause.is_empty or _is_part(clause, asked)


def _follows(echo: _Clause, clause: _Clause, asked: _Query) -> bool:
    """Whether it still belongs to the echo before it. Behind a question mark, words of the query may be the answer."""
    if clause.is_empty:
        return clause.speaks or clause.announces
    return not echo.has_question_mark and _is_part(clause, asked)


def _is_part(clause: _Clause, asked: _Query) -> bool:
    """Whether it is some words of the query in a row."""
    own = _joined(clause.stems)
    return len(clause.stems) > 1 and any(own in one.written for one in asked.questions)


def _cut(first: _Clause, last: _Clause, *, is_beginning: bool) -> tuple[int, int, str]:
    if not is_beginning:
        return first.start, last.end, "…"
    start = first.start - len(first.before) + len(first.before.rstrip(_OPENERS))
    line = last.after.rfind("\n")
    return start, last.end + len(last.after), last.after[line:] if line >= 0 else " "


_FIRST_PERSON = frozenset(("i", "we"))
_BEFORE_QUESTION = frozenset(("about", "explain", "for", "of", "on", "to"))
"""Stems. Behind such a word, "who wrote it" is not said of the person before it."""
_ANNOUNCING_PHRASES = (" as to ", " as for ", " about ")
_SENTENCE_END = re.compile(r"[.!?。！？؟।\n]")
_LAST_CHARACTER = re.compile(r"\w\W*\Z")
_LETTERS = re.compile(r"[^\W_]+")
_HIDING = "\ue000"
"""For private use, so that no text means anything by it."""
_SENTENCE_ENDS = frozenset(".!?。！？؟।\n")
_QUESTION_MARKS = ("?", "？", "؟")
_DOUBLE_QUOTES = '"“”„‟«»‹›「」『』*_`'
_QUOTES = f"{_DOUBLE_QUOTES}'‘’"
_OPENERS = f"{_QUOTES}([{{#>|~ ¿¡"
_QUESTION_MARK = re.compile(rf"[{_QUOTES})\]\s]*[?？؟]")
_QUOTED_QUESTION_MARK = re.compile(rf"[?？؟]\s*[{_QUOTES}]")
_OPENED = re.compile(rf"[{_QUOTES}][\s(\[¿]*$")
_CLOSED = re.compile(rf"[)\].!。！।\s]*[{_QUOTES}]")
_PARAGRAPH_END = re.compile(rf"[{_QUOTES} ]*\n\s*\n")
_MARK = (
    rf"[\n{_DOUBLE_QUOTES}!?;()\[\]{{}}#|<>~…—–、。！？；：，،؛؟।¿¡]"
    r"|[.,:](?!\w)|(?<!\w)['‘’]|['‘’](?!\w)|(?<=\s)-(?=\s)"
)
_GAP = re.compile(rf"(?:{_MARK})(?:\s|{_MARK})*")
_BEHIND = re.compile(rf"(?:\s|{_MARK})*")
