"""Signs of numbers: "-250", "−250" and "minus 250" are below zero, but not "5-7", "B-12" and the item "- 5". Pure.

And words of direction at numbers: "under 25" and "over 25", "up by 5%" and "down by 5%".
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache
from itertools import permutations

from rag_eval.texts.quantities import NUMBER_WORDS, canonical_number, one_amount
from rag_eval.texts.words import Reading, normalise, numbers, stem, stems_of


class _Sign(Enum):
    """How a number is written in one place of a text."""

    BELOW = "below zero"
    ABOVE = "above zero"
    UNSURE = "with a hyphen that may be a sign"


_Signs = Mapping[str, AbstractSet[_Sign]]
"""By number in normal form."""


def opposite_numbers(
    text: Reading,
    others: Sequence[Reading],
    query: str,
    small: AbstractSet[str] = frozenset(),
    *,
    all_answer: bool = False,
) -> AbstractSet[str]:
    """Numbers of a text with the opposite sign, or with the opposite bound or direction, in the others.

    The text answers the query, and the others may do so as well. `small` are stems of words that say nothing.
    """
    bounds = _opposite_bounds(text, others, query, query if all_answer else "", small)
    return bounds | _opposite_signs(text, others, query)


def _opposite_signs(text: Reading, others: Sequence[Reading], query: str) -> AbstractSet[str]:
    """Numbers that are below zero wherever a text has them, and above it wherever the others do, or the reverse.

    None where a word tells the direction: "a fall of 3%" is "-3%", and so is "3%" if the query asks for the fall.
    None if the others are long, in which it would take too much time.
    """
    if sum([len(each.text) for each in others]) > _MOST_CHARACTERS or not _DIGIT.search(text.text):
        return frozenset()
    below = _below((text.text,)) | _below(tuple([each.text for each in others]))
    if not below or below.isdisjoint(text.stems):  # most often
        return frozenset()
    own = {number: signs for number, signs in _signs((text,), below).items() if signs in _CERTAIN}
    theirs = _signs(others, own.keys())
    opposite = frozenset(number for number, signs in own.items() if (signs, theirs.get(number)) in _OPPOSITE)
    if not opposite or _FALLING.search(query):
        return frozenset()
    return opposite.difference(*(_with_direction(each.text, opposite) for each in (text, *others)))


def _opposite_bounds(
    text: Reading, others: Sequence[Reading], query: str, query_of_others: str, small: AbstractSet[str]
) -> frozenset[str]:
    """Numbers that a text bounds or changes in one direction, and the others in the opposite one only.

    "Over 25" for "under 25", "down by 5%" for "up by 5%". None if one side denies, restricts or makes an exception
    that the other one does not make: "Children under 12 are free" says that those over 12 pay. A query belongs to
    what answers it. None in a long text if the others are long, which would take too much time.
    """
    if len(text.text) > _SHORT and sum([len(each.text) for each in others]) > _MOST_CHARACTERS:
        return frozenset()
    shared = {number for number in numbers(text.stems) if any(number in each.stems for each in others)}
    told: set[str] = set()
    own = _directions((text,), query, shared, told) if shared else {}
    wanted = {
        number: {(_OTHER_WAY[way], turning) for way, turning in said}
        for number, said in own.items()
        if len(said) == 1 and all(way for way, _ in said)
    }
    if not wanted or not _says_nothing_else(text, others, query, told | small):
        return frozenset()
    theirs = _directions(others, query_of_others, wanted.keys(), set())
    return frozenset(number for number, said in wanted.items() if theirs.get(number) == said)


def _says_nothing_else(
    text: Reading, others: Sequence[Reading], query: str, besides: AbstractSet[str]
) -> bool:
    """Whether all words of a text but its bounds, and those `besides`, are in the others, or in the query.

    Another word may turn the bound: "Under 16 they are denied entry" says what "Over 16 they are admitted" says.
    """
    known = _OF_BOUNDS.union(besides, stems_of(query), *(each.stems for each in others))
    return known.issuperset(text.stems)


def _directions(
    readings: Iterable[Reading], query: str, wanted: AbstractSet[str], told: set[str]
) -> Mapping[str, AbstractSet[tuple[str, AbstractSet[str]]]]:
    """By number: its directions, empty where it has none, and what words of the sentence or the query turn them.

    `told` receives the stems of what tells the directions.
    """
    found: dict[str, set[tuple[str, AbstractSet[str]]]] = {}
    first_digits = {number.rstrip("0") for number in wanted}  # "two" may be that of two million
    spelled = [word for word, digits in NUMBER_WORDS.items() if digits.rstrip("0") in first_digits]
    for normal in [normalise(each.text) for each in readings if not wanted.isdisjoint(each.stems)]:
        pattern = _BOUNDED if any(word in normal for word in spelled) else _BOUNDED_DIGITS
        for match in pattern.finditer(normal):
            number = _value(normal, match)
            if number in wanted:
                way, start, end = _direction(normal, match)
                turning = _TURNING.findall(_around(normal, start, end) + normalise(query)) if way else ()
                told.update(stems_of(normal[start:end]) if way else ())
                found.setdefault(number, set()).add((way, frozenset(turning)))
    return found


def _value(text: str, match: re.Match[str]) -> str:
    """The number in normal form, with the power of ten behind it: "12000000" of "12 million"."""
    number = canonical_number(stem(match["n"]))
    power = _POWER.match(text, match.end("n"))
    return one_amount((number, stem(normalise(power[1]))))[0] if power else number


def _around(text: str, start: int, end: int) -> str:
    """The rest of the sentence with this part, as far as it is near."""
    before = _SENTENCE_END.split(text[max(0, start - _NEAR) : start])[-1]
    return f"{before} {_SENTENCE_END.split(text[end : end + _NEAR], maxsplit=1)[0]} "


def _direction(normal: str, number: re.Match[str]) -> tuple[str, int, int]:
    """The direction of a number, empty if it has none, with what negates it; and where it all begins and ends."""
    start, end = number.span()
    before = _BOUND_BEFORE.search(normal, max(0, start - _FAR), start)
    found = before or _BOUND_BEHIND.match(normal, end) or _CHANGE_BEHIND.match(normal, end)
    if found is None or _AHEAD.match(normal, end):
        return "", start, end
    way = next(name for name, words_ in found.groupdict().items() if words_ and name != "negated")
    is_negated = before is not None and before["negated"] is not None
    return _OTHER_WAY[way] if is_negated else way, min(start, found.start()), max(end, found.end())


def restated_signs(text: Reading, others: Sequence[Reading]) -> AbstractSet[str]:
    """Stems of the words for minus in a text, if the others have a number of it with a sign that says the same."""
    said = _WORDS & text.stems
    if not said:
        return frozenset()
    own = _signs((text,), _below((text.text,)))
    theirs = _signs(others, own.keys())
    is_same = any(signs == theirs.get(number) == {_Sign.BELOW} for number, signs in own.items())
    return said if is_same else frozenset()


@lru_cache(maxsize=16)  # the chunks of a row, for each of its bots
def _below(texts: tuple[str, ...]) -> AbstractSet[str]:
    """Numbers that may be below zero in these texts."""
    return frozenset(
        _value(text, match)
        for text in texts
        for pattern in _patterns(text)
        for match in pattern.finditer(text)
    )


def _patterns(text: str) -> Iterator[re.Pattern[str]]:
    """Those that can find something."""
    if "-" in text:
        yield _HYPHEN
    if not text.isascii() and ("−" in text or "－" in text):
        yield _OTHER_MINUS
    if any(word in text for word in _SAID):
        yield _WORD


def _signs(readings: Iterable[Reading], wanted: AbstractSet[str]) -> _Signs:
    """Of those of the wanted numbers that the texts have."""
    found: dict[str, AbstractSet[_Sign]] = {}
    for reading in readings if wanted else ():
        text, first_line = reading.text, -1
        for match in _numbers(text):
            number = _value(text, match)
            if number in wanted:
                first_line = _first_line(text) if first_line < 0 else first_line
                found[number] = found.get(number, frozenset()) | {_sign(text, match, first_line)}
    return found


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """The numbers that are not the rest of one, as ".5" is."""
    return (match for match in _NUMBER.finditer(text) if text[match.start() - 1 : match.start()] not in _REST)


def _first_line(text: str) -> int:
    """Where the first line ends, behind which a hyphen at the beginning of a line is a bullet; 0 in a list."""
    line = _FIRST_LINE.match(text)
    return 0 if line is None or len(_BULLET.findall(text)) > 1 else line.end()


def _sign(text: str, number: re.Match[str], first_line: int) -> _Sign:
    start, end = number.span()
    if _UNSURE_BEHIND.match(text, end) or (text[start - 1 : start] == "(" and text[end : end + 1] == ")"):
        return _Sign.UNSURE
    before = _sign_before(text, start)
    if not before or before["plus"]:
        return _Sign.ABOVE
    is_none = before["unsure"] or _is_no_sign(text, before.start(), first_line)
    return _Sign.UNSURE if is_none else _Sign.BELOW


def _sign_before(text: str, start: int) -> re.Match[str] | None:
    return _SIGN_BEFORE.search(text, max(0, start - _LONGEST_SIGN), start)


def _is_no_sign(text: str, start: int, first_line: int) -> bool:
    """Whether it begins an item of a list, subtracts, or stands in a range: "5 -7", "9 am -5 pm"."""
    line = text[max(0, start - _FAR) : start].rpartition("\n")[2]
    is_item = start >= first_line and not text[start].isalpha() and not line.strip()
    return is_item or _AMOUNT_OR_LEAST.search(text, max(0, start - _FAR), start) is not None


def _with_direction(text: str, wanted: AbstractSet[str]) -> Iterator[str]:
    """Those of the numbers that have a word near them that makes them less than nothing, but for that of their sign."""
    for match in _numbers(text):
        number = _value(text, match)
        if number in wanted:
            before = _sign_before(text, match.start())
            start, end = before.start() if before else match.start(), match.end()
            is_plus = before is not None and before["plus"] is not None
            around = f"{text[max(0, start - _FAR) : start]} {text[end : end + _FAR]}"
            if not is_plus and _FALLING.search(around):
                yield number


_CERTAIN = (frozenset((_Sign.BELOW,)), frozenset((_Sign.ABOVE,)))
_OPPOSITE = tuple(permutations(_CERTAIN))
_MOST_CHARACTERS = 2_000
"""Of texts whose signs are read."""
_NEAR = 300
"""Characters before and behind a number that may be of its sentence."""
_SHORT = 200
"""Characters of a text whose bounds are compared, however long the others are."""
_LONGEST_SIGN = 10
"""Characters: "minus EUR "."""
_FAR = 60
"""Characters around a number in which a word may tell its direction."""
_SAID = ("inus", "oins", "eno")
"""Of the words for minus, what is never a capital letter."""
_WORDS = frozenset(map(stem, ("minus", "moins", "menos", "meno")))
_BULLET = re.compile(r"^[ \t]*[-−–*•]", re.MULTILINE)
_FIRST_LINE = re.compile(r"\s*+[^\n]*+")
_DIGITS = r"\d++(?:[.,]\d++)*+"
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"(?P<n>\d(?:\d*+(?:[.,]\d++)*+))")
_REST = (".", ",")
_MONEY = r"(?:[€$£¥₹]\s?|(?<![^\W\d_])(?:EUR|USD|GBP|CHF|JPY|CNY|INR|PLN|US[$])\s?)?"
_SIGN_BEFORE = re.compile(
    r"(?:(?:^|(?<=[\s(\[{\"'“„«=≈~<>≤≥:*_|`€$£¥₹はがをにでもとの是為为約约到至]))[-−－]"
    r"|(?<![\w'’])(?:minus|moins|menos|meno)\s"
    r"|(?<!\w)(?P<plus>[+＋])"
    rf"|(?P<unsure>[-−－–—±+/:]\s?|[^\W\d_])){_MONEY}\Z",
    re.IGNORECASE,
)
_AFTER_SIGN = rf"{_MONEY}(?P<n>{_DIGITS})"
_HYPHEN = re.compile(rf"-(?=[\d€$£¥₹A-Z])(?<![A-Za-z0-9]-){_AFTER_SIGN}")
_OTHER_MINUS = re.compile(rf"[−－]{_AFTER_SIGN}")
_WORD = re.compile(rf"(?:minus|moins|menos|meno)\s{_AFTER_SIGN}", re.IGNORECASE)
_UNSURE_BEHIND = re.compile(r"[.,]?[-−–—]|[/:]\d")
_AMOUNT_OR_LEAST = re.compile(
    r"(?:\d\W?|\d[^\s\d:;,.=|]{0,3}\s+(?:(?:[ap]\.?m\.?|h|uhr|°\s?[cf]?|%|[€$£¥]|k?g|[kmc]?m)\s+)?"
    r"|(?<!\w)(?:au|al|lo|pelo|du|à|de|en|ou)\s)\Z",
    re.IGNORECASE,
)
"""What stands before a hyphen of a range, or before "moins" of "au moins"."""
_FALLING = re.compile(
    r"[%€$£]\s?off\b|\b(?:(?:percent|dollars|euros|pounds|much|taken|knocked)\soff\b"
    r"|fall|fell|drop|declin|decreas|down(?!load|town|stream)|loss|lost|lose|losing|lower(?!\s(?:limit|bound))|less|reduc"
    r"|discount|save[sd]?\b|saving\b|savings\b(?!\s(?:account|bank|book|plan|rate))|cheaper|below|under(?:\b|perf|sh)"
    r"|negativ|minus|debt|owe|deficit|overdr|shr[aiu]nk|sank|sink|slip|cuts?\b|slump|plung|contracted|dip(?:s|p\w+)?\b"
    r"|worse|miss(?:ed|es)?\b|shortfalls?\b|(?:euros|dollars|pounds)\sshort\b|in\sthe\sred\b(?!\s\w)"
    r"|sinkt|gesunk|fiel|gefall|fällt|rückgang|rückgäng(?!ig)|zurück|verl[uo]|abn|abgen|wenig|rabatt|nachl|ermäß"
    r"|unter(?:\b|halb|schr)|schuld|im\ssoll\b|defizit|reduz|senk|gesenk|günst|billig|minder(?!j)|kälter|frost"
    r"|fehlbetr|unterdeck|überzogen|miese"
    r"|baiss|chut|recul|diminu|perd|perte|rédu|remis|rabais|sous\b|dett|défici|inféri|négati|découvert|moins|manque\b"
    r"|ca[íye]|baj|descen|dismin|pérd|descuent|déficit|deud|rebaj|menor|menos|debajo"
    r"|cal(?:[oai]|ano|at[oaei]|are)\b|scend|sces[oaei]|scont|disavan|riduz|sotto\b|debit(?!\scard)|meno"
    r"|queda|cai(?!x)|desce|desci[ad]|descont|abaix|prejuí|dívid|negat"
    r"|da(?:al|len|ling)|gedaald|korting|verlies|onder\b|laag|(?-i:lager)\b|tekort"
    r"|spad|strat[aęyą]\b|zniż|rabat|poniż|mniej|obniż|ujemn|pokles|sleva|ztrát"
    r"|упа|сниж|сниз|пад|скид|убы|минус|ниже|долг|меньш|поте|сокра"
    r"|düş|azal|indirim|zarar|kayıp|eksi|altında|giảm|âm\b|lỗ|thấp|turun|rugi|diskon|bawah"
    r"|sjunk|minsk|förlust|fald|tab\b|underskud|nedgang|tap\b)"
    r"|[减減降跌亏虧损損负負欠]|零下|折|マイナス|氷点下|下落|赤字|割引|値引|下が|감소|하락|영하|마이너스|손실|할인"
    r"|انخف|تراجع|خصم|خسار|تحت|سالب|गिर|कम|घट|ऋण|ลด|ติดลบ|ขาดทุน",
    re.IGNORECASE,
)
"""Beginnings of words after which a number may be a loss, though it has no sign."""
_SENTENCE_END = re.compile(r"(?<!\bmax)(?<!\bmin)[.!?;](?=\s)|[。！？।؟\n]")
_POWER = re.compile(
    r"\s(hundred|thousand|million|billion|hundert|tausend|mio|mrd|mil|mille|mill?i\w+)\b", re.IGNORECASE
)
"""A power of ten behind a number."""
_BOUNDED_DIGITS = re.compile(
    rf"(?P<n>\d(?<![\w.,]\d)(?<![^\s(]-\d)(?:\d*+(?:[.,]\d++)*+))(?:{_POWER.pattern})?"
)
"""Begins with what is searched fastest."""
_BOUNDED = re.compile(
    rf"(?<![\w.,])(?<![^\s(]-)(?P<n>{_DIGITS}|(?:{'|'.join(NUMBER_WORDS)})\b)(?:{_POWER.pattern})?"
)
"""A number in digits or words, with its power of ten."""
_OTHER_WAY = {"less": "more", "more": "less", "down": "up", "up": "down"}
_LESS = (
    "under|below|up to|at (?:the )?most|maximum"
    "|(?:less|fewer|lower|younger|shorter|smaller|lighter|cheaper|colder|slower|earlier) than"
    "|unter|unterhalb von|bis zu|hochstens|maximal"
    "|(?:weniger|junger|kurzer|kleiner|niedriger|leichter|geringer|billiger) als"
    "|moins de|jusqu'a|au plus(?: tard)?|(?:au|en) dessous d[eu]|au-dessous d[eu]|inferieure?s? a"
    "|menos de|hasta|a lo sumo|como maximo|por debajo de|inferior(?:es)? a"
)
_MORE = (
    "over|above|beyond|exceed(?:s|ed|ing)?|at (?:the )?least|minimum"
    "|(?:more|greater|higher|older|longer|larger|bigger|heavier|taller|warmer|faster|later) than"
    "|uber|oberhalb von|mindestens|wenigstens|minimal|(?:mehr|alter|langer|grosser|hoher|schwerer|teurer) als"
    "|plus (?:de|tard que)|au moins|au plus tot|(?:au|en) dessus d[eu]|au-dessus d[eu]|superieure?s? a"
    "|mas de|al menos|por lo menos|como minimo|por encima de|superior(?:es)? a"
)
_DOWN = (
    r"(?:down|f[ae]ll(?:s|en|ing)?|drop\w*|decreas\w*|declin\w*|shr[aiu]nk\w*|lower(?:s|ed|ing)|reduc\w*|cut)"
    r"(?: by| of)?"
    r"|(?:sank\w*|sinkt|fiel\w*|fallt|verringer\w*|reduzier\w*|senk\w*)(?: sich)? um"
    r"|(?:baiss|diminu|recul|chut)\w* d[eu]"
    r"|(?:baj|cay|disminu|descen)\w* (?:en |de )?(?:un|el|del)"
)
_UP = (
    r"(?:up|rose|risen|ris(?:es?|ing)|increas\w*|gr[eo]w\w*|gain\w*|climb\w*|rais\w*)(?: by| of)?"
    r"|(?:st[ie]+g\w*|w[au]chs\w*|erhoh\w*)(?: sich)? um|(?:augment|hauss|progress)\w* d[eu]"
    r"|(?:sub|aument|crec)\w* (?:en |de )?(?:un|el|del)"
)
_OF_BOUNDS = frozenset(
    stems_of("""
        go went gone under below most less fewer lower younger shorter smaller lighter cheaper colder slower over
        above beyond exceed exceeds exceeded exceeding least more greater higher older longer larger bigger heavier
        taller warmer faster fall fell fallen falling drop dropped decrease decreased decline declined shrink shrank
        lowered reduce reduced cut down up rise rose risen rising increase increased grow grew grown gain gained
        climb climbed raise raised unter unterhalb bis höchstens weniger jünger kürzer kleiner niedriger leichter
        geringer billiger über oberhalb mindestens wenigstens mehr älter länger größer höher schwerer teurer sank
        sinkt fiel fällt gesunken gefallen stieg steigt gestiegen moins plus jusqu dessous dessus inférieur
        supérieur menos más hasta debajo encima superior
    """)
)
"""Stems of words that tell a bound or a direction."""
_BETWEEN = (
    "(?:the|an?|ages?|aged|of|is|are|amount|sum|value|about|around|eur|usd|gbp|chf|de|der|von|la|le|el|les)"
)
_BOUND_BEFORE = re.compile(
    r"(?<!\w)(?P<negated>(?:no|not|never|nicht|pas|nie)\s(?:be\s|have\s)?)?"
    rf"(?:(?P<less>{_LESS})|(?P<more>{_MORE})"
    rf"|(?P<down>{_DOWN})|(?P<up>{_UP}))"
    rf"\s(?:{_BETWEEN}\s){{0,4}}[€$£¥]?\s?[-−]?\Z"
)
_BOUND_BEHIND = re.compile(
    r"(?:\s?(?:[%€$£¥]|[a-z°]+)){0,2}?,?\s(?:or|and|oder|und|ou|et|y|o)\s(?:"
    "(?P<less>less|fewer|younger|under|below|lower|shorter|weniger|junger|darunter|moins|menos|menores)"
    "|(?P<more>more|older|over|above|up|upwards?|higher|longer|greater|mehr|alter|daruber|plus|mas|mayores))"
    r"(?!\w|\s(?:\d|to\b|or\s(?:less|more)|oder\s(?:weniger|mehr)|o\s(?:menos|mas)|ou\s(?:moins|plus)))"
)
_CHANGE_BEHIND = re.compile(
    r"(?:\s?(?:[%€$£¥]|[a-z°]+)){0,2}?\s(?:"
    "(?P<down>drop|decrease|decline|reduction|lower|gesunken|gefallen|zuruckgegangen|geschrumpft|verringert|reduziert"
    "|gesenkt|abgenommen|niedriger|inferieure?s?|inferior(?:es)?)"
    "|(?P<up>rise|increase|growth|higher|gestiegen|gewachsen|erhoht|zugenommen|gesteigert|hoher|superieure?s?"
    r"|superior(?:es)?))(?!\w|\s(?:than|als|qu|a|au)(?!\w))"
)
_AHEAD = re.compile(
    r"(?: \S+){1,2}? (?:before|prior|ahead|in advance|earlier|vor|vorher|zuvor|avant|a l'avance|antes)(?!\w)"
)
"""Of a time before something, the least and the most that one may wait are one bound."""
_TURNING = re.compile(
    r"(?<!\w)(?:no|not|never|none|nobody|nor|neither|cannot|without|except\w*|unless|only|free|exempt\w*|excluded|forbidden"
    r"|prohibited|banned|otherwise|instead|half|reduced|discount\w*"
    r"|off|closed?s?|shut|stop\w*|fail\w*|refus\w*|reject\w*|ineligible|illegal|geschlossen|abgelehnt|ferm\w*|cerrad\w*"
    r"|nicht|kein\w*|nie|ohne|ausser|ausgenommen|nur|erst|frei|kostenlos|gratis|befreit|verboten|sonst|halb\w*|ermassigt\w*"
    r"|ne|pas|sans|sauf|seul\w*|uniquement|gratuit\w*|interdit\w*|exclu\w*|reduit\w*"
    r"|sin|nunca|salvo|excepto|solo|solamente|exent\w*|prohibid\w*|reducid\w*)(?!\w)|n't(?!\w)|(?<!\w)n'"
)
"""What makes a sentence speak of those on the other side of a bound."""
