"""Citations in a response: numbers in square brackets that name chunks of its context. Pure, and without a judge.

`[2]`, `[1][2]`, `[1, 2]`, `[1-3]`, `[^2]`, `[doc2]` and `【2†source】` after words are citations; `(1)`, `a[0]`,
`[1](url)`, code, formulas and years are not. Whether a bot cites at all, and whether it counts chunks from 0 or from 1,
is known from all of its responses together: see `Habit`.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import accumulate, pairwise
from typing import NamedTuple

from rag_eval.texts.words import has_words, sentences


class Habit(NamedTuple):
    """How one bot uses brackets: counts over its responses that have several chunks to cite."""

    responses: int = 0
    bracketed: int = 0
    """Responses with a number in brackets, of whatever kind."""
    citing: int = 0
    """Responses with a number in brackets that names a chunk."""
    first: int = 0
    """Responses that cite 0, which only a bot that counts from 0 can mean."""
    last: int = 0
    """Responses that cite the number of chunks, which only a bot that counts from 1 can mean."""
    leading: int = 0
    """Responses that cite before each sentence, as in "[2] Returns are free. [1] Loans last four weeks."."""
    numbered: int = 0
    """Responses that cite so, or number steps, as in "[1] Returns are free. [2] Loans last four weeks."."""

    def plus(self, other: "Habit") -> "Habit":
        return Habit(*(mine + others for mine, others in zip(self, other, strict=True)))

    @property
    def cites(self) -> bool:
        """Most responses with numbers in brackets use them as citations, and these are more than a rare exception."""
        citing = self._all_citing
        return 2 * citing > self.bracketed and _SOMETIMES * citing >= self.responses

    @property
    def is_usual(self) -> bool:
        """The bot cites so often that a response without a citation is worth a flag."""
        return self.cites and _OFTEN * self._all_citing >= self.responses

    @property
    def _all_citing(self) -> int:
        """Of a bot that cites before its sentences, those count that could also be numbered steps."""
        return self.citing + (self.numbered if self.leads else 0)

    @property
    def base(self) -> int:
        """The number of the first chunk: 0 or 1."""
        return 0 if self.first > self.last and _OFTEN * self.first >= self.citing else 1

    @property
    def leads(self) -> bool:
        """The bot cites before its sentences, in responses that begin with a citation."""
        return self.leading > 0 and _OFTEN * self.leading >= self.citing


_OFTEN, _SOMETIMES = 4, 10
"""One response of so many."""


def joined(first: Mapping[str, Habit], second: Mapping[str, Habit]) -> dict[str, Habit]:
    """The habits over two parts of one input, by bot."""
    bots = dict.fromkeys((*first, *second))
    return {bot: first.get(bot, Habit()).plus(second.get(bot, Habit())) for bot in bots}


class Citation(NamedTuple):
    """One number that a sentence cites."""

    number: int
    """As the response writes it."""
    chunk: int
    """Rank of the chunk, from 1; 0 if there is no such chunk."""
    statement: str
    """The part of the sentence between it and another citation, which is the whole sentence if there is none."""


class CitingSentence(NamedTuple):
    """A sentence of a response and what it cites."""

    text: str
    """Without citations."""
    marked: str
    """With the ranks of the cited chunks in brackets, from 1, in place of the response's own numbers."""
    citations: tuple[Citation, ...]
    """Each chunk once."""

    @property
    def chunks(self) -> tuple[int, ...]:
        """Ranks of the cited chunks that exist, in the order in which they are cited."""
        return tuple(each.chunk for each in self.citations if each.chunk)


def habit_of(response: str, chunks: Sequence[str] | None) -> Habit:
    """What one response adds to the habit of its bot."""
    if not chunks or len(chunks) == 1 or not response.strip():
        return Habit()
    if _BRACKETED.search(response) is None:
        return Habit(1)
    labels = _labels(chunks)
    known = labels or dict.fromkeys(range(len(chunks) + 1), 0)
    plain = _unmasked(response)
    leads = _leads(plain)
    marks = [mark for mark in _marks(plain, leads) if not _is_copied(response, mark, chunks)]
    cited = {number for mark in marks for number in mark.numbers} & known.keys()
    if not cited and _begins_with_mark(plain):
        before = {number for mark in _marks(plain, leads=True) for number in mark.numbers} & known.keys()
        return Habit(1, 1, numbered=int(bool(before)))
    return Habit(
        1,
        1,
        int(bool(cited)),
        int(not labels and 0 in cited),
        int(not labels and len(chunks) in cited),
        int(leads and bool(cited)),
    )


