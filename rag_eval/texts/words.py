"""What a text is made of: normalised words, stems, adjacent pairs, names, numbers and sentences.

Pure and deterministic. A text is decided one whitespace-separated piece at a time, so that what a piece means
can be remembered and a text costs little more than splitting it. The memories are only caches, and bounded:
the vocabulary is emptied when it holds 100,000 pieces, and of whole texts only the latest two of a kind are
remembered, which is what the metrics of a case and the bots of a row share. More would be slower, because less
would stay in the processor's cache.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain, groupby, islice, pairwise
from sys import intern
from typing import Literal, NamedTuple, TypeVar

from rag_eval.texts.brackets import NO_WORD, compact
from rag_eval.texts.quantities import (
    CURRENCY_SIGNS,
    HALF_OF_DAY,
    HALVES_OF_DAY,
    HOUR,
    HOUR_SIGN,
    JOINING,
    MEASURE,
    MEASURE_OF,
    MONTHS,
    MYRIADS,
    NUMBER_WORDS,
    NUMERAL,
    PERCENT,
    UNIT_WORDS,
    canonical_number,
    hour_of_day,
    numeral,
    one_amount,
    times,
)

NEGATION = "not"
"""The one stem that stands for every negating word. It says nothing by itself, only beside another word."""

_GRAMMAR = """
    a an the this that these those such same other own some any all both each few more most only
    i me my mine we our ours you your yours he him his she her hers it its they them their theirs
    who whom whose which what when where why how
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would
    about above after again against as at before below between by down during for from further in into of
    off on once out over through to under until up upon with
    and but or if then than so because while also too very just here there now
    s t d m ll re ve ca wo don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn
"""
STOP_WORDS = frozenset(_GRAMMAR.split())
"""English words that carry grammar rather than content, unless they are spelled as names.

Other languages are read without such a list.
"""

_Item = TypeVar("_Item")


class Reading:
    """A text taken apart."""

    __slots__ = ("_pairs", "content", "pieces", "stems", "stems_by_piece", "text")

    def __init__(
        self,
        text: str,
        content: list[str],
        pieces: Sequence[str] = (),
        stems_by_piece: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self.text = text
        self.content = content
        """Stems of the words that carry content, in order; a negation stands as `NEGATION`."""
        self.stems = set(content)
        self._pairs: set[tuple[str, str]] | None = None
        self.pieces = pieces
        """What stands between white space, where the text is to be quoted; otherwise empty, to save memory."""
        self.stems_by_piece = stems_by_piece
        """What each piece contributes to the content."""

    @property
    def pairs(self) -> AbstractSet[tuple[str, str]]:
        """Neighbours in `content`; made when they are first asked for."""
        if self._pairs is None:
            self._pairs = set(pairwise(self.content))
        return self._pairs


class _Claim(NamedTuple):
    """A text that says something, and its sentences one by one."""

    whole: Reading
    sentences: tuple[Reading, ...]
    """Those that have content."""


@lru_cache(maxsize=2)
def read(text: str) -> Reading:
    """The text taken apart."""
    pieces = _split(text)
    return _reading(text, pieces, _look_up(pieces))


@lru_cache(maxsize=2)
def read_all(texts: tuple[str, ...]) -> tuple[Reading, ...]:
    """The texts taken apart, remembered together however many they are; not to be quoted."""
    readings = [Reading(text, _content(map(_VOCABULARY.__getitem__, _split(text)))) for text in texts]
    return tuple([_reread(reading) if _has_amount(reading) else reading for reading in readings])


@lru_cache(maxsize=2)
def read_claim(text: str) -> _Claim:
    """The text and its sentences taken apart; markers of list items are no content."""
    spaced = _spaced(compact(text))
    parts = list(_sentence_pieces(spaced))
    stems_by_part = list(map(_look_up, parts))
    sentences = tuple([one for one in map(_sentence, parts, stems_by_part) if one.content])
    if len(parts) == 1 and sentences and sentences[0].text == text:
        return _Claim(sentences[0], sentences)
    content = _joined([sentence.content for sentence in sentences])
    if spaced == text:
        pieces, stems_by_piece = _joined(parts), _joined(stems_by_part)
    else:
        pieces = _split(text)
        stems_by_piece = _look_up(pieces)
    # A text like "42." is an answer, though a list item could begin so; and so is a single word like "may".
    content = content or _content(stems_by_piece) or (words(text) if len(pieces) == 1 else [])
    return _Claim(Reading(text, content, pieces, stems_by_piece), sentences)


def content_stems(text: str) -> set[str]:
    """Those of `read` but for names and amounts of several words, in a third of the time; not remembered."""
    return set(_content(map(_VOCABULARY.__getitem__, _split(text))))


def read_sentences(text: str) -> Iterator[Reading]:
    """The sentences that have content taken apart; not remembered."""
    for pieces in _sentence_pieces(_spaced(compact(text))):
        sentence = _sentence(pieces, _look_up(pieces))
        if sentence.content:
            yield sentence


def stems_of(text: str) -> list[str]:
    """Stems of all words in order, those without content included."""
    return [stem(word) for word in words(text)]


def words(text: str) -> list[str]:
    """Normalised words in order; a script without spaces gives its overlapping pairs (Thai: threes) of characters.

    Numbers are written in one way, possessives and contracted verbs are cut off ("Anna's" is "anna"), and a
    contracted negation is a word of its own ("isn't" is "is", "not").
    """
    written = normalise(text)
    bare = written.rstrip(_WORD_ENDS).lstrip(_WORD_BEGINS)
    if bare.isalpha() and max(bare) < _FIRST_UNSPACED:  # most pieces of a text, told in a fifth of the time
        return [bare]
    if _PLAIN.fullmatch(written):
        return _LETTERS.findall(written)
    return [word for match in _TOKEN.finditer(written) for word in _words_of_token(match)]


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit, so something to compare."""
    return _WORD_CHARACTER.search(text) is not None


