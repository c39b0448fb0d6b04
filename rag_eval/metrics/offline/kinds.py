"""What kind of answer the wording of a query asks for: a number, a date, a person or a place."""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from rag_eval.metrics.offline.asking import polar_stems
from rag_eval.texts.quantities import COUNTERS, MONTHS, NUMBER_WORDS, NUMERAL, WEEKDAYS
from rag_eval.texts.words import STOP_WORDS, normalise, stem, words


class _Kind(NamedTuple):
    """A kind of answer: its name, the queries that ask for it, and whether a response to a query gives it."""

    name: str
    asked: re.Pattern[str]
    is_given: Callable[[str, str], bool]
    carrying: AbstractSet[str]
    """Stems of words that an answer of this kind may have and that say nothing new: "in the year 1912"."""
    is_number: bool = False
    """Whether it is written with a number, as a date is."""
    is_certain: bool = True
    """Whether the wordings of such answers are known well enough to say that a response is none."""


@lru_cache(maxsize=2)
def expected_kind(query: str) -> _Kind | None:
    """What the query asks for, or None when its wording does not tell. English, German, French and Spanish.

    None for a query for yes or no, such as "Can I pay when I leave?".
    """
    wording = normalise(query)
    # Told fast: most often the query asks for something else.
    if _TRIGGERS.isdisjoint(_WORD.findall(wording)) and (
        query.isascii() or not _UNSPACED_TRIGGER.search(query)
    ):
        return None
    found = next((kind for kind in _KINDS if kind.asked.search(wording)), None)
    return None if found and polar_stems(query) else found


@lru_cache(maxsize=2)
def asks_for_person(query: str) -> bool:
    """Whether its wording does, in one of eight languages."""
    return _WHO.search(normalise(query)) is not None


def _gives_name(response: str, query: str) -> bool:
    """A capitalised word that is neither in the query nor a function word; other scripts pass."""
    if not response.isascii():
        return True
    capitalised = (name.lower() for name in _CAPITALISED.findall(response))
    return any(name not in STOP_WORDS and name not in _words_of(query) for name in capitalised)


@lru_cache(maxsize=2)
def _words_of(query: str) -> frozenset[str]:
    return frozenset(words(query))


def _stems(listed: str) -> frozenset[str]:
    return frozenset(map(stem, words(listed)))


