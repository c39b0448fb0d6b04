"""Numbers in brackets that have the form and the place of citations, whatever they name. Pure, and without words."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


class Mark(NamedTuple):
    """Something of the form of a citation, after words."""

    start: int
    """Index into the text."""
    end: int
    ranges: tuple[tuple[int, int], ...]
    """First and last number; of a single one, twice the same."""
    leads: bool
    """It belongs to the sentence that it begins, not to the one before it."""
    is_index: bool
    """It has the form of OpenAI's search results, which are counted from 0."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """As they are written, so of a range the first and the last."""
        return tuple(dict.fromkeys(number for both in self.ranges for number in both))


_NUMBER = r"(?:0|[1-9]\d{0,2})"
SOURCE_NAME = (
    r"(?i:(?:sources?|documents?|docs?|chunks?|passages?|contexts?|excerpts?|snippets?|ref(?:erence)?s?|citations?|quellen?"
    r"|dokumente?|fuentes?|documentos?|fontes?|fonti|fonte|bron(?:nen)?|källa|źródło|источник|来源|來源|文档|資料|文献|출처)"
    r"[ :#._-]{0,3}+)"
)
"""What may be before the number in brackets, as in "[Source 2]"."""
_SPOKEN = r"(?i:(?:sources?|chunks?|passages?|quellen?|fuentes?|fontes?|fonti|fonte|bron(?:nen)?) #?)"
"""The same before a number in parentheses, as in "(source 2)"; a document may be one of the reader's."""
_BRACKETED = re.compile(rf"\[ ?(?:\^|{SOURCE_NAME})?\d|【\d{{1,3}}(?::\d{{1,3}})?[†】]|\({_SPOKEN}\d")
_LISTED = rf"{_NUMBER}(?:\s?[-–]\s?{_NUMBER})?+(?:\s?[,;]\s?{_NUMBER}(?:\s?[-–]\s?{_NUMBER})?+)*+"
_JOINT = r"(?:\s?[,;&]\s?|\s(?:and|und|et|y|e|en|и)\s)"
_NAMED_LIST = (
    rf"{_NUMBER}(?:\s?[-–]\s?{_NUMBER})?+(?:{_JOINT}{SOURCE_NAME}?{_NUMBER}(?:\s?[-–]\s?{_NUMBER})?+)*+"
)
_URL = r"\(https?://(?:[^\s()]|\([^\s()]{0,200}\)){1,2000}+(?:[ \t]\"[^\"\n]{0,300}\")?\)"
_FORM = re.compile(
    rf"(?P<link>(?<!!)\[(?P<nest>\[\^?)?{SOURCE_NAME}?(?P<linked>{_NUMBER})(?(nest)\^?\])\]{_URL})"
    rf"|\[ ?(?:\^(?P<note>{_NUMBER})\^?|{SOURCE_NAME}(?P<named>{_NAMED_LIST})|(?P<several>{_LISTED})) ?\]"
    rf"|\({_SPOKEN}(?P<spoken>{_NAMED_LIST})\)"
    rf"|\\\[(?P<escaped>{_LISTED})\\\]"
    rf"|【(?:(?P<message>{_NUMBER}):(?P<index>{_NUMBER})(?=†)|(?P<source>{_NUMBER}))(?:†[^】\n]{{1,80}})?】"
)
"""`[doc2]` is how Azure OpenAI writes a citation, `【2†source】` and `【4:0†source】` how OpenAI does. The latter
names a message with results of a search, and one of these."""
_NUMBERS = ("linked", "note", "named", "spoken", "several", "escaped", "index", "source")
_MASKED = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|``[^`]+``|`[^`\n]+`|<(code|pre)\b.{0,4000}?</\1>"  # code
    r"|\$\$.{1,1000}?\$\$|\$(?=[^$\n]{0,200}[\\^_={}])[^$\n]{1,200}\$|\\\(.{1,1000}?\\\)"  # formulas
    rf"|\\\[(?!{_LISTED}\\\]).{{1,1000}}?\\\]"
    rf"|(?:!\[|\[(?!{SOURCE_NAME}?\d{{1,3}}\]\(https?:))[^\]\n]{{0,300}}\]\([^)\n]{{0,2000}}\)"  # links
    rf"|\[(?! ?(?:\^|{SOURCE_NAME})?\d)[^\]\n]{{1,300}}\]\[\d+\]",
    re.DOTALL | re.IGNORECASE,
)
_NOTE = re.compile(r"^[ \t]*\[\^(\d+)\]:[ \t]*(.*)$", re.MULTILINE)
_SOURCE = re.compile(
    r"https?://|www\.|\.(?:pdf|docx?|html?|md|txt|xlsx?)\b|\b(?:chunk|context|document|doc|passage|source)\b",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\w({+]|-\w|\s*(?:[:*/-]?=|->)|\.[a-z_]+\(")
_WORD = re.compile(r"[^\W_]")
_UNCASED = re.compile(r"[^\W\d_]")
_CLOSING = ".,;!?…)\"'”’»%°*_~™®€£。，、；！？）」』】؟।،"
SOURCES = (
    r"(?:sources?|see(?: also)?|cf|ref(?:erence)?s?|according to|quellen?|siehe|vgl|nach|fuentes?|véase|ver|según"
    r"|voir|selon|fontes?|veja|fonti?|vedi|bron(?:nen)?|zie|källor|källa|źródł[oa]|kaynak(?:lar)?|источники?|см"
    r"|출처|المصدر|المصادر|स्रोत|ที่มา|nguồn|出典|参照|参考|来源|來源|出处)"
)
_SOURCES_BEFORE = re.compile(rf"(?<!\w){SOURCES}\s*[:：]?\s*\Z", re.IGNORECASE)
NUMBERED_WORDS = (
    r"(?:pages?|pp?\.|sections?|sec\.|clauses?|articles?|art\.|chapters?|ch\.|figures?|figs?\.|tables?|tab\.|steps?"
    r"|questions?|equations?|eqs?\.|rows?|columns?|nos?\."
    r"|seiten?|s\.|abschnitt|artikel|kapitel|kap\.|abb(?:ildung|\.)|tabelle|schritt|frage|gleichung|nr\.|zeile|spalte"
    r"|páginas?|págs?\.|sección|artículo|capítulo|figura|tabla|paso|pregunta|ecuación"
    r"|artigo|seção|página|tabela|passo|questão|chapitre|figure|tableau|étape"
    r"|pagina|sezione|articolo|capitolo|tabella|passo|hoofdstuk|artikel|tabel|stap"
    r"|страниц[аеы]|раздел|стать[яи]|глав[аы]|рис\.|таблиц[аы]|шаг)"
)
"""Words that may have a number of their own, as in "see page [2]"."""
_NUMBERED = re.compile(rf"(?<!\w){NUMBERED_WORDS}\s*\Z", re.IGNORECASE)
_BARE = re.compile(
    r"(?:\A|[.!?:;(]|(?<!\w)(?:in|on|of|to|at|see|read|from|per|under|by|and|or|with|answer|auf|nach|laut|siehe|von|mit"
    rf"|und|voir|selon|et|en|de|y|según|e|di|secondo|zie|op|na|volgens|на|в|см|из|по|и))\.?\s*{NUMBERED_WORDS}\s*\Z",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[ \t]+[a-zß-öø-ÿа-яё]")
_PAIRED = re.compile(
    r"(?<!\w)(?:intervals?|rang(?:es?|ing)|scales?|between|from|aged?|ages|array|list|vector|matrix|tuple|set"
    r"|intervalls?|bereichs?|spanne|\w*skala|zwischen|alter|intervalles?|plage|[ée]chelle|entre|intervalos?|rango|escala"
    r"|faixa|intervallo|scala|fra|tra|bereik|schaal|tussen|skalan?|mellan|przedzia\w+|skal[iąęi]|zakres\w*|aralı\w+|ölçe\w+"
    r"|liste|lista|интервал\w*|диапазон\w*|шкал\w+|между|مقياس|المقياس|نطاق|النطاق|बीच|पैमाने)"
    r"(?:\s+(?:of|from|is|are|at|to|von|vom|bis|ist|de|du|des|est|es|van|di|da|è|от|पर|من))*\s*[:=]?\s*\Z"
    r"|(?:[%(,;]|percent)[\s-]{0,2}(?-i:CI|KI|IC|BI|ДИ)\s*[:=]?\s*\Z"  # not "a form of KI [1, 2]"
    r"|(?-i:CI|KI|IC|BI|ДИ)\W{0,2}(?:à|de|del|al|a)?\W{0,2}\d\d(?:[.,]\d)?\s?%\)?\s*[:=]?\s*\Z"
    r"|(?:数组|数列|区间|范围|列表|向量|矩阵|等级|量表|配列|区間|範囲|段階|スケール|구간|범위|척도)[为是はで은는:：]?\s*\Z",
    re.IGNORECASE,
)
"""Words that two numbers follow, as in "the interval [0, 1]" and "95% CI [1, 3]"."""
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
_RUN = (
    rf"(?:[ \t]?[,;&]?[ \t]?(?:\[ ?(?:\^|{SOURCE_NAME})?\d[^\]\n]{{0,40}}\]|\({_SPOKEN}\d[^)\n]{{0,40}}\)"
    r"|【\d[^】\n]{0,80}】)){0,8}"
)
_WORD_FOLLOWS = re.compile(_RUN + r"[ \t*_]*[^\W_]")
_GOES_ON_FROM = re.compile(
    _RUN + r"(?:[ \t]+[a-zß-öø-ÿа-яё](?![a-z]*[A-Z])"
    r"|\s*(?:に|では?|[はのがも]|から|指出|表明|称|说|說|认为|認為|显示|顯示|提到|规定|規定|说明|說明|介绍|介紹|中(?=[，,指提说写规介表显称]))"
    r"|(?:에|은|는|이|가|의|과|와)\s)"
)
"""Words that go on from a citation as from a name: a small letter, or a particle or verb of a script without it."""


def marks(plain: str, *, leads: bool, chunks: Sequence[str] = ()) -> list[Mark]:
    """Everything in an unmasked text that has the form and the place of a citation, whatever its numbers are.

    `leads` says that who wrote it cites before its sentences, in texts that begin with a citation. A footnote
    cites if it names a file or the like, or has words of one of the `chunks`.
    """
    listed = _NOTE.finditer(plain) if "[^" in plain else ()
    notes = {note[1] for note in listed if not _names_source(note[2], chunks)}
    leads = leads and begins_with_mark(plain)
    has_capitals = not plain.islower()
    found: list[Mark] = []
    enumerates, end = False, 0  # whether "[1] Open the app. [2] Log in" counts the items of this line
    for form in _forms(plain):
        enumerates = enumerates and "\n" not in plain[end : form.start()]
        before, end = end, form.end()
        if form["note"] in notes:
            continue
        opening = _opening(plain, form)
        is_lead = opening is not None and (
            leads or ((has_capitals or not opening) and _begins(plain, form, opening))
        )
        is_heading = form["source"] is not None and "†" not in form[0]  # as in "【1】Rules 【2】Fees"
        if (opening or is_heading) and not is_lead and enumerates:
            continue
        if not is_lead and not _is_in_place(plain, form, found, before):
            enumerates = enumerates or (opening is not None and bool(_WORD_FOLLOWS.match(plain, end)))
            continue
        if ranges := _ranges(form):
            found.append(Mark(form.start(), end, ranges, is_lead, form["index"] is not None))
    return found


def _names_source(note: str, chunks: Sequence[str]) -> bool:
    words = note.strip(" \t.*_\"'”“’‘")
    is_quote = " " in words and any(words in chunk for chunk in chunks)
    return is_quote or _SOURCE.search(note) is not None


def _forms(plain: str) -> list[re.Match[str]]:
    """What has the form of a citation.

    A link and a number of a search result are citations only if one of them is at the end of a clause. Results of
    several searches have the same numbers, so nobody can tell which chunks they are.
    """
    forms = list(_FORM.finditer(plain))
    doubtful = [form for form in forms if form["link"] or form["index"]]
    if not doubtful:
        return forms
    is_cited = not all(_GOES_ON.match(plain, form.end()) for form in doubtful)
    is_one_search = len({form["message"] for form in doubtful} - {None}) == 1
    return [
        form
        for form in forms
        if is_cited or not (form["link"] or form["index"])
        if is_one_search or form["index"] is None
    ]


def _ranges(form: re.Match[str]) -> tuple[tuple[int, int], ...]:
    """() if a range goes backwards."""
    found = []
    for item in re.split(_JOINT, _listed(form)):
        first, *last = map(int, re.findall(r"\d+", item))
        if last and last[0] <= first:
            return ()
        found.append((first, last[0] if last else first))
    return tuple(found)


def _listed(form: re.Match[str]) -> str:
    """What names chunks in a form, such as "2" or "1, 3-5"."""
    return next(form[name] for name in _NUMBERS if form[name] is not None)


def has_number(text: str) -> bool:
    """Whether a number is in brackets, of whatever kind."""
    return _BRACKETED.search(text) is not None


def unmasked(text: str) -> str:
    """The text with blanks in place of code, formulas and links; nothing if no number is in brackets."""
    if not has_number(text):
        return ""
    return _MASKED.sub(lambda part: _blank(part[0]), text) if _may_be_masked(text) else text


def _may_be_masked(text: str) -> bool:
    return any(sign in text for sign in ("`", "~~~", "<", "$", "\\", "](", "]["))


def _blank(part: str) -> str:
    """As long, and no word; a line break stays one."""
    return re.sub(r"[^\n]", "\x1f", part)


def _is_in_place(text: str, form: re.Match[str], found: Sequence[Mark], last: int) -> bool:
    """Whether it follows words, or a mark that does, and nothing that follows makes it code or a link.

    `last` is the end of the form before it.
    """
    after = _AFTER.match(text, form.end())
    if after and not (_UNCASED.match(after[0]) and after[0].lower() == after[0].upper()):
        return False
    before = _line_before(text, form.start())
    if not before.strip(" \t"):
        line = form.start() - len(before)
        return line > 0 and _is_line_of_marks(text, line)
    follows_form = last and not text[last : form.start()].strip(" \t,;&")
    if follows_form or before.rstrip(" \t,;&").endswith(("]", "】")):
        return bool(found) and not text[found[-1].end : form.start()].strip(" \t,;&")
    if not _are_words(before):
        return False
    if _NUMBERED.search(before, _start_of_last(1, before)):
        return not (form["link"] or _BARE.search(before) or _GOES_ON.match(text, form.end()))
    listed = form["several"] or form["escaped"] or ""
    return not (re.search(r"\d\D+\d", listed) and _is_of_values(before, text, form, listed))


def _is_of_values(before: str, text: str, form: re.Match[str], listed: str) -> bool:
    """Whether two numbers after these words are limits of values, as in "on a scale [1-5]"."""
    if not re.search("[,;]", listed) and _COUNTED.match(text, form.end()):
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


def begins_with_mark(text: str) -> bool:
    """Whether a text has the form of a citation before anything else."""
    return _FORM.match(text, len(text) - len(text.lstrip())) is not None


def leads_in(text: str) -> bool:
    """Whether a response cites before each of its sentences, in an order that no list of sources or steps has."""
    if not begins_with_mark(text):
        return False
    first: list[int] = []
    end = 0
    for form in _FORM.finditer(text):
        between = text[end : form.start()]
        end = form.end()
        if first and not between.strip(" \t,;&"):
            continue  # [2] of "[1][2]"
        if first and not (_WORD.search(between) and _SENTENCE_ENDS.search(between.rstrip()[-_LOOK_BACK:])):
            return False
        first.append(int(re.split(r"\D", _listed(form), maxsplit=1)[0]))
    return _WORD.search(text, end) is not None and any(later <= earlier for earlier, later in pairwise(first))


def _line_before(text: str, place: int) -> str:
    """The end of the text before a place in its line."""
    window = max(0, place - _LOOK_BACK)
    return text[max(text.rfind("\n", window, place) + 1, window) : place]


def _is_line_of_marks(text: str, start: int) -> bool:
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    return not _FORM.sub("", line).strip(" \t,;.&")


def _start_of_last(count: int, text: str) -> int:
    """Where its last words begin: nothing before them is looked at, which takes a quarter of the time."""
    for _ in range(count):
        text = text.rstrip()
        text = text[: text.rfind(" ") + 1]
    return len(text)


def _are_words(before: str) -> bool:
    """Whether a text that ends before a bracket ends in words."""
    bare = before.rstrip(" \t\u00a0\u202f")
    end = bare.rstrip()[-1:]  # before what stands for a link as well
    may_be_source = end.isalnum() or end in ":：" or _is_mark(end)
    if may_be_source and _SOURCES_BEFORE.search(bare, _start_of_last(3, bare)):
        return True
    if bare.endswith("(") and bare[:-1].endswith((" ", "\t")):
        bare = bare[:-1].rstrip()
    last = bare[-1:]
    if not (last.isalnum() or last in _CLOSING or _is_mark(last)) or _WORD.search(bare) is None:
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


# As words


def compact(text: str) -> str:
    """The text with each citation that has white space or a link in it as `[1,2]`, so that it is one piece."""
    is_spaced = (
        ("[" in text and _IN_SQUARE.search(text))
        or ("(" in text and _IN_ROUND.search(text))
        or ("【" in text and _IN_LENTICULAR.search(text))
    )
    if not is_spaced:
        return text
    parts: list[str] = []
    last = 0
    for mark in marks(unmasked(text), leads=True):
        parts += (text[last : mark.start], f"[{','.join(map(str, mark.numbers))}]")
        last = mark.end
    return "".join((*parts, text[last:]))


def places_of(text: str, sign: str, start: int) -> Iterator[int]:
    place = text.find(sign, start)
    while place >= 0:
        yield place
        place = text.find(sign, place + 1)


# A pattern that begins with one sign is searched many times as fast as one that begins with one of several.
_IN_SQUARE = re.compile(
    r"\[(?=[^\d\]\n]{0,30}+\d)"
    r"(?:\d{1,3}(?:\s?[,;–-]\s|\s[,;–-]|(?:\s?[,;–-]\s?\d{1,3}){0,20}[,;–-]\s| \])| \d"
    rf"| ?{SOURCE_NAME}\d|(?<=\\\[)\d|\[?\^?\d{{1,3}}\^?\]{{1,2}}\(https?://)"
)
"""Citations of several pieces, or with a link."""
_IN_ROUND = re.compile(rf"\((?=[sScCpPqQfFbB][^\W\d_]{{3,8}}+ #?\d){_SPOKEN}\d")
_IN_LENTICULAR = re.compile(r"【\d{1,3}(?::\d{1,3})?†[^】\n]{0,80}?\s")
NO_WORD = re.compile(
    rf"\[(?:\^|{SOURCE_NAME})?\d++\^?(?:\s?[,;\-–]\s*+\d++)*+\]"
    r"|【\d{1,3}(?::\d{1,3})?(?:†[^】\n]{0,80})?】"
)
"""What is no word in a piece without white space: the forms of citations, also of numbers too great for one."""