def normalise(text: str) -> str:
    """The text in lower case with compatibility forms, accents and vowel points folded away."""
    if "'" in text or "’" in text:
        text = _APOSTROPHE_IN_NUMBER.sub("", text)
    if text.isascii():
        return text.lower()
    text = _with_whole_numbers(text).replace("’", "'")
    if any(map(text.__contains__, _FRACTIONS)):
        text = _FRACTION.sub(lambda match: f"{match[1] or 0}.{_FRACTIONS[match[2]]}", text)
    if _OTHER_DIGIT.search(text):
        text = text.translate(_DIGITS)
    decomposed = compatible("NFKD", text)
    return unicodedata.normalize("NFC", _FOLDED_MARKS.sub("", decomposed)).casefold()


def compatible(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """The text in a Unicode normal form, in linear time.

    Python sorts a run of combining marks in quadratic time, unless it is sorted already.
    """
    if not text.isascii():
        text = _LONG_RUN_OF_MARKS.sub(_in_canonical_order, text)
    return unicodedata.normalize(form, text)


def stem(word: str) -> str:
    """The word without its English inflection (plural, -ing, -ed, -ly, final e or y); other words unchanged.

    Number words from "two" to "twenty" are digits, units of measurement and negations have one form each.
    The result is a key for comparison, not always a word.
    """
    if word in _ONE_FORM:
        return _ONE_FORM[word]
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _without_verb_ending(_without_plural(word))
    if len(word) > 4 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 4 and word[-1] == "y":
        word = word[:-1] + "i"
    return word


def names(sentence: Reading) -> list[list[str]]:
    """Stems of each run of capitalised words inside a sentence: people, places, products, titles.

    The first word of a sentence is left out, because its capital says nothing. Nor does a capital in a heading
    or in a text all in capitals. Scripts without capitals have no names, and in German every noun is one.
    """
    if sentence.text[1:].islower():  # the same answer as below, without looking at the pieces
        return []
    pieces = sentence.pieces
    places = [place for place, piece in enumerate(pieces) if place and not piece.islower()]
    if len(places) > _CAPITALISED_HEADING * (len(pieces) - 1) and _is_heading(sentence):
        return []
    found: list[list[str]] = []
    last = -1
    for place in places:
        piece = pieces[place]
        is_capitalised = piece[0].isupper() or (piece[0] in _OPENERS and _is_capitalised(piece))
        if not is_capitalised or pieces[place - 1][-1] in _NAME_BOUNDARIES:
            continue
        if found and place == last + 1:
            found[-1].extend(sentence.stems_by_piece[place])
        else:
            found.append(list(sentence.stems_by_piece[place]))
        last = place
    return found


def numbers(stems: Iterable[str]) -> list[str]:
    """Those of the stems that are numbers, or codes with a letter such as "b12"."""
    stems = list(stems)
    if "".join(stems).isalpha():  # told fast
        return []
    return [stem for stem in stems if stem[0].isdigit() or stem[-1].isdigit()]


def quote(text: Reading, stems: AbstractSet[str], most: int = 8) -> str:
    """At most `most` words of a text that have one of the stems, as the text spells them, in its order."""
    has_one = (
        piece
        for piece, own in zip(text.pieces, text.stems_by_piece, strict=True)
        if own and (own[0] in stems or (len(own) > 1 and not stems.isdisjoint(own)))
    )
    spelled = list(islice(has_one, most + 1))
    whole = "".join(spelled)
    if not whole.isalnum():
        spelled = [piece if piece.isalnum() else piece.strip(_PUNCTUATION) for piece in spelled]
    if not spelled or (len(whole) > _LONGEST_QUOTED and max(map(len, spelled)) > _LONGEST_QUOTED):
        spelled = sorted(stems)
    return ", ".join(dict.fromkeys(spelled[:most])) + (", …" if len(spelled) > most else "")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text that hold a word, without list markers; [] for a blank text."""
    parts = [pieces[_begins_with_marker(pieces) :] for pieces in _sentence_pieces(_spaced(text))]
    return [sentence for sentence in map(" ".join, parts) if has_words(sentence)]


def _in_canonical_order(run: re.Match[str]) -> str:
    """The run decomposed, the marks between characters that combine with nothing stably sorted by class."""
    decomposed = "".join([unicodedata.normalize("NFKD", mark) for mark in run[0]])
    parts = groupby(decomposed, key=lambda mark: unicodedata.combining(mark) > 0)
    return "".join(
        "".join(sorted(marks, key=unicodedata.combining) if is_combining else marks)
        for is_combining, marks in parts
    )


def _split(text: str) -> list[str]:
    """Its pieces between white space, but for the narrow or fixed space within a number: "1 500", and a citation."""
    return _with_whole_numbers(compact(text)).split()


def _spaced(text: str) -> str:
    """The text with a line break behind each full stop of a script without spaces, and no space within a number."""
    text = _with_whole_numbers(text)
    if text.isascii() or not any(map(text.__contains__, _UNSPACED_ENDS)):
        return text
    return _UNSPACED_END.sub(r"\g<0>\n", text)


def _with_whole_numbers(text: str) -> str:
    """The text without the narrow or fixed space within a number: "1 500"."""
    if text.isascii():
        return text
    has_one = any(map(text.__contains__, _NARROW_SPACES))  # faster than a search for all of them
    return _SPACE_IN_NUMBER.sub("", text) if has_one else text


def _sentence_pieces(text: str) -> Iterator[list[str]]:
    """The pieces of each sentence or line. In a text without any capital, a sentence may begin with a small letter."""
    has_capitals = not text.islower()
    for line in text.splitlines():
        pieces = line.split()
        start = 0
        for end in [number for number, piece in enumerate(pieces, 1) if piece[-1] in _MAY_END]:
            if end == len(pieces) or (has_capitals and pieces[end][0].islower()):
                continue
            if _ends_sentence(pieces[end - 1], pieces[end], has_capitals):
                yield pieces[start:end]
                start = end
        if start < len(pieces):
            yield pieces[start:]


def _ends_sentence(piece: str, following: str, has_capitals: bool) -> bool:
    """Whether the piece does, if the one behind it does not begin with a small letter in a text with capitals."""
    bare = piece.rstrip(_CLOSERS)
    if not bare or bare[-1] not in ".!?" or bare in _ABBREVIATIONS or _INITIALS.fullmatch(bare):
        return False
    if bare[0].isdigit() and _ORDINAL.fullmatch(bare) and _is_month([following]):
        return False
    return not has_capitals or not following.lstrip(_OPENERS)[:1].islower()


def _sentence(pieces: list[str], stems_by_piece: list[tuple[str, ...]]) -> Reading:
    if _begins_with_marker(pieces):
        pieces, stems_by_piece = pieces[1:], stems_by_piece[1:]
    return _reading(" ".join(pieces), pieces, stems_by_piece)


def _with_fractions(text: str) -> str:
    """The text without a space in "1 ½"."""
    return _SPACE_BEFORE_FRACTION.sub("", text)


def _reading(text: str, pieces: list[str], stems_by_piece: list[tuple[str, ...]]) -> Reading:
    """The text of these pieces, an amount of several of them as one; then both lists may be changed.

    A function word in capitals is a name ("the US", "Vitamin A") unless it begins the text or a title ("A Bell for
    Adano"), or follows a mark such as a colon.
    """
    if len(pieces) > 1 and type(stems_by_piece[0]) is _Name:
        stems_by_piece[0] = ()
    reading = Reading(text, _content(stems_by_piece), pieces, stems_by_piece)
    if _IS_SEEN_AGAIN.isdisjoint(reading.stems):
        return reading
    if not _FRACTION_STEMS.isdisjoint(reading.stems):
        joined = _with_fractions(" ".join(pieces)).split()
        if len(joined) < len(pieces):
            pieces[:], stems_by_piece[:] = joined, _look_up(joined)
            return _reading(text, pieces, stems_by_piece)
    if len(pieces) > 1 and not STOP_WORDS.isdisjoint(reading.stems):
        in_capitals = [place for place, stems in enumerate(stems_by_piece) if type(stems) is _Name]
        is_heading = bool(in_capitals) and _is_heading(reading)
        for place in in_capitals:
            begins = not pieces[place - 1][-1].isalnum()
            if begins or is_heading or _begins_title(pieces[place : place + 2]):
                stems_by_piece[place] = ()
        reading = Reading(text, _content(stems_by_piece), pieces, stems_by_piece)
    if not _has_amount(reading):
        return reading
    quoted = _join_amounts(pieces, stems_by_piece)
    reading = Reading(text, _content(stems_by_piece), pieces, stems_by_piece)
    for place, stem in quoted:
        stems_by_piece[place] = (stem,)
    return reading


def _begins_title(pieces: Sequence[str]) -> bool:
    return pieces[0] == "A" and len(pieces) > 1 and pieces[1][0].isupper()


def _has_amount(reading: Reading) -> bool:
    """Whether it may have an amount of several pieces, told fast."""
    stems = reading.stems
    return (
        not _JOINING.isdisjoint(stems)
        or ("h" in stems and _HOURS.search(reading.text) is not None)
        or ("12" in stems and _AM in reading.text.lower())
    )


def _reread(reading: Reading) -> Reading:
    pieces = _split(_with_fractions(reading.text))
    stems_by_piece = _look_up(pieces)
    _join_amounts(pieces, stems_by_piece)
    return Reading(reading.text, _content(stems_by_piece))


def _join_amounts(pieces: Sequence[str], stems_by_piece: list[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Changes the stems; gives the places of pieces that went into a number before them, and this number."""
    places: list[int] = []
    stems: list[str] = []
    for place, (piece, own) in enumerate(zip(pieces, stems_by_piece, strict=True)):
        is_am = not own and piece[0] in "aA" and _AM_PIECE.fullmatch(piece)  # most often it is a verb
        read = own or (("am",) if is_am else ("",))
        if piece in "hH":
            read = (HOUR_SIGN,)
        places += [place] * len(read)
        stems += read
    amounts = one_amount(stems)
    changed = {place for place, stem, amount in zip(places, stems, amounts, strict=True) if stem != amount}
    gone: list[tuple[int, str]] = []
    for place in sorted(changed):
        joined = amounts[bisect_left(places, place) : bisect_right(places, place)]
        kept = tuple(
            ["h" if amount == HOUR_SIGN else intern(amount) for amount in joined if amount and amount != "am"]
        )
        before = stems_by_piece[place - 1] if place else ()
        if stems_by_piece[place] and not kept and before and before[0][0].isdigit():
            gone.append((place, before[0]))
        stems_by_piece[place] = kept
    return gone


def _begins_with_marker(pieces: list[str]) -> bool:
    """Whether it is an item of a list, and not a German ordinal: "3. Oktober"."""
    if pieces[0].isalpha() or not LIST_MARKER.fullmatch(pieces[0]):
        return False
    return not (_ORDINAL.fullmatch(pieces[0]) and _is_month(pieces[1:2]))


def _is_month(pieces: list[str]) -> bool:
    return any(normalise(piece.strip(_PUNCTUATION)) in MONTHS for piece in pieces)


_CAPITALISED_HEADING = 2 / 3
"""A longer sentence with a greater share of words that are not in small letters is taken for a heading."""
_SHORTEST_HEADING = 6
"""Words. A shorter sentence may hold little besides a name."""


def _is_heading(sentence: Reading) -> bool:
    """Of a sentence with many capitals: whether they are the style of the whole text."""
    letters = [piece for piece in sentence.pieces if _is_capitalised(piece) or piece.islower()]
    n_capitalised = sum(map(_is_capitalised, letters))
    is_long = len(letters) >= _SHORTEST_HEADING and n_capitalised > _CAPITALISED_HEADING * len(letters)
    return is_long or sentence.text.isupper()


def _is_capitalised(piece: str) -> bool:
    return piece[0].isupper() or piece.lstrip(_OPENERS)[:1].isupper()


def _words_of_token(match: re.Match[str]) -> Iterable[str]:
    token = match.group()
    kind = match.lastgroup
    if kind == "word":
        return _words_of_word(token)
    if kind == "number":
        return (_number(match),)
    if kind == "price":
        return canonical_number(match["amount"]), CURRENCY_SIGNS[match["sign"]]
    if kind == "currency":
        return (CURRENCY_SIGNS[token],)
    if kind == "half":
        return (token.replace(".", ""),)
    if kind == "unspaced":
        return _words_of_unspaced(match)
    if kind == "percent":
        return (PERCENT,)
    return (token.replace("-", ""),)  # "C++", "B12", "F-16", "12A"


def _words_of_word(token: str) -> tuple[str, ...]:
    head, apostrophe, tail = token.partition("'")
    if not apostrophe or tail in _CLITICS:
        return (head,)
    if tail == "t" and head[-1] == "n" and len(head) > 1:
        return (_CONTRACTED.get(head, head[:-1]), NEGATION)
    return (head, tail)


def _number(match: re.Match[str]) -> str:
    """The number of "1,250", "3万" or "31st"; of "午後8時" the hour of the day."""
    token, whole, start = match[0].rstrip(_OF_ORDINALS), match.string, match.start()
    if start and not whole[start - 1].isascii() and HOUR.match(whole, start):
        half = HALF_OF_DAY.search(whole, max(0, start - 2), start)
        if half:
            return hour_of_day(canonical_number(token), HALVES_OF_DAY[half[0]])
    myriad = MYRIADS.get(token[-1])
    return times(canonical_number(token[:-1]), myriad) if myriad else canonical_number(token)


def _words_of_unspaced(run: re.Match[str]) -> Iterator[str]:
    """Overlapping groups of characters; a shorter text stays whole, and a numeral is a number.

    What is measured is one stem, and a half of the day goes into the hour: "午後8時" is "20", "点".
    """
    text, whole, end = run[0], run.string, run.end()
    if end < len(whole) and whole[end].isdigit() and HOUR.match(whole, end):
        text = HALF_OF_DAY.sub("", text)  # the number reads it
    measure = MEASURE.match(text) if _is_behind_number(run) or len(text) == 1 else None
    if measure:
        yield MEASURE_OF[measure[0]]
    place = measure.end() if measure else 0
    for match in NUMERAL.finditer(text, place):
        before, number = text[place : match.start()], numeral(match[0])
        half = HALF_OF_DAY.search(before) if HOUR.match(text, match.start()) else None
        yield from _groups(before[: half.start()] if half else before)
        yield hour_of_day(number, HALVES_OF_DAY[half[0]]) if half else number
        place = match.end()
        if measure := MEASURE.match(text, place):
            yield MEASURE_OF[measure[0]]
            place = measure.end()
    yield from _groups(text[place:])


def _is_behind_number(run: re.Match[str]) -> bool:
    before = run.string[run.start() - 1 : run.start()]
    return before.isdigit() or before in MYRIADS


def _groups(text: str) -> list[str]:
    if not text:
        return []
    size = 3 if text[0] in _LONG_WORDS else 2
    return [text[start : start + size] for start in range(max(1, len(text) - size + 1))]


def _without_plural(word: str) -> str:
    if word[-1] != "s" or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] in "sxz":
        return word[:-2]
    return word[:-1]


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed", "ly"):
        if len(word) > 5 and word.endswith(ending):
            word = word[: -len(ending)]
            doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
            return word[:-1] if doubled else word
    return word


class _Name(tuple[str, ...]):
    """What a function word in capitals contributes where it is a name."""

    __slots__ = ()


class _Vocabulary(dict[str, tuple[str, ...]]):
    """What each whitespace-separated piece of text contributes to a reading."""

    _MOST_PIECES = 100_000

    def __missing__(self, piece: str) -> tuple[str, ...]:
        unquoted = NO_WORD.sub(" ", piece) if "[" in piece or "【" in piece else piece
        # Equal stems are one object, so that sets compare them without looking at their letters.
        content = tuple(intern(stem(word)) for word in words(unquoted) if word not in STOP_WORDS)
        if not content and (name := _name_in(piece)):
            content = _Name((intern(name),))
        if len(content) > 1 and not JOINING.isdisjoint(content):
            content = tuple(filter(None, map(intern, one_amount(content))))  # "9pm"
        if len(piece) <= _LONGEST_REMEMBERED:
            if len(self) >= self._MOST_PIECES:
                self.clear()
            self[intern(piece)] = content
        return content


def _name_in(piece: str) -> str:
    """The function word that the piece spells as a letter, an acronym or a name, in small letters; or empty."""
    bare = piece.lstrip("(").rstrip(_PUNCTUATION)
    is_name = bare in _MAY_BE_NAMES or (bare.isupper() and bare != _I and bare.lower() in STOP_WORDS)
    return bare.lower() if is_name else ""


def _look_up(pieces: Iterable[str]) -> list[tuple[str, ...]]:
    return list(map(_VOCABULARY.__getitem__, pieces))


def _content(stems_by_piece: Iterable[tuple[str, ...]]) -> list[str]:
    return _joined(filter(None, stems_by_piece))


def _joined(parts: Iterable[Iterable[_Item]]) -> list[_Item]:
    return list(chain.from_iterable(parts))


_VOCABULARY = _Vocabulary()

_MAY_BE_NAMES = frozenset(("May", "Will"))
"""Function words that are names of a month and of people as well."""
_I = "I"
"""Always in capitals."""
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}
"""Decimals of "1½", by its sign."""
_FRACTION_STEMS = frozenset(f"0.{decimals}" for decimals in _FRACTIONS.values())
"""Of signs that stand alone, and may belong to the number before them; sooner looked for than the signs."""
_JOINING = JOINING | _FRACTION_STEMS
_IS_SEEN_AGAIN = STOP_WORDS | _JOINING | {"12", "h"}
"""Stems that mean something else where they are next to others."""
_HOURS = re.compile(r" [hH] \d\d\b")
_AM = " am"
_AM_PIECE = re.compile(r"(?i:am)\W*")
_LONGEST_REMEMBERED = 128
"""Longer pieces are text without spaces, of which no two are alike; web addresses and rules of tables are shorter."""
_LONGEST_QUOTED = 64
"""Longer pieces are quoted by their stems."""
_PUNCTUATION = ".,:;!?()[]{}<>\"'`*_“”‘’«»…–—-、。！？؟।"

