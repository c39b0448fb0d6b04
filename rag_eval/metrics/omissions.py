"""Does a reply leave out what it was asked about?

Words cannot prove it: a judge may merge two statements, say them in other words or in another language. So a reply that
may leave something out is taken, after the judge was asked once more and told what has no counterpart; the score then
names what may not have been judged. Sentences that claim nothing need no verdict.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Protocol, TypeVar

from rag_eval.errors import JudgeError
from rag_eval.judge.calls import Call, Reply
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.texts.languages import have_one_language
from rag_eval.texts.words import has_words, normalise, read, sentences, stems_of

_SHARED = 1 / 2
"""Of the content of the shorter of two statements: so much in common makes a near match."""
_SHARED_WITH_OTHER_TEXT = 1 / 3
"""The same for statements of two texts."""
_CONTENT = 3
"""Stems that make a sentence worth classifying; fewer are a heading or a 'Yes.'."""


class _NamesOneStatement(Protocol):
    @property
    def statement(self) -> str: ...


Judged = TypeVar("Judged", bound=_NamesOneStatement)


async def fuller_reply(
    call: Call[Reply], left_out: Callable[[Reply], Sequence[str]]
) -> tuple[Reply, Sequence[str]]:
    """The reply to the call, and what it may leave out.

    Where something may be missing, the judge is asked once more, and the reply that leaves out less counts. The second
    request names what has no counterpart, so that its key is another one. If it fails, nothing is lost.
    """
    first = await call
    missing = left_out(first)
    if not missing:
        return first, ()
    words = _LEFT_OUT.format(json.dumps(missing, ensure_ascii=False))
    try:
        second = await replace(call.followed_by(words), tries=1, has_fallback=True)
    except JudgeError:
        return first, missing
    still_missing = left_out(second)
    return (second, still_missing) if len(still_missing) < len(missing) else (first, missing)


_LEFT_OUT = (
    "An earlier reply had no entry for these sentences: {}. If an entry covers one of them in other words, leave it "
    "so. Greetings, headings and names of sources need none. Otherwise add an entry. Reply with the whole JSON object."
)


def unmatched_statements(
    sent: Sequence[str], replied: Sequence[str], hits: Sequence[str] = (), others: Sequence[str] = ()
) -> list[str]:
    """Those of the sent statements that have no near match in the reply; none if it has as many.

    `replied` are statements of the same text as `sent`. `hits` and `others` are statements of another text: those that
    agree with one or more of the sent, and the rest. Only texts of one language are compared.
    """
    if _count(replied) + _count(hits) >= _count(sent):
        return []
    known, given = _plain(sent), _plain(replied)
    unknown = [each for each in sent if normalise(each).strip() not in given]
    reworded = [
        each for each in replied if normalise(each).strip() not in known
    ]  # a copy stands for one only
    if not have_one_language(" ".join(sent), " ".join([*replied, *hits, *others])):
        return []
    unmatched = without_match(unknown, reworded, _SHARED)
    return without_match(unmatched, [*hits, *others], _SHARED_WITH_OTHER_TEXT)


def once_each(judged: Sequence[Judged], sent: Iterable[str] = ()) -> list[Judged]:
    """Without copies of a statement, unless it was sent several times."""
    left = Counter(sent)
    kept = []
    for each in judged:
        left.setdefault(each.statement, 1)
        if left[each.statement] > 0:
            kept.append(each)
        left[each.statement] -= 1
    return kept


def unclassified_sentences(text: str, replied: Sequence[str]) -> list[str]:
    """The sentences of a text that claim something and have no near match in the reply; none if it has as many."""
    parts, count = sentences(text), _count(replied)
    if count >= len(parts):  # as in most replies: to tell which of them claim something takes longer
        return []
    claims = claims_among(parts)
    if count >= len(claims) or not have_one_language(text, " ".join(replied)):
        return []
    return without_match(claims, replied)


def claims_among(parts: Collection[str]) -> list[str]:
    """Those of the sentences of a text that claim something: no greeting, question, heading, or name of a source."""
    has_full_stops = any(part[-1] in _FULL_STOPS for part in parts)
    return [
        part
        for part in parts
        if len(_content(part)) >= _CONTENT
        and part[-1] not in _CLAIMS_NOTHING
        and not _NAMES_A_SOURCE.search(part)
        and not _IS_COURTEOUS.match(part)
        and not (has_full_stops and _is_heading(part))
    ]


def claims_nothing(text: str) -> bool:
    """Whether all that a text has is questions, greetings, closings, names of sources, and refusals to answer."""
    return all(
        part[-1] in _QUESTION_MARKS
        or _NAMES_A_SOURCE.search(part)
        or _IS_COURTEOUS.match(part)
        or is_refusal(read(part))
        for part in sentences(text)
    )


_QUESTION_MARKS = frozenset("?？؟")
_FULL_STOPS = frozenset(".。।")
_CLAIMS_NOTHING = frozenset("?!:？！：؟")
_NAMES_A_SOURCE = re.compile(
    r"https?://|www\.|\.(?:pdf|docx?|html?)\b"
    r"|^\W*(?:sources?|references?|see|quellen?|siehe|fuentes?|véase|voir|fontes?|fonti?|bron(?:nen)?|zie|käll(?:a|or)"
    r"|źródł[oa]|kaynak(?:lar)?|источники?|см|출처|المصدر|المصادر|स्रोत|ที่มา|nguồn)\b\W"
    r"|^\W*(?:出典|参照|参考|来源|來源|出处)",
    re.IGNORECASE,
)
_IS_COURTEOUS = re.compile(
    r"(?:hello|hi|dear|thanks?|please|(?:best|kind) regards|sincerely|(?:i|we) hope|feel free|let us know"
    r"|hallo|guten (?:tag|morgen|abend)|liebe[rs]?|sehr geehrte[rs]?|(?:vielen )?dank|danke|bitte|mit freundlichen"
    r"|viele grüße|hola|buen[oa]s|estimad[oa]s?|(?:muchas )?gracias|saludos|un saludo|por favor"
    r"|bonjour|ch(?:er|ère)s?|merci|cordialement|bien à vous|n'hésitez pas"
    r"|ol[áa]|prezad[oa]s?|obrigad[oa]|atenciosamente|ciao|buongiorno|gentile|grazie|cordiali saluti"
    r"|beste|geachte|bedankt|met vriendelijke|dzień dobry|dziękuj\w+|pozdrawiam"
    r"|здравствуйте|добрый (?:день|вечер)|уважаем\w+|спасибо|с уважением|пожалуйста"
    r"|merhaba|sayın|teşekkür\w*|saygılar\w*"
    r"|مرحبا\w*|أهلا\w*|شكرا\w*|مع أطيب|नमस्ते|धन्यवाद)\b"
    r"|こんにちは|ありがとう|お問い合わせ|よろしく|您好|你好|谢谢|感谢|祝您|안녕하세요|감사합니다|สวัสดี|ขอบคุณ",
    re.IGNORECASE,
)
"""In languages that inputs often have. One that is not known costs a request more, and no score."""
_MOST_WORDS_OF_A_HEADING = 8


def _is_heading(part: str) -> bool:
    """In a text with full stops."""
    return part[-1].isalnum() and len(part.split()) <= _MOST_WORDS_OF_A_HEADING


def _plain(statements: Iterable[str]) -> set[str]:
    return {normalise(each).strip() for each in statements}


def _count(statements: Sequence[str]) -> int:
    """Of statements with words; copies of one count once."""
    return len(_plain(filter(has_words, statements)))


def without_match(sent: Sequence[str], replied: Sequence[str], shared: float = _SHARED) -> list[str]:
    """Those of the sent statements that have a smaller share of words than `shared` in common with each replied one."""
    contents = [content for each in replied if (content := set(_content(each)))]
    return [
        each
        for each in sent
        if (content := set(_content(each))) and not _has_match(content, contents, shared)
    ]


def _has_match(content: AbstractSet[str], others: Iterable[AbstractSet[str]], shared: float) -> bool:
    return any(len(content & other) >= shared * min(len(content), len(other)) for other in others)


def _content(statement: str) -> Collection[str]:
    return read(statement).stems or frozenset(stems_of(statement))