def citing_sentences(
    response: str, chunks: Sequence[str], base: int, *, leads: bool = False
) -> list[CitingSentence]:
    """The sentences of a response of a bot that cites, with their citations.

    `base` is the number of its first chunk. `leads` says that the bot cites before its sentences, in responses that
    begin with a citation. Entries of a list of sources are left out.
    """
    ranks = _labels(chunks) or {number: number - base + 1 for number in range(base, base + len(chunks))}
    copied = {int(number) for chunk in chunks for number in _COPIED.findall(chunk)}
    far = _FAR * max(len(chunks), *ranks, 1)
    marks = [
        (mark, numbers)
        for mark in _marks(_unmasked(response), leads)
        if (numbers := _cited(mark, ranks, copied, far)) and not _is_copied(response, mark, chunks)
    ]
    plain = _with_placeholders(response, [mark for mark, _ in marks])
    numbers_of = [numbers for _, numbers in marks]
    found: list[CitingSentence] = []
    for sentence in sentences(plain):
        text = _without(sentence)
        if _LISTS_SOURCES.match(text) and not _NAMES_SOURCES.fullmatch(text):
            continue
        read = _read(sentence, numbers_of, ranks)
        if found and read.citations and _NAMES_SOURCES.fullmatch(read.text):
            before = found.pop()  # "Source: [1]" belongs to what it follows
            more = [each._replace(statement=before.text) for each in read.citations]
            marked = before.marked + "".join(f" [{each.chunk}]" for each in more if each.chunk)
            read = CitingSentence(before.text, marked, _once((*before.citations, *more)))
        found.append(read)
    return found


def _read(sentence: str, numbers_of: Sequence[Sequence[int]], ranks: Mapping[int, int]) -> CitingSentence:
    parts = _PLACEHOLDER.split(sentence)
    places = list(map(int, parts[1::2]))
    statements = _cited_parts([_said(part) for part in parts[::2]])
    citations = [
        Citation(number, ranks.get(number, 0), statement)
        for place, statement in zip(places, statements, strict=True)
        for number in numbers_of[place]
    ]
    marked = _PLACEHOLDER.sub(
        lambda place: "".join(
            f" [{ranks[number]}]" for number in numbers_of[int(place[1])] if number in ranks
        ),
        sentence,
    ).lstrip()
    text = _without(sentence)
    if len({each.statement for each in citations}) == 1:
        citations = [each._replace(statement=text) for each in citations]
    return CitingSentence(text, marked, _once(citations))


def _said(part: str) -> str:
    """What stands between two citations; nothing if it only joins them, as in "[1] and [2]"."""
    said = _without(part).strip(_BETWEEN)
    return "" if said.lower() in _AND else said


def _cited_parts(parts: Sequence[str]) -> list[str]:
    """Between two parts of a sentence is a citation: for each, the part that it is for.

    It is the last one with words before it; or the next one after it, if the sentence begins with a citation.
    """
    before = list(accumulate(parts[:-1], _kept))
    if not before or not (_NAMES_SOURCES.fullmatch(parts[0]) or _REFERS.fullmatch(parts[0])):
        return before
    after = list(accumulate(reversed(parts[1:]), _kept))
    return [later or earlier for earlier, later in zip(before, reversed(after), strict=True)]


def _kept(earlier: str, part: str) -> str:
    return part or earlier