_CLITICS = frozenset(("s", "re", "ve", "ll", "d", "m"))
_CONTRACTED = {"can": "can", "won": "will", "shan": "shall"}

_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_FIRST_UNSPACED = "\u0e00"
_LONG_WORDS = frozenset(map(chr, (*range(0x0E00, 0x0F00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800))))
"""Thai, Lao, Burmese and Khmer spell a word with so many characters that pairs of them are found anywhere."""
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
_LETTER = rf"[^\W\d_{_UNSPACED}]"
_CURRENCIES = "$€£¥₹"
# Repeated groups are possessive: each repetition of another is remembered, some 200 bytes for every letter.
_TOKEN = re.compile(
    rf"(?P<lettered>(?<![\d.,:-])\d++[abd](?!\w))"
    rf"|(?P<number>\d++(?:[.,:]\d++|h\d\d(?!\d))*+(?:[{''.join(MYRIADS)}]|(?:st|nd|rd|th|er|re|eme|e)(?!\w))?)"
    rf"|(?P<price>(?P<sign>(?:us)?[{_CURRENCIES}])(?P<amount>\d++(?:[.,]\d++)*+))"
    rf"|(?P<currency>(?<![^\W\d_])[{_CURRENCIES}](?!\w))"
    rf"|(?P<half>[ap]\.m\b)"
    rf"|(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<percent>%)"
    rf"|(?P<code>{_LETTER}(?:\+\+|#)(?!\w)|(?<![a-z0-9])[a-z]-?+\d++(?![a-z0-9]|[.,:]\d))"
    rf"|(?P<word>(?:{_LETTER}|[{_MARKS}])++(?:'{_LETTER}++)?)"
)
_PLAIN = re.compile(r"(?:[a-z \n,;:?!()\"-]|\.(?![a-z]))*+")
"""A text of words of letters only, none of them an abbreviation with points, in which `_TOKEN` finds nothing else."""
_LETTERS = re.compile("[a-z]++")
_WORD_BEGINS = '("-'
_WORD_ENDS = '.,;:?!)"-'
"""Of the signs of `_PLAIN`, those that pieces have at their ends."""
WRITTEN_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}{_UNSPACED}])++")
"""A word as a text spells it, or a run of characters of a script without spaces."""
_LONG_RUN_OF_MARKS = re.compile(r"(?:[^\w\s\x00-\x7f]|[\uff9e\uff9f]){30,}+")
"""Real texts have a few in a row at most. No combining mark is a letter, but two letters of half width become one."""
_FOLDED_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")
_ZEROS = "\u0660\u06f0\u0966\u09e6"
_DIGITS = {ord(zero) + value: str(value) for zero in _ZEROS for value in range(10)}
"""Arabic, Persian, Devanagari and Bengali digits; NFKD folds the full-width ones."""
_OTHER_DIGIT = re.compile(f"[{''.join(map(chr, _DIGITS))}]")
"""It is found in less time than each character is translated in."""

