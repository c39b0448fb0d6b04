"""Sources that a response names at its end, which are no statements of it. Pure, and without a judge."""

import re
import unicodedata
from functools import lru_cache
from itertools import chain

from rag_eval.texts.brackets import (
    NO_WORD,
    NUMBERED_WORDS,
    SOURCE_NAME,
    SOURCES,
    marks,
    places_of,
    unmasked,
)
from rag_eval.texts.words import LIST_MARKER, has_words


@lru_cache(maxsize=2)  # like `read_claim`
def without_sources(response: str) -> str:
    """The response without its lists of sources, without last lines such as "Source: rules.pdf, page 3" and notes such
    as "[^1]: Rules, page 3", and without "(Rules, p. 3)".

    Unchanged if it has none, or says nothing before them.
    """
    may_name = "(" in response or ":" in response or "[" in response or "\n" in response or "：" in response
    if not may_name:  # told fast
        return response
    brief = _without_asides(response)
    return _without_ends(response if brief == response or not has_words(brief) else brief)


def _without_ends(response: str) -> str:
    tail = _tail(response)
    said = response[:tail] if tail and has_words(response[:tail]) else response
    may_list = "\n" in said and _HINT.search(said) is not None
    if not may_list and "](http" not in said:
        return said
    listless = _without_notes(without_lists_of_sources(said, NO_WORD)) if may_list else said
    rest = _without_last_lines(listless)
    return said if len(rest) == len(said) else rest.rstrip()


def without_lists_of_sources(text: str, citation: re.Pattern[str]) -> str:
    """The text without the lists of sources that a heading announces after the answer.

    An entry that has a citation is none: "1. Rent [2]" may be the answer to a query about sources of income.
    """
    kept: list[str] = []
    is_list, said = False, False
    for line in text.split("\n"):
        if _HEADS.fullmatch(line):
            is_list = said
        elif is_list and line.strip():
            is_list = _is_entry(line, citation)
        if not is_list:
            kept.append(line)
            said = said or has_words(line)
    return "\n".join(kept)


def names_sources(text: str) -> bool:
    """Whether a text names sources in a form that `without_sources` leaves out, or a page."""
    return _PAGES.search(text) is not None or without_sources(text) != text


def _without_asides(text: str) -> str:
    if not (("(" in text and _ROUND.search(text)) or ("[" in text and _SQUARE.search(text))):  # most often
        return text
    return _ASIDE.sub(lambda aside: "" if _is_title(aside[1] or aside[2]) else aside[0], text)


def _without_notes(text: str) -> str:
    """The text without the notes at its end, if it uses the mark of each: "Four weeks [1]", "[1] Rules, page 3"."""
    lines = text.split("\n")
    end = len(lines)
    defined: list[int] = []
    while end:
        note = _DEFINES.fullmatch(lines[end - 1])
        if note and _is_title(note["named"]):
            defined.append(_value(next(filter(None, note.groups()))))
        elif has_words(lines[end - 1]):
            break
        end -= 1
    said = "\n".join(lines[: end - 1 if defined and end and _NOTES.fullmatch(lines[end - 1]) else end])
    if not defined or said.rstrip("\n *_").endswith((":", "：")):
        return text
    ranges = [each for mark in marks(unmasked(said), leads=False) for each in mark.ranges]
    raised = {_value(number) for number in _RAISED.findall(said)}
    if not all(n in raised or any(first <= n <= last for first, last in ranges) for n in defined):
        return text
    return _RAISED.sub(lambda mark: "" if _value(mark[0]) in defined else mark[0], said)


def _value(number: str) -> int:
    """Of plain or raised digits."""
    return int(unicodedata.normalize("NFKC", number))


def _is_title(note: str) -> bool:
    """Whether a note names a file, or a source in a few words that state nothing, such as "Rules, page 3"."""
    if _FILE.search(note):
        return True
    if len(note.split()) > _TITLE_WORDS:
        return False
    bare = _PLACES.sub("", note)
    if _STATES.search(bare):
        return False
    first = note.lstrip("\"'“”„«‘*_")[:1]
    return bare != note or not (first.islower() or note.rstrip("\"'”“»’*_ ").endswith((".", "!", "?", "。")))


def _tail(response: str) -> int:
    """Where sources begin in the last line of a response, after what it says there; 0 if they do not."""
    last = max(response.rstrip().rfind("\n") + 1, len(response) - _LONGEST_TAIL)
    begins = _in_last_sentence(response, last)
    if response.find(":", begins) < 0 and response.find("：", begins) < 0:  # most often
        return 0
    colons = chain(places_of(response, ":", begins), places_of(response, "：", begins))
    is_told = any(_ends_in_name(response[max(last, colon - _LONGEST_NAME) : colon]) for colon in colons)
    found = _TAIL.search(response, last) if is_told else None
    return found.start() if found else 0


def _in_last_sentence(response: str, last: int) -> int:
    """A place behind which the last sentence of the last line begins: sources are named in one sentence."""
    place = response.rfind(". ", last)
    while place >= 0 and not _CAPITAL.match(response, place + 2):
        place = response.rfind(". ", last, place)
    return max(place, last)


