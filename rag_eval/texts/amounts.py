"""Amounts of a short text by value: "half an hour" is 30 minutes, "vingt-cinq euros" is "€25", "15/03" is 15 March.

Pure. English, German, French and Spanish; Italian, Portuguese and Dutch up to 20. What can be read in several ways has
several values: "¥50" is in yen or
yuan, "1.250" is 1250 or 1.25, "3/4" is a date in two ways and a share.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

from rag_eval.texts.quantities import (
    JOINING,
    MEASURE,
    MEASURE_OF,
    MONTH_NUMBERS,
    NUMBER_WORDS,
    NUMERAL,
    ONES,
    canonical_number,
    numeral,
    one_amount,
)
from rag_eval.texts.words import normalise, numbers, read_sentences, stem, stems_of

_Number = int | Fraction
_Value = tuple[str, object]
"""A dimension, such as "mass", and the value in it."""


class _AmountInText(NamedTuple):
    """An expression of a text, in normal form, and what it may mean."""

    text: str
    values: frozenset[_Value]


@lru_cache(maxsize=64)  # the chunks of a row, for each of its bots, and sentences of them
def amounts(text: str) -> tuple[_AmountInText, ...]:
    """Those of a text, which may overlap: "3 kg" is a mass, and "3" is a number."""
    if not may_have_amount(text) and not may_have_rank(text):  # a tenth of the time of the rest
        return ()
    normal = normalise(text)
    parts, places = _parts(normal)
    line = " ".join(parts)
    known = {"0" if part[0].isdigit() else part for part in parts}
    starts = list(accumulate((len(part) + 1 for part in parts), initial=0))
    numbered = {start: number for number, start in enumerate(starts)}
    found = []
    for values_of, pattern, signs in _patterns():
        for match in () if signs.isdisjoint(known) else pattern.finditer(line):
            first = numbered.get(match.start())  # a lookbehind instead would take most of the time
            if first is not None and (values := frozenset(values_of(match))):
                behind = bisect_left(starts, match.end())
                found.append(_AmountInText(normal[places[first][0] : places[behind - 1][1]], values))
    if not text.isascii():
        found += [_AmountInText(normalise(sign), _SHARE_SIGNS[sign]) for sign in _LONE_SIGN.findall(text)]
    return tuple(found)


def may_have_amount(text: str) -> bool:
    """Whether a text has a digit or a word of numbers, dates and shares, told fast."""
    if _DIGIT.search(text):
        return True
    normal = normalise(text)
    has_word = not _WORDS.isdisjoint(_LETTERS.findall(normal)) or any(part in normal for part in _IN_WORDS)
    return has_word or re.search(_MAY_HAVE, normal) is not None


def may_have_rank(text: str) -> bool:
    """Whether a text has a word such as "third"."""
    return not _RANKS.keys().isdisjoint(_LETTERS.findall(normalise(text)))


def restated(text: str, others: Sequence[str], missing: AbstractSet[str]) -> frozenset[str]:
    """Those of the missing stems of a text that are in an amount that one of the others writes in another way."""
    has_amount = bool(others) and _may_be_of_amounts(missing) and may_have_amount(text)
    has_rank = bool(others) and not _STEMS_OF_RANKS.isdisjoint(missing)
    if not has_amount and not (has_rank and any(_RANK_IN_FIGURES.search(other.lower()) for other in others)):
        return frozenset()
    lacking = [(each.values, stems) for each in amounts(text) if (stems := missing & _stems(each.text))]
    if not lacking:
        return frozenset()
    known = _all_values(chain.from_iterable(map(amounts, others)))
    return frozenset().union(*(stems for values, stems in lacking if not known.isdisjoint(values)))


def in_other_units(text: str, others: Sequence[str]) -> frozenset[str]:
    """Numbers of a text that the others only have with other units: 15 of "15 m" for "15 km"."""
    own = [(each, number) for each in amounts(text) if (number := _measured_number(each))]
    theirs = list(chain.from_iterable(map(amounts, others))) if own else []
    known = _all_values(theirs)
    return frozenset(
        number
        for amount, number in own
        if known.isdisjoint(amount.values) and _has_other_unit_everywhere(amount, number, theirs)
    )


def _has_other_unit_everywhere(amount: _AmountInText, number: str, listed: Sequence[_AmountInText]) -> bool:
    """Whether the number is among the listed amounts, and nowhere without a unit that is surely another one.

    A single letter may be short for a unit of another dimension: "5 m" for minutes.
    """
    n_places = sum(number in _stems(each.text) for each in listed if _dimensions(each) == {_NUMBER})
    measured = [each for each in listed if _measured_number(each) == number]
    if _SHORT_UNIT.search(" ".join(each.text for each in (amount, *measured))):
        measured = [each for each in measured if _dimensions(each) & _dimensions(amount)]
    return 0 < n_places <= len(measured)


def _measured_number(amount: _AmountInText) -> str:
    """The number of an amount that has a unit; empty for any other, and for one of several numbers."""
    found = numbers(_stems(amount.text)) if _dimensions(amount) & _WITH_UNITS else []
    return found[0] if len(found) == 1 else ""


def _dimensions(amount: _AmountInText) -> AbstractSet[str]:
    return {dimension for dimension, _ in amount.values}


def in_asked_powers(stems: Iterable[str], query: str) -> dict[str, str]:
    """Numbers among the stems with a power of ten that the query asks for: 4000000 for 4 and "How many million?"."""
    powers = _powers_in(query)
    pairs = (
        ((number, one_amount((number, power))[0]) for number in numbers(stems) for power in powers)
        if powers
        else ()
    )
    return {number: whole for number, whole in pairs if number != whole}


@lru_cache(maxsize=4)  # a query, for each metric
def _powers_in(query: str) -> frozenset[str]:
    return JOINING.intersection(stems_of(query)) if _MAY_ASK_POWER.search(query) else frozenset()


def other_codes(text: str, others: Sequence[str]) -> frozenset[str]:
    """Stems of the codes of a text that the others do not have, but another one with the same digits: BX204, LX204.

    Not of one that is a longer or shorter form of theirs. And of e-mail addresses, if the others have other ones
    and none of these.
    """
    own = _codes((text,)) if _MAY_BE_CODE.search(text) else set()
    theirs = _codes(filter(_MAY_BE_CODE.search, others)) if own else set()
    wrong = [code for code in own - theirs if any(_replaces(code, each) for each in theirs)]
    joined = " ".join(_WITHIN_CODE.sub("", normalise(other)) for other in others) if wrong else ""
    wrong = [code for code in wrong if code not in joined]
    addresses = _addresses((text,))
    known = _addresses(others) if addresses else set()
    if known and addresses.isdisjoint(known):
        wrong += addresses
    return frozenset(chain.from_iterable(map(stems_of, wrong)))


def _addresses(texts: Iterable[str]) -> set[str]:
    return {each for text in texts if "@" in text for each in _ADDRESS.findall(normalise(text))}


def _codes(texts: Iterable[str]) -> set[str]:
    """Those of several letters and digits in normal form, without marks in them."""
    return {_WITHIN_CODE.sub("", code) for text in texts for code in _CODE.findall(normalise(text))}


def _replaces(code: str, other: str) -> bool:
    """Whether both have the same digits, and as many other letters: LH400 may be short for Lufthansa400."""
    short, long = sorted((_DIGITS.sub("", code), _DIGITS.sub("", other)), key=len)
    has_same_digits = _LETTERS.sub(" ", code) == _LETTERS.sub(" ", other)
    return has_same_digits and len(long) == len(short)


def _may_be_of_amounts(stems: AbstractSet[str]) -> bool:
    joined = "".join(stems)
    has_digit = not (joined.isascii() and joined.isalpha()) and _DIGIT.search(joined) is not None
    has_part = any(part in joined for part in _IN_WORDS)
    return has_digit or has_part or not _stems_of_amounts().isdisjoint(stems)


@cache
def _stems_of_amounts() -> AbstractSet[str]:
    """Of all words in expressions."""
    return frozenset(
        map(
            stem,
            chain(
                _WORDS,
                *map(str.split, _MEANINGS),
                *(_LETTERS.findall(each) for values_of, each, _ in _PATTERNS if values_of is not _rank),
            ),
        )
    )


@lru_cache(maxsize=256)
def _stems(text: str) -> AbstractSet[str]:
    return frozenset(stems_of(text)).union(*(each.stems for each in read_sentences(text)))


def differ(text: str, other: str) -> bool:
    """Whether both texts have amounts of one dimension, and none of these is equal.

    If one is, mere numbers do not tell: 24 months are two years.
    """
    own, theirs = _all_values(amounts(text)), _all_values(amounts(other))
    shared = {dimension for dimension, _ in own} & {dimension for dimension, _ in theirs}
    equal = {dimension for dimension, _ in own & theirs}
    if equal:
        shared -= _LOOSE
    if "time" in equal and _NUMBER not in equal:
        shared.discard("span")  # "19 h 30" is both
    return not shared <= equal


def _all_values(listed: Iterable[_AmountInText]) -> frozenset[_Value]:
    return frozenset(chain.from_iterable(each.values for each in listed))


# Number words


def _parts(normal: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Words, signs and numbers, those of words in digits; and where each begins and ends."""
    tokens = list(_TOKEN.finditer(normal))
    spelled = [_spelled(token) for token in tokens]
    if _NUMBER_WORDS.isdisjoint(spelled) and "tausend" not in normal:  # most often
        return spelled, [token.span() for token in tokens]
    has_power = not _POWERS.keys().isdisjoint(spelled)
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    place = 0
    while place < len(tokens):
        may_begin = spelled[place] in _VALUES or spelled[place] in ONES or "tausend" in spelled[place]
        value, end = _by_half(spelled, place) if has_power else (None, place + 1)
        if may_begin and value is None:
            value, end = _in_words(spelled, place)
        if (
            value is not None
            and spelled[end - 1] in _POWERS
            and _AND_A_HALF.match(" ".join(spelled[end : end + 3]))
        ):
            value += _POWERS[spelled[end - 1]] // 2
            end += 3 if spelled[end] == "and" else 2
        parts.append(spelled[place] if value is None else str(value))
        places.append((tokens[place].start(), tokens[end - 1].end()))
        place = end
    return parts, places