_OPENERS = "\"'“‘«([{*_"
_CLOSERS = "\"'”’»)]}*_"
_MAY_END = frozenset(".!?" + _CLOSERS)
_NAME_BOUNDARIES = frozenset(".!?:")
_NARROW_SPACES = "\u00a0\u2009\u202f"
_APOSTROPHE_IN_NUMBER = re.compile(r"(?<=\d)['’](?=\d{3}(?!\d))")
"""Of Swiss thousands: "1'250.50"."""
_SPACE_IN_NUMBER = re.compile(f"[{_NARROW_SPACES}](?<=\\d.)(?=\\d{{3}}(?!\\d))")
"""Begins with what is searched fastest."""
_FRACTION = re.compile(f"(?:(?<!\\d)(\\d{{1,9}})[ {_NARROW_SPACES}]?)?([{''.join(_FRACTIONS)}])")
_SPACE_BEFORE_FRACTION = re.compile(f"[ {_NARROW_SPACES}](?<=\\d.)(?=[{''.join(_FRACTIONS)}])")
_UNSPACED_ENDS = "。！？؟।။។៕"
_UNSPACED_END = re.compile(f"[{_UNSPACED_ENDS}]")
_ABBREVIATIONS = frozenset(
    (
        "Dr.",
        "Mr.",
        "Mrs.",
        "Ms.",
        "Prof.",
        "St.",
        "No.",
        "vs.",
        "e.g.",
        "i.e.",
        "ca.",
        "Dra.",
        "Sr.",
        "Sra.",
        "Mme.",
    )
)
_INITIALS = re.compile(r"(?:[A-Z]\.)++")
_OF_ORDINALS = "stndrhem"
"""Letters of endings such as in "31st"."""
_ORDINAL = re.compile(r"\d{1,2}\.")
LIST_MARKER = re.compile(r"\(?\d{1,2}[.)]|[-*•–]")
_WORD_CHARACTER = re.compile(r"[^\W_]")

_NEGATIONS = (
    "not",
    "no",
    "never",
    "nor",
    "neither",
    "cannot",
    "without",
    "nobody",
    "nothing",
    "nowhere",
    "none",
)
_ONE_FORM = dict.fromkeys(_NEGATIONS, NEGATION) | dict(NUMBER_WORDS) | dict(UNIT_WORDS)
"""Words of which the comparison knows several spellings: negations, small numbers, units of measurement."""
