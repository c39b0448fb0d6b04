"""Who speaks in a chat: the words for the user and the bot, and texts in which each turn begins with its speaker."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rag_eval.records import ASSISTANT, USER, Turn

USERS = (
    "user", "human", "customer", "client", "end user", "end-user", "enduser", "visitor", "requester",
    "caller", "guest", "lead", "incoming",    "utilisateur", "utilisatrice", "usager", "cliente",
    "nutzer", "nutzerin", "benutzer", "benutzerin", "anwender", "kunde", "kundin",
    "usuario", "usuaria", "usuário", "usuária", "utilizador", "utilizadora", "utente", "gebruiker", "klant",
    "ユーザー", "ユーザ", "利用者", "顧客", "お客様", "用户", "用戶", "使用者", "客户", "客戶", "顾客",
)  # fmt: skip
BOTS = (
    "assistant", "ai", "agent", "bot", "chatbot", "gpt", "chatgpt", "model", "support", "agentbot",
    "agent bot", "outgoing",
    "assistante", "assistent", "assistentin", "ki", "modell", "kundenservice", "asistente", "agente", "modelo",
    "assistente", "modello", "modèle", "medewerker",
    "アシスタント", "ボット", "モデル", "助手", "智能助手", "助理", "机器人", "機器人", "客服", "模型",
)  # fmt: skip
"""Usual words in English, French, German, Spanish, Portuguese, Italian, Dutch, Japanese and Chinese."""
_IN_FIELDS = {"contact": USER, "admin": ASSISTANT}
"""In columns and fields for the speaker, as of Chatwoot and Intercom. In texts, "Contact:" is no turn."""
_OTHERS = (
    "system", "developer", "tool", "function", "système", "systeem", "sistema", "herramienta", "werkzeug", "系统",
    "系統", "システム",
)  # fmt: skip
_QUESTIONS = (
    "q", "question", "query", "frage", "pregunta", "pergunta", "domanda", "vraag", "質問", "问题", "問題", "问", "問",
)  # fmt: skip
_ANSWERS = (
    "a", "answer", "response", "réponse", "antwort", "respuesta", "resposta", "risposta", "antwoord", "回答", "答",
)  # fmt: skip
"""As speakers they count only in texts that have both."""


def is_speakers(words: Collection[str]) -> bool:
    """Whether words are those for the speakers of chats, the user and the bot among them."""
    return {USER, ASSISTANT} <= {*roles_of(words).values()} and all(map(is_speaker, words))


def roles_of(words: Collection[str]) -> dict[str, str]:
    """The roles of the speakers of one table; as Chatwoot writes it, a user who answers a contact is the bot's side."""
    plain = {_plain(word) for word in words}
    is_contacted = {"contact", "user"} <= plain and "admin" not in plain
    return {word: ASSISTANT if is_contacted and _plain(word) == USER else role_of(word) for word in words}


def is_speaker(word: str) -> bool:
    """Whether somebody of a chat is called so: the user, the bot, the system or a tool."""
    return bool(role_of(word)) or _plain(word) in _OTHERS


def role_of(speaker: str) -> str:
    """USER or ASSISTANT, whether numbered or not; '' for anybody else."""
    word = _plain(speaker)
    return _IN_FIELDS.get(word) or _role_in_text(word)


def _role_in_text(word: str) -> str:
    return USER if word in USERS else ASSISTANT if word in BOTS else ""


def _plain(word: str) -> str:
    return _NUMBER.sub("", word.strip().casefold().replace("_", " "))


_NUMBER = re.compile(r"[\s_#-]*\d+$")


class _SpeakerMark(NamedTuple):
    """The beginning of a line that may name its speaker."""

    start: int
    end: int
    label: str
    form: str
    """Label and signs around it, as they are written."""
    is_stamped: bool
    """A time comes before the label."""
    is_apart: bool
    """It is the first line, or follows a blank one."""


def turns_of_text(text: str) -> list[Turn]:
    """The turns of a text that begins with a speaker, such as 'User: …'; [] for any other.

    Two labels that begin lines by turns are speakers as well, whatever they are called: the first one asks, unless a
    word in one of them says otherwise.
    """
    marks = _marks(text)
    roles = _speakers(marks)
    chosen = [mark for mark in marks if mark.form in roles]
    apart = [mark for mark in chosen if mark.is_apart]
    if len(apart) < len(chosen) and _alternate([roles[mark.form] for mark in apart]):
        chosen = apart  # the others are lines of a turn
    found = [(mark.start, mark.end, roles[mark.form]) for mark in chosen]
    if len(found) < 2 and _INLINE.match(text, (first := _begin(text))):
        within = [
            (mark.start(), mark.end(), _role_of_label(mark[1])) for mark in _INLINE.finditer(text, first)
        ]
        found = within if len(within) > len(found) else found
    ends = [*(start for start, _, _ in found[1:]), len(text)][: len(found)]
    return [
        Turn(role, text[begin:end].strip()) for (_, begin, role), end in zip(found, ends, strict=True) if role
    ]