def _spelled(token: re.Match[str]) -> str:
    if token.lastgroup is None:
        return token[0]
    return numeral(token[0]) if token.lastgroup == "numeral" else token[0].replace(" ", "")


def _by_half(tokens: Sequence[str], start: int) -> tuple[int | None, int]:
    """The number of "half a million" or "one and a half million", and the place behind it."""
    match = _BEFORE_POWER.match(" ".join(tokens[start : start + 6]))
    if not match:
        return None, start + 1
    whole, power, end = match["whole"], _POWERS[match["power"]], start + match[0].count(" ") + 1
    if match["quarter"]:
        return power * (3 if match["times"] else 1) // 4, end
    if not whole:
        return power // 2 + (power if match["more"] else 0), end
    value = 1 if whole in ONES else int(whole) if whole.isdecimal() else _VALUES.get(whole)
    return (None if value is None else value * power + power // 2), end


def _in_words(tokens: Sequence[str], start: int) -> tuple[int | None, int]:
    """The number in words that begins there, and the place behind it."""
    value, end = None, start + 1
    for place in range(start, len(tokens)):
        one = _value_of(tokens, place)
        if one is None:
            if value is None or place > end or tokens[place] not in _JOINING:
                break
            continue
        joined = one if value is None else _joined(value, one)
        if joined is None:
            break
        value, end = joined, place + 1
    return value, end


def _value_of(tokens: Sequence[str], place: int) -> int | None:
    """The number of one word; "one" and "cent" are words of other meaning, unless numbers are around them."""
    token = tokens[place]
    earlier, before = ["", "", *tokens[max(0, place - 2) : place]][-2:]
    after = next(iter(tokens[place + 1 : place + 2]), "")
    if token in ONES:
        tens = _VALUES.get(earlier if before in _JOINING else before, 0)
        is_counted = _VALUES.get(after) in _FACTORS or [*tokens[place + 1 : place + 4]] == _WITH_A_HALF
        return 1 if 20 <= tens < _HUNDRED or is_counted else None
    if token in _CENTS and before not in _FRENCH_DIGITS and (before[:1].isdigit() or before in _NO_HUNDRED):
        return None
    if token in _MONTHS_OR_NUMBERS and f"{before} {after}".strip(" ,.")[:1].isdigit():
        return None
    thousands, found, rest = token.partition("tausend")
    if found and not {thousands, rest} - _VALUES.keys() - {"", "ein"}:
        return _VALUES.get(thousands, 1) * 1000 + _VALUES.get(rest, 0)
    return _VALUES.get(token)


def _joined(value: int, one: int) -> int | None:
    """A number with its next word: 2 and 100, 20 and 5, or 4 and 20 of French; None if they do not go together."""
    upper, lower = divmod(value, 1000)
    if one == _HUNDRED:
        return upper * 1000 + lower * _HUNDRED if 0 < lower < 20 else None
    if one in _FACTORS:
        return value * one if value < one else None
    rest = value % _HUNDRED
    if rest == 4 and one == 20:
        return value + 76
    most = 1000 if lower == 0 else _HUNDRED if rest == 0 else 20 if rest in (60, 80) else 10
    fits = rest % 10 == 0 and (rest != 10 or one > 6)  # "dix-sept"
    return value + one if fits and one < most else None


# What an expression may mean


@cache
def _patterns() -> list[
    tuple[Callable[[re.Match[str]], Iterable[_Value]], re.Pattern[str], AbstractSet[str]]
]:
    """With the words of which each needs one. Compiled when the first is read: it takes as long as many imports."""
    return [
        (values_of, re.compile(pattern), frozenset(signs.split())) for values_of, pattern, signs in _PATTERNS
    ]


def _numbers(match: re.Match[str]) -> list[_Number]:
    """What digits may mean: three behind the only point or comma are thousands or decimals."""
    digits = match["n"]
    canonical = canonical_number(digits)
    values: list[_Number] = [_exactly(canonical)] if _DECIMAL.fullmatch(canonical) else []
    if _AMBIGUOUS.fullmatch(digits):
        values = [Fraction(digits.replace(",", ".")), Fraction(digits.replace(",", "").replace(".", ""))]
    in_short = match.groupdict().get("in_short")
    power = int(match["power"] or 1) * (_IN_SHORT[in_short] if in_short else 1)
    return [value * power for value in values] if power > 1 else values


def _exactly(decimal: str) -> _Number:
    return int(decimal) if decimal.isdigit() else Fraction(decimal)


def _plain(match: re.Match[str]) -> Iterator[_Value]:
    return ((_NUMBER, value) for value in _numbers(match))


def _measure(match: re.Match[str]) -> Iterator[_Value]:
    """Of a number with a unit, and of "an hour and a half", "2 euros 10" and "4 hours 30 minutes"."""
    groups = match.groupdict()
    values = _numbers(match) if groups.get("n") else [1]
    half = Fraction(1, 2) if groups.get("half") or groups.get("half_more") else 0
    if match["unit"] in _IN_SHORT and match["unit"] != "m":  # which may be metres
        yield from ((_NUMBER, value * _IN_SHORT[match["unit"]]) for value in values)  # "4m people"
    for dimension, kind, factor in _MEANINGS.get(match["unit"], ()):
        more: _Number = int(groups.get("minor") or 0)
        if more:
            smaller = [
                each for _, other, each in _MEANINGS.get(groups.get("smaller") or "", ()) if other == kind
            ]
            more *= smaller[0] if smaller else Fraction(factor) / (_HUNDRED if dimension == _MONEY else 60)
        yield from ((dimension, (kind, (value + half) * factor + more)) for value in values)


def _part(match: re.Match[str]) -> Iterator[_Value]:
    """Of half or a quarter of a unit."""
    share = Fraction(int(match["times"] or 1), 4 if match["quarter"] else 2)
    return (
        (dimension, (kind, factor * share)) for dimension, kind, factor in _MEANINGS.get(match["unit"], ())
    )


def _ratio(match: re.Match[str]) -> Iterator[_Value]:
    part, whole = Fraction(match["part"] if match["part"].isdigit() else 1), Fraction(match["whole"])
    if 0 < part < whole:
        yield _PERCENT, ("", Fraction(round(_HUNDRED * part / whole)))


def _share(match: re.Match[str]) -> Iterator[_Value]:
    if match["behind"].strip() in _MEANINGS:
        return
    whole = next(size for size, words in _SHARES.items() if match["share"] in words.split())
    yield _PERCENT, ("", Fraction(round(_HUNDRED * Fraction(match["times"] or 1) / whole)))


def _time(match: re.Match[str]) -> Iterator[_Value]:
    """Of a time of day; one in words may be in either half of the day, unless the text tells."""
    groups = match.groupdict()
    hour = int(match["hour"])
    shift = next((shift for name, shift in _SHIFTS.items() if groups.get(name)), None)
    minutes = int(groups.get("minutes") or 0) if shift is None else shift
    if hour > 24 or (match[0].isdecimal() and _is_counted(match)):
        return
    if match["pm"] or match["am"]:
        hours = [hour % 12 + (12 if match["pm"] else 0)] if hour <= 12 else [hour]
    else:
        hours = [hour] if shift is None or hour > 12 else [hour, hour + 12]
    yield from (("time", (each * 60 + minutes) % _DAY) for each in hours)


def _is_counted(match: re.Match[str]) -> bool:
    """Whether a unit or a word such as "million" is behind it, so that a mere number is no time of day and no date."""
    behind = match.string[match.end() :].split(maxsplit=1)[:1]
    return bool(behind) and (behind[0] in _MEANINGS or _POWER.fullmatch(behind[0]) is not None)


def _often(match: re.Match[str]) -> Iterator[_Value]:
    yield "times", ("", Fraction(_OFTEN.split().index(match[0]) % 3 + 1))


def _noon(match: re.Match[str]) -> Iterator[_Value]:
    yield "time", _DAY // 2 if match["noon"] else 0


def _date(match: re.Match[str]) -> Iterator[_Value]:
    """Of a day and a month, with or without the year; in figures the month may be first."""
    day, month, year = match["day"], match["month"], int(match["year"] or 0)
    if _DECIMAL.fullmatch(match[0]) and _is_counted(match):
        return
    in_order = (int(_MONTH_NUMBERS.get(month, month)), int(day))
    orders = (
        [in_order] if month in _MONTH_NUMBERS or match.re.pattern == _ISO_DATE else [in_order, in_order[::-1]]
    )
    for one, other in orders:
        if 1 <= one <= 12 and 1 <= other <= 31:
            yield "date", (one, other)
            if year:
                yield "day", (year if year > 99 else 2000 + year, one, other)


def _month(match: re.Match[str]) -> Iterator[_Value]:
    """Of a month and a year."""
    month = int(_MONTH_NUMBERS.get(match["month"], match["month"]))
    if 1 <= month <= 12:
        yield "month", (int(match["year"]), month)


def _rank(match: re.Match[str]) -> Iterator[_Value]:
    """Of "third", "3rd" or "floor 3"; "a third" is a share, and "a second" a time."""
    rank = match["rank"]
    if rank.isdecimal():
        yield "rank", int(rank)
        return
    before = match.string[max(0, match.start() - _LONGEST_BEFORE) : match.start()].split()[-1:]
    if not before or not (before[0].isdecimal() or before[0] in _NO_RANK_BEHIND):
        yield "rank", _RANKS[rank]


def _code(match: re.Match[str]) -> Iterator[_Value]:
    yield "code", match["letter"] + match["digits"]


_NUMBER, _PERCENT, _MONEY = "number", "percent", "money"
_LOOSE = frozenset((_NUMBER, "time", "code", "rank"))
"""Dimensions of mere numbers."""
_WITH_UNITS = frozenset(("mass", "length", "volume", "span", "memory", "heat", _MONEY, _PERCENT))
"""Dimensions of which a number says nothing without its unit."""
_HUNDRED = 100
_DAY = 24 * 60
_FACTORS = frozenset((_HUNDRED, 1_000, 1_000_000, 1_000_000_000))
_JOINING = frozenset(("-", "and", "und", "et", "y"))
_WITH_A_HALF = ["and", "a", "half"]
_FRENCH_DIGITS = frozenset(("deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"))
_SEPTEMBER = "sept"
_MONTHS_OR_NUMBERS = frozenset((_SEPTEMBER, "dez"))
"""Short for a month, and 7 in French, or 10 in Portuguese."""
_CENTS = frozenset(("cent", "cents"))
_NO_HUNDRED = frozenset(("per", "pour", "por")) | ONES | NUMBER_WORDS.keys() - _FRENCH_DIGITS
"""Before "cent", they make it no hundred."""
_IN_WORDS = ("tausend", "viertelstund")
"""Parts of German words that are amounts, such as "dreitausendfünfhundert"."""


_FURTHER = """
    due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette
    diciotto diciannove venti
    dois tres quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete dezoito
    dezenove vinte
    twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien
    negentien twintig
"""
"""Numbers from 2 in Italian, Portuguese and Dutch, where each word is known to be a number by what is around it."""


def _values() -> dict[str, int]:
    found = {word: int(digits) for word, digits in NUMBER_WORDS.items()} | {"vingts": 20, _SEPTEMBER: 7}
    found |= {word: 2 + place % 19 for place, word in enumerate(_FURTHER.split())}
    ones = ["ein", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun"]
    tens = [word for word in found if word.endswith(("zig", "ssig"))]
    found |= {f"{one}und{ten}": found[ten] + digit for digit, one in enumerate(ones, 1) for ten in tens}
    below = {"": 0, "ein": 1, "eins": 1} | {word: value for word, value in found.items() if value < _HUNDRED}
    hundreds = [(1, ""), *enumerate(ones, 1)]
    found |= {f"{one}hundert{word}": 100 * digit + below[word] for digit, one in hundreds for word in below}
    spanish = "un dos tres cuatro cinco seis siete ocho nueve uno"
    found |= {f"veinti{one}": 21 + digit % 9 for digit, one in enumerate(spanish.split())}
    spanish = "dosci tresci cuatroci quini seisci seteci ochoci noveci"
    found |= {
        f"{one}ent{end}": 100 * digit for digit, one in enumerate(spanish.split(), 2) for end in ("os", "as")
    }
    found |= dict.fromkeys(("hundred", "cent", "cents", "ciento", "cien"), 100)
    found |= dict.fromkeys(("thousand", "tausend", "mille", "mil"), 1_000)
    found |= dict.fromkeys(("million", "millions", "millionen", "millon", "millones", "mio"), 1_000_000)
    return found | dict.fromkeys(
        ("billion", "milliarde", "milliarden", "milliard", "milliards", "mrd"), 1_000_000_000
    )


_VALUES = _values()
"""Of words in normal form. A German number below a thousand is one word."""
_NUMBER_WORDS = _VALUES.keys() | ONES
_POWERS = {word: value for word, value in _VALUES.items() if value in _FACTORS - {_HUNDRED}}
_BEFORE_POWER = re.compile(
    r"(?:half(?: an?)?|halbe[nr]?|demi -|medi[ao]|(?P<more>anderthalb|eineinhalb)"
    r"|(?:(?P<times>3|three) )?(?P<quarter>quarters? of a)"
    rf"|(?P<whole>[^\W_]{{1,12}}?)(?: and a half|einhalb)) (?P<power>{'|'.join(_POWERS)})(?= |$)"
)
_AND_A_HALF = re.compile("(?:and a half|et demie?|y medi[ao])(?= |$)")
_SHARE_SIGNS: Mapping[str, frozenset[_Value]] = {
    sign: frozenset(((_PERCENT, ("", Fraction(share))),)) for sign, share in (("½", 50), ("¼", 25), ("¾", 75))
}
_LONE_SIGN = re.compile(r"(?<!\d)(?<!\d )[½¼¾]")
_TOKEN = re.compile(
    r"(?P<spaced>[1-9](?<![\d.,:/]\d)(?<!\d \d)\d{0,2}(?: \d{3}){1,6}+(?:[.,]\d{1,2})?(?![.,:/]?\d| \d))"
    rf"|(?P<numeral>{NUMERAL.pattern})|{MEASURE.pattern}|\d\d?\.\d\d?\.(?:\d{{2,4}})?(?!\d)"
    r"|\d{1,20}+(?:[.,:]\d{1,20}+){0,8}+|[a-z]+|[^\W\d_]|[$€£¥%°/⁄-]"
)
_DIGIT = re.compile(rf"\d|[½¼¾]|{NUMERAL.pattern}")
_LETTERS = re.compile("[a-z]+")
_DIGITS = re.compile(r"\d+")
_POWER = re.compile("1(?:000){1,3}")
_SHORT_UNIT = re.compile(r"\d\s?[^\W\d_](?!\w)")
_CODE = re.compile(
    r"(?<![^\W_])(?!utc|gmt|kw|cw|rs|kr|us)[a-z]{2,20}\d{2,20}(?:[a-z]{1,20}\d{0,20})?(?![^\W_])"
)
"""A word of letters and digits: not "5kg" or "3rd". Of a single letter and digits, the words have one stem anyway."""
_ADDRESS = re.compile(r"(?<![\w.+-])[\w+-]++(?:\.[\w+-]++)*+@[\w-]++(?:\.[\w-]++)++")
_MAY_ASK_POWER = re.compile("hundr|hundert|thousand|tausend|mil|bil|mio|mrd|mld", re.IGNORECASE)
"""Told fast."""
_MAY_BE_CODE = re.compile(r"\d(?<=[^\W\d_][^\W\d_]\d)\d")
"""Begins with what is searched fastest."""
_WITHIN_CODE = re.compile(r"[-_/.\s]+")
_DECIMAL = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_AMBIGUOUS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_UNITS: Mapping[tuple[str, str, _Number], str] = {
    ("mass", "", 1): "mg milligram milligramm milligramme miligramo",
    ("mass", "", 1_000): "g gram gramm gramme gramo",
    ("mass", "", 1_000_000): "kg kilo kilogram kilogramm kilogramme kilogramo",
    ("mass", "", Fraction(283_495, 10)): "oz ounce",
    ("mass", "", 453_592): "lb lbs pound",
    ("length", "", 1): "mm millimeter millimetre milimetro",
    ("length", "", 10): "cm centimeter centimetre zentimeter centimetro",
    ("length", "", Fraction(254, 10)): "inch",
    ("length", "", Fraction(3_048, 10)): "ft foot feet",
    ("length", "", Fraction(9_144, 10)): "yd yard",
    ("length", "", 1_000): "m meter metre metro",
    ("length", "", 1_000_000): "km kilometer kilometre kilometro",
    ("length", "", 1_609_344): "mi mile meile milla",
    ("volume", "", 1): "ml milliliter millilitre mililitro",
    ("volume", "", 1_000): "l liter litre litro",
    ("span", "", 1): "sec second sekunde seconde segundo secondo secondi sekund",
    ("span", "", 60): "min mins minute minuto minuti minuut minut",
    ("span", "", 3_600): "h hr hrs hour std stunde heure hora ora ore uur uren godzin godziny",
    ("span", "", 86_400): "day days tag tage tagen jour dia dias giorno giorni dag dagen dni",
    ("span", "", 604_800): "week woche semaine semana settimana settimane weken tygodni tygodnie",
    ("span", "", 1_209_600): "fortnight",
    ("span", "", 2_629_800): "month monat mois mes meses mese mesi maand miesiac miesiecy miesiace",
    ("span", "", 31_557_600): "year jahr an ans annee ano anos anno anni jaar jaren lat lata",
    ("memory", "", 1): "kb ko kilobyte",
    ("memory", "", 1_000): "mb mo megabyte",
    ("memory", "", 1_000_000): "gb go gigabyte",
    ("memory", "", 1_000_000_000): "tb terabyte",
    ("heat", "C", 1): "°_c °c celsius degree grad degre grado ° degree_celsius degrees_celsius grad_celsius"
    " degre_celsius degres_celsius grado_celsius grados_celsius",
    (
        "heat",
        "F",
        1,
    ): "°_f °f fahrenheit degree_fahrenheit degrees_fahrenheit grad_fahrenheit degre_fahrenheit"
    " degres_fahrenheit grado_fahrenheit grados_fahrenheit",
    (_MONEY, "euro", 1): "euro eur €",
    (_MONEY, "dollar", 1): "dollar dolar usd $ buck",
    (_MONEY, "pound", 1): "pound pfund gbp £",
    (_MONEY, "yen", 1): "yen jpy ¥",
    (_MONEY, "yuan", 1): "yuan rmb cny ¥",
    (_MONEY, "euro", Fraction(1, 100)): "ct cent centime centimo",
    (_MONEY, "dollar", Fraction(1, 100)): "cent",
    (_PERCENT, "", 1): "% percent prozent per_cent pour_cent por_ciento pct",
    ("times", "", 1): "times mal fois veces x",
}
"""Dimension, kind and factor, by what a unit is called in normal form; what has several kinds may be any of them."""


def _meanings() -> dict[str, list[tuple[str, str, _Number]]]:
    found: dict[str, list[tuple[str, str, _Number]]] = {}
    for (dimension, kind, factor), listed in _UNITS.items():
        for word in listed.replace("_", "\0").split():
            for end in _ENDS if len(word) > 3 and word.isalpha() else ("",):
                found.setdefault(word.replace("\0", " ") + end, []).append((dimension, kind, factor))
    return found | {word: found[unit] for word, unit in MEASURE_OF.items() if unit in found}


_ENDS = ("", "s", "e", "n", "en", "es")
_MEANINGS = _meanings()
_LAST = "(?= |$)"
_IN_SHORT = {"k": 1_000, "m": 1_000_000, "mn": 1_000_000, "mio": 1_000_000, "bn": 1_000_000_000}
"""Behind an amount of money: "€21m"."""
_N = r"(?P<n>\d+(?:[.,]\d+)*)(?: (?P<power>1(?:000){1,3}))?"
_UNIT = r"°(?: [cf])?|[^ \d]+(?: celsius| fahrenheit| cent| ciento)?"
_SMALLER = r"min\w*|cents?|ct|centim\w*|centavos|pence|cm|g|gram\w*|days?|tage?n?|jours?|dias?|mon\w*|mois|mes(?:es)?"
_WITH_HUNDREDTHS = "euros?|€|dollars?|dolares|[$]|pounds?|pfund|£|h|heures?|hours?|stunden?|horas?"
_ONE = rf"(?:1|a|an|{'|'.join(ONES)}|einer|eines|einem)"
_HALF = "and a half|et demie?|y medi[ao]"
_SHIFTS = {"half_past": 30, "past": 15, "half_to": -30, "to": -15}
_HOUR = r"(?P<hour>\d\d?)"
_PM = "p m|pm|afternoon|evening|at night|abends|nachmittags|soir|midi|tarde|noche"
_AM = "a m|am|morning|morgens|vormittags|matin|manana"
_HALF_OF_DAY = rf"(?: (?:in the |de la |du |de l apres - )?(?:(?P<pm>{_PM})|(?P<am>{_AM})){_LAST})?"
_OF_UNIT = rf"(?: -)?(?: (?:of|de|d))?(?: an?)? (?P<unit>{_UNIT}){_LAST}"
_SHARES = {
    2: "half halfte moitie mitad",
    3: "third thirds drittel tiers tercio tercios",
    4: "quarter quarters viertel quart quarts cuarto cuartos",
    5: "fifth fifths funftel cinquieme cinquiemes",
}
_RANKS = {
    word: number
    for listed in (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "erste zweite dritte vierte funfte sechste siebte achte neunte zehnte elfte zwolfte",
        "ersten zweiten dritten vierten funften sechsten siebten achten neunten zehnten elften zwolften",
        "erster zweiter dritter vierter funfter sechster siebter achter neunter zehnter elfter zwolfter",
        "premier deuxieme troisieme quatrieme cinquieme sixieme septieme huitieme neuvieme dixieme",
        "premiere second",
        "primero segundo tercero cuarto quinto sexto septimo octavo noveno decimo",
        "primera segunda tercera cuarta quinta sexta septima octava novena decima",
        "primer seconde tercer",
    )
    for number, word in enumerate(listed.split(), 1)
}
_NO_RANK_BEHIND = ONES.union(_VALUES, ("a", "an", "per", "each", "every", "einer", "pro", "por", "cada"))
_LONGEST_BEFORE = 10
_RANKED = "floor|level|step|stage|option|platform|number|stock|etage|stufe|piso|planta|nivel"
_RANK_IN_FIGURES = re.compile(
    rf"\d\d?(?:st|nd|rd|th|er|re|e|eme|ème|º|ª|\.? (?:{_RANKED}))\b|(?:{_RANKED}) \d"
)
_STEMS_OF_RANKS = frozenset(map(stem, _RANKS))
_OFTEN = "once twice thrice einmal zweimal dreimal"
_NOON, _MIDNIGHT = "noon|midi|mittags?|mediodia", "midnight|minuit|mitternachts?|medianoche"
_MONTH_NUMBERS = {word[:3]: number for word, number in MONTH_NUMBERS.items()} | {
    **MONTH_NUMBERS,
    _SEPTEMBER: 9,
}
_MONTH = rf"(?P<month>{'|'.join(_MONTH_NUMBERS)})"
_YEAR = rf"(?: (?P<year>\d{{4}}))?{_LAST}"
_ISO_DATE = rf"(?P<year>\d{{4}}) - (?P<month>\d\d?) - (?P<day>\d\d?){_LAST}"
_PATTERNS: Sequence[tuple[Callable[[re.Match[str]], Iterable[_Value]], str, str]] = (
    (_plain, rf"{_N}{_LAST}(?! (?:[ap] ?m\b|[点點時时]))", "0"),
    (
        _measure,
        rf"{_N}(?: -)?(?: (?P<half>{_HALF}))? (?P<unit>{_UNIT}){_LAST}(?: (?P<half_more>{_HALF}){_LAST}"
        rf"|(?: and| und| et| y| con)? (?P<minor>\d\d?) (?P<smaller>{_SMALLER}){_LAST})?",
        "0",
    ),
    (_measure, rf"{_N} (?P<unit>{_WITH_HUNDREDTHS}) (?P<minor>\d\d){_LAST}", "0"),
    (_measure, rf"(?P<unit>[€$£¥]) {_N}(?: (?P<in_short>{'|'.join(_IN_SHORT)}))?{_LAST}", "€ $ £ ¥"),
    (
        _measure,
        rf"{_ONE} (?P<unit>{_UNIT}){_LAST}(?: (?P<half>{_HALF}){_LAST})?",
        f"0 a an einer eines einem {' '.join(ONES)}",
    ),
    (
        _part,
        rf"(?<!and a )(?P<times>)(?P<quarter>)(?:half|halbe[nrs]?|demie?|medi[ao]){_OF_UNIT}",
        "half halbe halben halber halbes demi demie media medio",
    ),
    (
        _part,
        rf"(?:(?P<times>3) )?(?P<quarter>quarter|quart|cuarto)s?{_OF_UNIT}",
        "quarter quarters quart quarts cuarto cuartos",
    ),
    (_part, rf"(?P<times>)(?P<quarter>viertel)(?P<unit>stunde){_LAST}", "viertelstunde"),
    (
        _ratio,
        r"(?P<part>\d+|one|eine?[nrms]?|une?|uno) (?:in|out of|von|sur|de cada|/|⁄) (?P<whole>\d+)"
        r"(?= |$)(?! [/-])",
        "0",
    ),
    (
        _share,
        rf"(?:(?P<times>\d) )?(?P<share>{'|'.join(' '.join(_SHARES.values()).split())}){_LAST}"
        r"(?! (?:an?|past|of an?|de hora|d heure|stunde|hour|heure) )(?P<behind>(?: \w+)?)",
        " ".join(_SHARES.values()),
    ),
    (
        _time,
        rf"{_HOUR}(?:[:.]| h | heures? | uhr )(?P<minutes>[0-5]\d)(?: (?:uhr|h))?{_HALF_OF_DAY}{_LAST}",
        "0",
    ),
    (
        _time,
        rf"{_HOUR}(?: h| heures?| uhr| o clock)?(?: (?:(?P<half_past>et demie?|y media)|(?P<past>et quart|y cuarto)"
        rf"|(?P<to>moins le quart|menos cuarto)))?(?: heures?| h)?{_HALF_OF_DAY}{_LAST}(?! [点點時时])",
        "0",
    ),
    (
        _time,
        r"(?:(?P<half_past>half past)|(?P<half_to>halb)|(?P<past>quarter past|viertel nach)"
        rf"|(?P<to>quarter to|viertel vor)) {_HOUR}{_HALF_OF_DAY}{_LAST}",
        "half halb quarter viertel",
    ),
    (_often, rf"(?:{_OFTEN.replace(' ', '|')}){_LAST}", _OFTEN),
    (
        _noon,
        rf"(?:(?P<noon>{_NOON})|{_MIDNIGHT}){_LAST}",
        "noon midi mittag mittags mediodia midnight minuit mitternacht mitternachts medianoche",
    ),
    (
        _date,
        r"(?P<day>\d\d?)(?: [/-] |\.)(?P<month>\d\d?)(?:\.?|(?: [/-] |\.)(?P<year>\d{4}|\d\d))(?= |$)",
        "0",
    ),
    (
        _date,
        rf"(?P<day>\d\d?)(?: (?:st|nd|rd|th|er|of|de))* {_MONTH}(?: del?)?{_YEAR}",
        " ".join(_MONTH_NUMBERS),
    ),
    (_date, rf"{_MONTH} (?:the )?(?P<day>\d\d?)(?: (?:st|nd|rd|th))?{_YEAR}", " ".join(_MONTH_NUMBERS)),
    (_date, _ISO_DATE, "0"),
    (_month, rf"(?<![/-] )(?P<month>\d\d?) [/-] (?P<year>\d{{4}}){_LAST}", "0"),
    (_month, rf"(?P<year>\d{{4}}) [/-] (?P<month>\d\d?){_LAST}(?! [/-])", "0"),
    (_month, rf"{_MONTH}(?: (?:of|de|del))? (?P<year>\d{{4}}){_LAST}", " ".join(_MONTH_NUMBERS)),
    (_rank, rf"(?P<rank>{'|'.join(_RANKS)}){_LAST}", " ".join(_RANKS)),
    (_rank, rf"(?P<rank>\d\d?) (?:st|nd|rd|th|er|re|e|eme|{_RANKED}){_LAST}", "0"),
    (_rank, rf"(?:{_RANKED}) (?P<rank>\d\d?){_LAST}", "0"),
    (_code, r"(?P<letter>[a-z]) (?:- )?(?P<digits>\d+)(?= |$)", "0"),
)
"""On a line of words, numbers and signs with spaces between them; "0" stands for any number."""
_WORDS = frozenset(
    f"{' '.join(_VALUES)} {' '.join(_SHARES.values())} halb halbe halben demi demie media medio {_OFTEN}".split()
)
_MAY_HAVE = (
    rf"\b(?:an?|einer|eines|einem|{'|'.join(ONES)})(?:\s+|')(?:{'|'.join(filter(str.isalpha, _MEANINGS))})\b"
    rf"|{_NOON}|{_MIDNIGHT}"
)
"""In normal form."""