def _once(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    first: dict[tuple[int, int], Citation] = {}
    for each in citations:
        first.setdefault((each.chunk, 0 if each.chunk else each.number), each)
    return tuple(first.values())


# Numbers


def _labels(chunks: Sequence[str]) -> dict[int, int]:
    """The ranks of the chunks by the numbers that they begin with; none unless each has one of its own."""
    found = [_LABEL.match(chunk) for chunk in chunks]
    labels = {int(label[1]): rank for rank, label in enumerate(found, 1) if label}
    return labels if len(labels) == len(chunks) else {}


_LABEL = re.compile(r"\s*\[\^?(0|[1-9]\d{0,2})\]")


def _cited(mark: "_Mark", ranks: Mapping[int, int], copied: Set[int], far: int) -> Sequence[int]:
    """The numbers of a mark if it is a citation, whether or not there are such chunks; otherwise none.

    `copied` are the numbers in brackets in the chunks' own texts, such as those of an encyclopedia. A number above
    `far` is something else, such as a year.
    """
    numbers: Sequence[int] = mark.numbers
    if mark.is_range:
        first, last = mark.numbers
        known = [number for number in range(first, last) if number in ranks]
        numbers = [*known, last] if first in ranks else ()
    unknown = [number for number in numbers if number not in ranks]
    return () if any(number > far or number == 0 or number in copied for number in unknown) else numbers


def _is_copied(response: str, mark: "_Mark", chunks: Sequence[str]) -> bool:
    """Whether a chunk has the mark after the same words: the response quotes it with its own references."""
    words = response[max(0, mark.start - _QUOTED) : mark.end]
    return len(words) > mark.end - mark.start and any(words in chunk for chunk in chunks)


_QUOTED = 12
"""Characters before a mark."""
_FAR = 10
"""So many times the number of chunks."""
_COPIED = re.compile(r"\[(\d{1,3})\]")


# Marks


class _Mark(NamedTuple):
    """Something of the form of a citation, after words."""

    start: int
    """Index into the response."""
    end: int
    numbers: tuple[int, ...]
    is_range: bool
    leads: bool
    """It belongs to the sentence that it begins, not to the one before it."""


_NUMBER = r"(?:0|[1-9]\d{0,2})"
_BRACKETED = re.compile(r"\[(?:\^|doc)?\d|【\d{1,3}†")
_FORM = re.compile(
    rf"\[(?:\^(?P<note>{_NUMBER})|(?P<low>{_NUMBER})\s?[-–]\s?(?P<high>{_NUMBER})"
    rf"|(?P<several>{_NUMBER}(?:\s?[,;]\s?{_NUMBER})*+)|doc(?P<document>{_NUMBER}))\]"
    rf"|【(?P<source>{_NUMBER})†[^】\n]{{1,80}}】"
)
"""`[doc2]` is how Azure OpenAI writes a citation, `【2†source】` how OpenAI does."""
_MASKED = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|``[^`]+``|`[^`\n]+`|<(code|pre)\b.{0,4000}?</\1>"  # code
    r"|\$\$.{1,1000}?\$\$|\$(?=[^$\n]{0,200}[\\^_={}])[^$\n]{1,200}\$|\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]"  # formulas
    r"|!?\[[^\]\n]{0,300}\]\([^)\n]{0,2000}\)|\[(?!\^?\d)[^\]\n]{1,300}\]\[\d+\]",  # links
    re.DOTALL | re.IGNORECASE,
)
_NOTE = re.compile(r"^[ \t]*\[\^(\d+)\]:[ \t]*(.*)$", re.MULTILINE)
_SOURCE = re.compile(
    r"https?://|www\.|\.(?:pdf|docx?|html?|md|txt|xlsx?)\b|\b(?:chunk|context|document|doc|passage|source)\b",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\w({+]|-\w|\s*(?:[:*/-]?=|->)|\.[a-z_]+\(")
_UNCASED = re.compile(r"[^\W\d_]")
_CLOSING = ".,;!?…)\"'”’»%°*_~™®€£。，、；！？）」』】؟।،"
_SOURCES = (
    r"(?:sources?|see(?: also)?|cf|ref(?:erence)?s?|according to|quellen?|siehe|vgl|nach|fuentes?|véase|ver|según"
    r"|voir|selon|fontes?|veja|fonti?|vedi|bron(?:nen)?|zie|källor|källa|źródł[oa]|kaynak(?:lar)?|источники?|см"
    r"|출처|المصدر|المصادر|स्रोत|ที่มา|nguồn|出典|参照|参考|来源|來源|出处)"
)
_NAMES_SOURCES = re.compile(rf"\W*(?:{_SOURCES}\W*)?", re.IGNORECASE)
_REFERS = re.compile(
    r"(?:as\s+)?(?:stated|described|shown|explained|said|noted|mentioned|seen|set out|listed|specified|reported)"
    r"\s+(?:in|by|at|under)|based on|per|wie\s+in|gemäß|comme\s+indiqué\s+dans|como\s+se\s+(?:indica|dice)\s+en",
    re.IGNORECASE,
)
"""Words that lead to a citation and are no statement, as in "As stated in [1], …"."""
_AND = frozenset(
    {"and", "und", "et", "y", "e", "en", "och", "oraz", "и", "和", "及", "と", "및", "و", "-", "–"}
)
"""Words between two citations that are for the same words."""
_LISTS_SOURCES = re.compile(rf"\W*{_SOURCES}\W*[:：]|\W*\[\^?\d+\]", re.IGNORECASE)
_SOURCES_BEFORE = re.compile(rf"(?<!\w){_SOURCES}\s*[:：]?\s*\Z", re.IGNORECASE)
_NUMBERED_WORDS = (
    r"(?:pages?|pp?\.|sections?|sec\.|clauses?|articles?|art\.|chapters?|ch\.|figures?|figs?\.|tables?|tab\.|steps?"
    r"|questions?|equations?|eqs?\.|rows?|columns?|nos?\."
    r"|seiten?|s\.|abschnitt|artikel|kapitel|kap\.|abb(?:ildung|\.)|tabelle|schritt|frage|gleichung|nr\.|zeile|spalte"
    r"|páginas?|págs?\.|sección|artículo|capítulo|figura|tabla|paso|pregunta|ecuación"
    r"|artigo|seção|página|tabela|passo|questão|chapitre|figure|tableau|étape"
    r"|pagina|sezione|articolo|capitolo|tabella|passo|hoofdstuk|artikel|tabel|stap"
    r"|страниц[аеы]|раздел|стать[яи]|глав[аы]|рис\.|таблиц[аы]|шаг)"
)
"""Words that may have a number of their own, as in "see page [2]"."""
_NUMBERED = re.compile(rf"(?<!\w){_NUMBERED_WORDS}\s*\Z", re.IGNORECASE)
_BARE = re.compile(
    r"(?:\A|[.!?:;(]|(?<!\w)(?:in|on|of|to|at|see|read|from|per|under|by|and|or|with|answer|auf|nach|laut|siehe|von|mit"
    rf"|und|voir|selon|et|en|de|y|según|e|di|secondo|zie|op|na|volgens|на|в|см|из|по|и))\.?\s*{_NUMBERED_WORDS}\s*\Z",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[ \t]+[a-zß-öø-ÿа-яё]")
_PAIRED = re.compile(
    r"(?<!\w)(?:intervals?|rang(?:es?|ing)|scales?|between|from|aged?|ages|array|list|vector|matrix|tuple|set"
    r"|intervalls?|bereichs?|spanne|\w*skala|zwischen|alter|intervalles?|plage|[ée]chelle|entre|intervalos?|rango|escala"
    r"|faixa|intervallo|scala|fra|tra|bereik|schaal|tussen|skalan?|mellan|przedzia\w+|skal[iąęi]|zakres\w*|aralı\w+|ölçe\w+"
    r"|liste|lista|интервал\w*|диапазон\w*|шкал\w+|между|مقياس|المقياس|نطاق|النطاق|बीच|पैमाने)"
    r"(?:\s+(?:of|from|is|are|at|to|von|vom|bis|ist|de|du|des|est|es|van|di|da|è|от|पर|من))*\s*[:=]?\s*\Z"
    r"|(?:数组|数列|区间|范围|列表|向量|矩阵|等级|量表|配列|区間|範囲|段階|スケール|구간|범위|척도)[为是はで은는:：]?\s*\Z",
    re.IGNORECASE,
)
"""Words that two numbers follow, as in "the interval [0, 1]"."""
_VALUED = re.compile(
    r"(?<!\w)(?:values?|numbers?|integers?|scores?|rat(?:ed?|ings?)|probabilit\w+|weights?|parameters?|normali\w+|scaled?|random"
    r"|lies?|werte?|zahl(?:en)?|wahrscheinlichkeit\w*|note|bewert\w+|normier\w*|valeurs?|nombres?|notes?|probabilités?"
    r"|valor(?:es)?|números?|notas?|probabilidad\w*|valor[ei]|numer[oi]|vot[oi]|waarden?|getal|cijfer|wartoś\w+|liczb\w+"
    r"|значени\w+|числ\w+|оценк\w+)(?!\w)[^.;]{0,30}(?<!\w)"
    r"(?:in|into|to|from|within|on|of|im|auf|von|dans|sur|à|de|en|a|em|su|da|di|op|van|w|z|od|в|на|от|из)\s*\Z"
    r"|[∈]\s*\Z",
    re.IGNORECASE,
)
"""A value and a preposition, as in "a number from [1, 10]"."""
_TOLD = re.compile(
    r"(?<!\w)(?:as|see|(?!normali|scaled)\w+(?:ed|own|ven|und|iben|geben|scritt[oi]|crit[oa]?s?))\s+\w+\s*\Z",
    re.IGNORECASE,
)
"""Of a source, as in "the values described in [1, 2]"."""
_COUNTED = re.compile(
    r"\s?(?:(?:times|days?|weeks?|months?|years?|hours?|minutes?|seconds?|percent|people|persons|tablets?|pills?|stars?|points?"
    r"|items?|mg|ml|kg|km|cm|mal|tagen?|wochen?|monaten?|jahren?|stunden?|minuten?|personen|tabletten|sternen?|punkten?"
    r"|fois|jours?|semaines?|mois|ans?|heures?|comprimés?|personnes|étoiles?|veces|días?|semanas?|meses|años?|horas?|personas"
    r"|estrellas|vezes|dias?|anos?|pessoas|volte|giorni|settimane|mesi|anni|ore|persone|compresse|keer|dagen|weken|maanden"
    r"|jaar|uur|gånger|dagar|veckor|razy|dni|tygodni\w*|kez|gün|hafta|раза?|дн(?:я|ей)|недел\w+|месяц\w*|лет|час\w*)\b"
    r"|[次天周岁歳回錠片颗번]|个月|小时|分钟|週間|時間|時間|시간|배)",
    re.IGNORECASE,
)
"""What a range counts, as in "[1-3] times a day"."""
_VARIABLES = """
    arr array arrays args argv params list lists lst items data nums numbers vec vector str string row rows col cols
    matrix mat tuple values vals keys elements buffer buf result results output input dict map obj grid dp memo stack
    queue df
"""
_IN_CODE = frozenset(_VARIABLES.split())
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*\Z")
_LOOK_BACK = 40
_STOPS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")
_SENTENCE_ENDS = re.compile(r"(?:[.!?…。！？؟।][\"'”’»)*_」』]*|:)[ \t]*\Z")
_ABBREVIATED = re.compile(
    r"\W*(?:[^\W\d_]|al|etc|vs|cf|ca|approx|inc|ltd|co|corp|dr|mrs?|ms|prof|st|nos?|nr|figs?|tab|abb|bzw|usw|vgl|evtl|ggf"
    r"|max|min|e\.g|i\.e|ex|art|cap|chap|sra?|mme|env|pp|ej|núm|pág|bijv|др|см|рис)\.",
    re.IGNORECASE,
)
_LINE_BEGINS = re.compile(r"[ \t]*(?:(?:[-*•–>]|#+|\(?\d{1,2}[.)])[ \t]+)?[ \t*_]*")
_RUN = r"(?:[ \t]?[,;&]?[ \t]?(?:\[(?:\^|doc)?\d[^\]\n]{0,20}\]|【\d[^】\n]{0,80}】)){0,8}"
_WORD_FOLLOWS = re.compile(_RUN + r"[ \t*_]*[^\W_]")
_GOES_ON_FROM = re.compile(
    _RUN + r"(?:[ \t]+[a-zß-öø-ÿа-яё](?![a-z]*[A-Z])"
    r"|\s*(?:に|では?|[はのがも]|から|指出|表明|称|说|說|认为|認為|显示|顯示|提到|规定|規定|说明|說明|介绍|介紹|中(?=[，,指提说写规介表显称]))"
    r"|(?:에|은|는|이|가|의|과|와)\s)"
)
"""Words that go on from a citation as from a name: a small letter, or a particle or verb of a script without it."""


def _marks(plain: str, leads: bool) -> list[_Mark]:
    """Everything in an unmasked response that has the form and the place of a citation, whatever its numbers are."""
    notes = {note[1] for note in _NOTE.finditer(plain) if not _SOURCE.search(note[2])}
    leads = leads and _begins_with_mark(plain)
    has_capitals = not plain.islower()
    found: list[_Mark] = []
    enumerates, end = False, 0  # whether "[1] Open the app. [2] Log in" counts the items of this line
    for form in _FORM.finditer(plain):
        enumerates = enumerates and "\n" not in plain[end : form.start()]
        end = form.end()
        if form["note"] in notes:
            continue
        opening = _opening(plain, form)
        is_lead = opening is not None and (
            leads or ((has_capitals or not opening) and _begins(plain, form, opening))
        )
        if opening and not is_lead and enumerates:
            continue
        if not is_lead and not _is_in_place(plain, form, found):
            enumerates = enumerates or (opening is not None and bool(_WORD_FOLLOWS.match(plain, end)))
            continue
        numbers = tuple(map(int, re.findall(r"\d+", form["source"] or form[0])))
        if form["low"] is None or numbers[0] < numbers[1]:
            found.append(_Mark(form.start(), end, numbers, form["low"] is not None, is_lead))
    return found


def _unmasked(response: str) -> str:
    """The response with blanks in place of code, formulas and links; nothing if no number is in brackets."""
    if _BRACKETED.search(response) is None:
        return ""
    return _MASKED.sub(lambda part: _blank(part[0]), response) if _may_be_masked(response) else response


def _may_be_masked(response: str) -> bool:
    return any(sign in response for sign in ("`", "~~~", "<", "$", "\\", "](", "]["))


def _blank(part: str) -> str:
    """As long, and no word; a line break stays one."""
    return re.sub(r"[^\n]", "\x1f", part)


def _is_in_place(text: str, form: re.Match[str], found: Sequence[_Mark]) -> bool:
    """Whether it follows words, or a mark that does, and nothing that follows makes it code or a link."""
    after = _AFTER.match(text, form.end())
    if after and not (_UNCASED.match(after[0]) and after[0].lower() == after[0].upper()):
        return False
    before = _line_before(text, form.start())
    if not before.strip(" \t"):
        line = form.start() - len(before)
        return line > 0 and _is_line_of_marks(text, line)
    if before.rstrip(" \t,;&").endswith(("]", "】")):
        return bool(found) and not text[found[-1].end : form.start()].strip(" \t,;&")
    if not _are_words(before):
        return False
    if _NUMBERED.search(before):
        return not (_BARE.search(before) or _GOES_ON.match(text, form.end()))
    return not (re.search(r"\d\D+\d", form[0]) and _is_of_values(before, text, form))


def _is_of_values(before: str, text: str, form: re.Match[str]) -> bool:
    """Whether two numbers after these words are limits of values, as in "on a scale [1-5]"."""
    if form["low"] is not None and _COUNTED.match(text, form.end()):
        return True
    if _PAIRED.search(before):
        return True
    return _VALUED.search(before) is not None and _TOLD.search(before) is None


def _opening(text: str, form: re.Match[str]) -> str | None:
    """What a bracket at the beginning of a sentence or item follows: a full stop, a colon, or nothing on its line.

    None if it is elsewhere, or nothing but brackets follows.
    """
    if not _WORD_FOLLOWS.match(text, form.end()):
        return None
    before = _line_before(text, form.start())
    if _LINE_BEGINS.fullmatch(before):
        return ""
    end = _SENTENCE_ENDS.search(before)
    return end[0] if end and not _ABBREVIATED.fullmatch(before.split()[-1]) else None


def _begins(text: str, form: re.Match[str], opening: str) -> bool:
    """Whether the words after a bracket at the beginning of a sentence go on from it, as in "[1] states that …"."""
    if opening.startswith(":") or not _GOES_ON_FROM.match(text, form.end()):
        return False
    if opening:
        return True
    end = text.find("\n", form.end())
    line = text[form.end() : len(text) if end < 0 else end].rstrip(" \t*_)")
    return line.endswith(_STOPS) and "://" not in line


def _begins_with_mark(text: str) -> bool:
    return _FORM.match(text, len(text) - len(text.lstrip())) is not None


def _leads(text: str) -> bool:
    """Whether a response cites before each of its sentences, in an order that no list of sources or steps has."""
    if not _begins_with_mark(text):
        return False
    first: list[int] = []
    end = 0
    for form in _FORM.finditer(text):
        between = text[end : form.start()]
        end = form.end()
        if first and not between.strip(" \t,;&"):
            continue  # [2] of "[1][2]"
        if first and not (has_words(between) and _SENTENCE_ENDS.search(between.rstrip()[-_LOOK_BACK:])):
            return False
        first.append(int(re.findall(r"\d+", form[0])[0]))
    return has_words(text[end:]) and any(later <= earlier for earlier, later in pairwise(first))


def _line_before(text: str, place: int) -> str:
    """The end of the text before a place in its line."""
    window = max(0, place - _LOOK_BACK)
    return text[max(text.rfind("\n", window, place) + 1, window) : place]


def _is_line_of_marks(text: str, start: int) -> bool:
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    return not _FORM.sub("", line).strip(" \t,;.&")


def _are_words(before: str) -> bool:
    """Whether a text that ends before a bracket ends in words."""
    bare = before.rstrip(" \t\u00a0\u202f")
    if _SOURCES_BEFORE.search(bare):
        return True
    if bare.endswith("(") and bare[:-1].endswith((" ", "\t")):
        bare = bare[:-1].rstrip()
    last = bare[-1:]
    if not (last.isalnum() or last in _CLOSING or _is_mark(last)) or not re.search(r"[^\W_]", bare):
        return False
    word = _IDENTIFIER.search(bare) if bare == before else None
    return not (word and _is_code(word[0]))


def _is_mark(character: str) -> bool:
    """A vowel sign or accent, as at the end of Hindi and Thai words."""
    import unicodedata

    return unicodedata.category(character).startswith("M") if character else False


def _is_code(word: str) -> bool:
    is_letter = len(word) == 1 and word.islower()
    return is_letter or "_" in word or "$" in word or word in _IN_CODE


# Sentences

_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_STRAY = re.compile(f"[{_OPEN}{_CLOSE}]")
_ENDING = ".!?…。！？؟।,;\"'”’»)*_"
_BETWEEN = " \t,;.:&()"
_EMPTY = re.compile(rf"\s*\(\s*(?:{_SOURCES}\s*:?)?\s*\)", re.IGNORECASE)


def _with_placeholders(response: str, marks: Sequence[_Mark]) -> str:
    """The response with a placeholder in place of each mark, before the full stop of the sentence that it follows."""
    parts: list[str] = []
    last, punctuation = 0, ""
    for number, mark in enumerate(marks):
        between = _STRAY.sub(" ", response[last : mark.start])
        if mark.leads:
            parts += (punctuation, between)
            punctuation = ""
        elif between.strip(" \t,;&") or not parts:
            parts.append(punctuation)
            kept = between.rstrip()
            bare = kept.rstrip(_ENDING)
            punctuation = kept[len(bare) :]
            parts.append(bare.rstrip())
        parts.append(f"{_OPEN}{number}{_CLOSE}")
        last = mark.end
    return "".join((*parts, punctuation, _STRAY.sub(" ", response[last:])))


def _without(sentence: str) -> str:
    return " ".join(_EMPTY.sub("", _PLACEHOLDER.sub("", sentence)).split())