def _ends_in_name(before: str) -> bool:
    """Whether what is before a colon ends in a word for sources, told by its last word."""
    bare = before.rstrip(_BLANKS)
    word = bare[bare.rfind(" ") + 1 :]
    if not word[-1:].isalpha():
        return False
    return (_ENDS_IN_NAME.match if word.isalpha() and word.isascii() else _ENDS_IN_NAME.search)(
        word
    ) is not None


def asks_for_sources(query: str) -> bool:
    """Whether a query has a word for sources, so that a list of them may be the answer to it."""
    return _ASKED.search(query) is not None


def _is_entry(line: str, citation: re.Pattern[str]) -> bool:
    """Whether a line below the heading belongs to the list."""
    number = _NUMBER.match(line)
    if citation.search(line, number.end() if number else 0):
        return False
    pieces = line.split()
    is_marked = number is not None or LIST_MARKER.fullmatch(pieces[0]) is not None
    return is_marked or (len(pieces) == 1 and _FILE.search(line) is not None)


def _without_last_lines(text: str) -> str:
    """The text without last lines that name sources, unless they go on from "Length: 525 km" or nothing is left."""
    lines = text.split("\n")
    end = last = len(lines)
    while last:
        line = lines[last - 1]
        if _NAMES.fullmatch(line) or _LINKS.fullmatch(line) or (_NUMBER.match(line) and _FILE.search(line)):
            end = last - 1
        elif has_words(line):
            break
        last -= 1
    named = "\n".join(lines[end:])
    is_table = 0 < last == end and _FIELD.fullmatch(lines[last - 1]) and not _FILE.search(named)
    return text if not last or is_table else "\n".join(lines[:end])