_TRIGGERS = frozenset(
    words("""
        how what which when who whom whose where was preis prix precio wie wieviel wieviele combien cuanto cuanta
        cuantos cuantas wann quand cuando welchem quelle que wer wem wen wessen quien quienes qui wo donde ou
    """)
)
_UNSPACED_TRIGGER = re.compile(
    "[几幾何哪]|多[少久长長高大远遠]|什[么麼]时候|什[么麼]時候|いつ|いくつ|いくら|どのくらい|どれくらい"
)
"""A query without any of them asks for no known kind."""
_WORD = re.compile(r"\w+")
_DIGIT = r"\d(?![\d,\s-]{0,20}+\])"
"""Not one of a citation such as [1] or [1, 2], which answers nothing."""
_NUMBER = re.compile(
    rf"{_DIGIT}|"
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|several|percent)\b"
)
_DATE = re.compile(
    rf"{_DIGIT}|"
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|century|decade)\b"
)
_FOREIGN_NUMBER = re.compile(rf"{_DIGIT}|{NUMERAL.pattern}|\b(?:{'|'.join(sorted(NUMBER_WORDS))})\b")
_FOREIGN_DATE = re.compile(
    rf"{_DIGIT}|{NUMERAL.pattern}|[周週星]|曜日|\b(?:\w+tags?|mittwochs?|{'|'.join(sorted(MONTHS | WEEKDAYS))})\b"
)
_CAPITALISED = re.compile(r"\b[A-Z][\w'\-]+")
_WHO = re.compile(
    r"\b(?:who|whom|whose|wer|wem|wen|wessen|qui|quien|quienes|chi|quem|kto|kogo|кто|кого|кем)\b"
    r"|\b(?:what|which) (?:person|actor|author|singer)\b"
)
_COUNTERS = frozenset(COUNTERS)
_OF_NUMBERS = _COUNTERS | _stems("""
    cost costs costing price take takes last lasts amount amounts total have has people persons person pieces
    approximately roughly nearly almost exactly maximum minimum least meters metres personen leute menschen stück
    etwa ungefähr rund circa ca knapp genau maximal höchstens mindestens meter
    personnes environ presque moins mètres personas aproximadamente casi máximo mínimo metros
    kostet kosten kostete beträgt dauert hat es gibt
    coûte coûtent coûtait dure durent a il y
    cuesta cuestan costaba vale dura tarda tiene hay
""")
_OF_DATES = _COUNTERS | _stems("""
    uhr h o'clock year date day month every daily weekly jahr jahre datum tag jeden jede jeweils année an date jour mois
    chaque tous toutes año fecha día mes cada todos todas
""")
_OF_PLACES = _stems("city town country place state stadt ort land ville pays lieu ciudad país lugar")
_KINDS = (
    _Kind(
        "number",
        re.compile(
            r"\bhow (?:many|much|long|far|old|often|tall|big|large|high|deep)\b"
            r"|\b(?:what|which) (?:percent|percentage|number|amount)\b"
        ),
        lambda response, _: bool(_NUMBER.search(normalise(response))),
        _OF_NUMBERS,
        is_number=True,
    ),
    _Kind(
        "date",
        re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|century|decade)\b"),
        lambda response, _: bool(_DATE.search(normalise(response))),
        _OF_DATES,
        is_number=True,
    ),
    _Kind("name", re.compile(r"\b(?:who|whom|whose)\b"), _gives_name, frozenset()),
    _Kind(
        "name",
        re.compile(
            r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|county|town|river|team|company"
            r"|person|actor|singer|band)\b"
        ),
        _gives_name,
        _OF_PLACES,
    ),
    _Kind(
        "date",
        re.compile(
            r"\b(?:wann|quand|cuando|wie ?viel uhr)\b|\b(?:welche[mn] (?:jahr|tag|monat)|quelle (?:annee|heure|date)"
            r"|que (?:ano|hora|dia|fecha|mes))\b"
            r"|什[么麼][时時]候|何[时時]|いつ|何曜日|何[年月日](?!間)|哪一?[年天]|[几幾][点點]"
        ),
        lambda response, _: bool(_FOREIGN_DATE.search(normalise(response))),
        _OF_DATES,
        is_number=True,
        is_certain=False,
    ),
    _Kind(
        "number",
        re.compile(
            r"\bwhat\b.*\b(?:costs?|price|fee|fare|charge)\b|\bwas kostet|\bpreis\b|\bprix\b|\bprecio\b"
            r"|\bwie ?(?:viele?|lange|alt|gross|hoch|weit|oft)\b|\bcombien\b|\bcuant[oa]s?\b"
            r"|多[少久长長高大远遠]|[几幾]|いくつ|いくら|どのくらい|どれくらい|何[人個枚本冊階時年分日ヶか]"
        ),
        lambda response, _: bool(
            _FOREIGN_NUMBER.search(normalise(response)) or _NUMBER.search(normalise(response))
        ),
        _OF_NUMBERS,
        is_number=True,
        is_certain=False,
    ),
    _Kind(
        "name",
        re.compile(r"\b(?:wer|wem|wen|wessen|quien|quienes)\b|^\W*qui\b"),
        _gives_name,
        frozenset(),
        is_certain=False,
    ),
    _Kind(
        "name",
        re.compile(r"\b(?:wo|donde)\b|\bou (?:se|est|sont|peut|puis|va)\b"),
        _gives_name,
        _OF_PLACES,
        is_certain=False,
    ),
)