def _begin(text: str) -> int:
    """Where the first character is that is not white space."""
    return len(text) - len(text.lstrip())


def labels_in(text: str) -> list[str]:
    """What begins a text and further lines of it as the name of a speaker does; [] if its first line has none."""
    return list(dict.fromkeys(mark.label for mark in _marks(text)))


def _marks(text: str) -> list[_SpeakerMark]:
    """From the first line on; [] if it has none. If it has a time, all others must have one."""
    first = text.rfind("\n", 0, _begin(text)) + 1
    if not _LINE.match(text, first):  # so long texts without a speaker are not searched
        return []
    found = [
        _SpeakerMark(
            line.start(), line.end(), line["label"].strip(), f"{line['open']}{line['label'].strip()}",
            line["stamp"] is not None, line.start() == first or text.endswith(("\n\n", "\r\n\r\n"), 0, line.start()),
        )
        for line in _LINE.finditer(text, first)
    ]  # fmt: skip
    return [mark for mark in found if mark.is_stamped] if found[0].is_stamped else found


def _speakers(marks: Sequence[_SpeakerMark]) -> dict[str, str]:
    """By form: the role of those that are speakers; {} if nobody can be told. '' is a system or a tool."""
    roles: dict[str, str] = {}
    for mark in marks:
        role = _role_of_label(mark.label)
        if (role and role not in roles.values()) or _plain(mark.label) in _OTHERS:
            roles[mark.form] = role
    is_known = bool(marks) and marks[0].form in roles
    if is_known and len({*roles.values()} - {""}) == 2:
        return roles
    by_form: dict[str, list[_SpeakerMark]] = {}
    for mark in marks:
        by_form.setdefault(mark.form, []).append(mark)
    for other in [*by_form.values()][1:]:
        first = by_form[marks[0].form]
        may_alternate = abs(len(first) - len(other)) <= 1  # a log has thousands that do not
        if (may_alternate or marks[0].is_stamped) and (named := _by_turns(sorted([*first, *other]))):
            return named
    is_word = is_known and _plain(marks[0].label) in (*_QUESTIONS, *_ANSWERS)
    return {} if is_word or not is_known else roles


def _by_turns(marks: Sequence[_SpeakerMark]) -> dict[str, str]:
    """The roles of two labels that take turns often enough; {} for any others."""
    first, second = dict.fromkeys(mark.form for mark in marks)
    known = [
        _role_by_words(next(mark.label for mark in marks if mark.form == form)) for form in (first, second)
    ]
    enough = 2 if known[1] else 4 if known[0] else 3
    if not marks[0].is_stamped and (len(marks) < enough or not _alternate([mark.form for mark in marks])):
        return {}
    asks_first = known[0] == USER or known[1] == ASSISTANT or not (known[0] or known[1])
    return dict(zip((first, second), (USER, ASSISTANT) if asks_first else (ASSISTANT, USER), strict=True))


def _alternate(values: Sequence[str]) -> bool:
    return len({*values}) == 2 and all(one != other for one, other in pairwise(values))


def _role_of_label(label: str) -> str:
    word = _plain(label)
    return USER if word in _QUESTIONS else ASSISTANT if word in _ANSWERS else _role_in_text(word)


def _role_by_words(label: str) -> str:
    """Of the label, or of the only word in it that is known, as in 'Support bot'."""
    roles = {_role_in_text(_plain(word)) for word in label.split()} - {""}
    return _role_of_label(label) or (roles.pop() if len(roles) == 1 else "")


def _lines() -> Iterator[str]:
    day, clock = (
        r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}",
        r"\d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?",
    )
    yield r"^[\u200e\ufeff \t]*"
    yield rf"(?P<stamp>\[?(?:{day},?[ T]+)?{clock}\]?[ \t]*(?:[-–][ \t]*)?)?"
    yield r"(?P<open>[*_\[<#]{0,4}[ \t]?)(?P<label>[^\W\d_][^\n:：*\[\]<>|.,;!?。]{0,39}?)[*_\]>]{0,4}[ \t]*"
    yield r"[:：](?!//)[*_]{0,4}[ \t]*"


_LINE = re.compile("".join(_lines()), re.MULTILINE)
_KNOWN = "|".join(
    re.escape(word.title() if word not in ("ai", "ki", "gpt") else word.upper())
    for word in (*USERS, *BOTS, *_OTHERS, *_QUESTIONS, *_ANSWERS)
)
_INLINE = re.compile(rf"(?:^|(?<=\s))({_KNOWN}|ChatGPT)(?: ?\d)?(?::\s+|：\s*)")
"""Within a line only names with a capital count."""