_HEADINGS = (
    r"(?:sources?|(?:list of )?references?|bibliography|literature|citations?|works cited"
    r"|quellen(?:angaben?|verzeichnis|nachweise?)?|literatur(?:verzeichnis)?|referenzen|einzelnachweise"
    r"|références|sources? citées|bibliographie|fuentes|referencias|bibliografía|fontes|referências|bibliografia|fonti"
    r"|riferimenti|bronnen|referenties|källor|referenser|źródła|kaynaklar|kaynakça|источники|список литературы"
    r"|литература|参考文献|参考资料|参考資料|參考文獻|參考資料|引用文献|出典|来源|來源|出处|資料來源|资料来源"
    r"|참고 ?문헌|참고 ?자료|출처|المصادر|المراجع|संदर्भ|स्रोत|แหล่งที่มา|อ้างอิง|เอกสารอ้างอิง|nguồn|tài liệu tham khảo)"
)
_HEADS = re.compile(rf"[\s#*_]*{_HEADINGS}[\s*_]*+(?:[:：][\s*_]*)?", re.IGNORECASE)
"""A line above a list of sources, and nothing else: "References:", "## Quellen", "**参考文献**"."""
_NUMBER = re.compile(rf"\s*(?:[-*•–]\s+)?\[(?:\^|{SOURCE_NAME})?\d{{1,3}}\]:?(?=\s)")
"""Before an entry: "[1] rules.pdf", "- [1] rules.pdf"."""
_FILE = re.compile(r"https?://|www\.|\.(?:pdf|docx?|html?|md|txt|xlsx?|pptx?|csv)\b", re.IGNORECASE)
_PAGE = (
    r"(?<!\w)(?:pages?|pp?\.|pgs?\.|seiten?|(?-i:S\.)|páginas?|págs?\.|pagin[ae]|pagg?\.|blz\.|sidan?|str\.|стр\.|страниц[аы])"
    r"\s?\d{1,4}(?:\s?[-–]\s?\d{1,4}|\s?ff?\b\.?)?"
)
_PAGES = re.compile(_PAGE, re.IGNORECASE)
_PLACES = re.compile(rf"{_PAGE}|(?<!\w)(?:{NUMBERED_WORDS}|§{{1,2}})\s?\d[\d.]{{0,8}}", re.IGNORECASE)
"""Of a source: "page 3", "section 4"."""
_TITLE_WORDS = 12
"""A longer note says something."""
_STATES = re.compile(
    r"(?<![^\s(])[€$£¥]?(?!(?:19|20)\d\d(?!\w))\d|[%€$£¥]|[.!?]\s+\w+\s+\w+\s+\w"
    r"|(?<!\w)(?:not?|only|except|unless|if|without|is|are|was|were|has|have|had|can|cannot|may|must|will|should|does|do"
    r"|nicht|keine?|nur|außer|ohne|wenn|falls|ist|sind|war|hat|haben|kann|können|muss|müssen|darf|gilt|gelten"
    r"|sauf|seulement|sans|pas|est|sont|peut|doit|excepto|salvo|sólo|solo|sin|es|son|puede|debe|può|sono|tranne"
    r"|não|são|exceto|niet|geen|alleen|behalve|zijn|moet)(?!\w)",
    re.IGNORECASE,
)
"""What a note has that is more than a title: an amount, a condition or a verb."""
_NAMED = (
    rf"(?:{_HEADINGS}|quelle|référence|fuente|referencia|fonte|referência|bron|källa|źródło|kaynak|источник)"
)
_NAMES = re.compile(rf"[\s(>]*[*_]{{0,3}}{_NAMED}[\s*_]*[:：][\s*_]*\S.*", re.IGNORECASE)
"""A line with what it announces: "**Source:** rules.pdf, page 3"."""
_LINKS = re.compile(
    rf"[\s(>]*[*_]{{0,3}}{SOURCES}[\s*_]*[:：]?(?:[^\w\[]{{0,4}}(?:(?:and|und|et|y|e|en)\s)?"
    r"\[[^\[\]]{1,200}\]\(https?://[^\s()]{1,1000}\))+\W*",
    re.IGNORECASE,
)
"""A line of links: "See [Library rules](https://…)."."""
_IN_BRACKETS = (
    r"(?=[^()\[\]\n\d:：]{0,100}+[\d:：])(?:"
    rf"(?=[^()\[\]\n:：]{{0,40}}+[:：]){_NAMED}\s?[:：]\s*([^()\[\]\n]{{1,100}})(?:\)|\](?!\())"
    r"(?=\W*(?:\n|\Z|(?-i:[A-ZÀ-ÞА-Я])))"
    rf"|(?=[^()\[\]\n]{{0,200}}+(?<=[\df.])[)\]])((?:[^()\[\]\n]{{1,80}}[\s,;:])?{_PAGE})(?:\)|\](?!\()))"
)
"""In brackets, wherever it is: "(Source: Rules)", "(Rules, p. 3)"."""
_ASIDE = re.compile(rf"(?<![ \t])[ \t]*+[(\[]{_IN_BRACKETS}", re.IGNORECASE)
_ROUND, _SQUARE = (re.compile(rf"\{sign}{_IN_BRACKETS}", re.IGNORECASE) for sign in "([")
"""The same but for the space before it. A pattern with one first sign is searched many times as fast."""
_RAISED = re.compile(r"(?<=\S)(?<![¹²³⁰-⁹])[¹²³⁰-⁹]{1,3}(?![¹²³⁰-⁹])")
_DEFINES = re.compile(
    rf"\s*(?:[-*•–]\s+)?(?:\[(?:\^|{SOURCE_NAME})?(\d{{1,3}})\]:?|([¹²³⁰-⁹]{{1,3}})[:.)]?|{SOURCE_NAME}(\d{{1,3}}):)"
    r"\s*(?P<named>\S.*)",
    re.IGNORECASE,
)
"""A note: "[^1]: Rules", "¹ Rules", "Source 1: Rules"."""
_NOTES = re.compile(
    r"[\s#*_]*(?:foot|end)?(?:notes?|fußnoten?|notas?|noten|anmerkung(?:en)?)[\s*_]*+(?:[:：][\s*_]*)?",
    re.IGNORECASE,
)
_TAIL = re.compile(
    rf"(?:(?<=[.!?…。！？।؟)\]\"”»])\s*|\s+(?=\())[(*_\[>]{{0,4}}{_NAMED}[\s*_]*[:：][\s*_]*"
    rf"(?=\[\^?\d|[^\n]{{0,200}}(?:{_FILE.pattern}|{_PAGE}))"
    r"(?![^\n]*(?:[.!?…]\s+(?-i:[A-ZÀ-ÞА-Я])|[。！？]\s*[^\s)\]）]))[^\n]*\s*\Z",
    re.IGNORECASE,
)
"""The same at the end of the last line of the answer: "Four weeks. Sources: [1] rules.pdf, [2] fees.pdf"."""
_CAPITAL = re.compile("[A-ZÀ-ÞА-Я]")
_ENDS_IN_NAME = re.compile(rf"(?:{_NAMED}|cited|citées|литературы|문헌|자료|khảo)\Z", re.IGNORECASE)
_BLANKS = " \t\n\r\v\f\u00a0\u202f\u3000*_"
_LONGEST_NAME = 40
"""Characters before the colon, with signs of emphasis."""
_LONGEST_TAIL = 2_000
"""Characters that are searched for such sources: each place where they may begin is compared with all behind it."""
_FIELD = re.compile(r"\W*[^\W\d_][\w ]{0,30}[:：]\s*\S.*(?<![.!?。])")
"""A line of a table in words: "Length: 525 km"."""
_HINT = re.compile(
    rf"\n[ \t#*_(>•–-]*+(?:{_NAMED}|\[(?:\^|{SOURCE_NAME})?\d|[¹²³⁰-⁹]|{SOURCE_NAME}\d)", re.IGNORECASE
)
"""Somewhere in every text that has a list of sources."""
_ASKED = re.compile(
    rf"(?<!\w)(?:{_NAMED}|documents?|files?|links?|websites?|pages?|cited?|dokumente?|unterlagen|dateien"
    r"|seiten?|páginas?|pagin[ae]|belege?|fichiers?|liens?|documentos?|archivos?|enlaces?|ficheiros?|documenti|documenten)(?!\w)"
    r"|文件|文献|资料|資料|来源|來源|出典|문서|자료",
    re.IGNORECASE,
)
