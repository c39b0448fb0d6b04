"""Chats as tools write them, to the turns of a conversation. Pure.

A chat is a list of messages, of pairs of a question and its answer, or of texts that take turns; or one text in which
each message begins with its speaker. What the system and tools say is no turn.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from rag_eval.records import ASSISTANT, USER, Turn
from rag_eval.tables.cells import ChatMessage
from rag_eval.tables.names import QUERY, RESPONSE
from rag_eval.tables.speakers import BOTS, USERS, role_of, turns_of_text

_SPEAKERS = ("role", "type", "speaker", "from", "sender", "author")
_TEXTS = ("content", "text", "value", "answer", "output", "message", "refusal")
_NOT_SAID = frozenset(
    (
        "thinking", "redacted_thinking", "reasoning", "tool_use", "server_tool_use", "tool_call", "function_call",
        "tool_result", "web_search_tool_result", "image", "image_url", "input_image", "audio", "input_audio", "video",
        "file", "input_file", "document",
    )
)  # fmt: skip
"""Types of parts of a message that are no words of the user or the bot."""
_TOOL_CALLS = ("tool_calls", "function_call")
_ASKED = (*USERS, "question", "query", "input", "inputs")
_ANSWERED = (*BOTS, "answer", "response", "output", "outputs")
"""Fields of a question and its answer, where a chat is a list of both."""


# A chat in place of a query, a response or both


def last_message(value: object, *, of_user: bool) -> ChatMessage | None:
    """The last message of the user, or of the bot, in a list of messages; None in anything else.

    Of the user it knows the turns before it. What the user said before an answer is for the query to tell.
    """
    said = said_in(value)
    last = max((place for place, turn in enumerate(said) if (turn.role == USER) is of_user), default=None)
    if last is None:
        return None
    if of_user:
        return ChatMessage(said[last].content, _not_blank(said[:last]))
    begin = max((n for n, turn in enumerate(said[:last], 1) if turn.role == USER), default=0)
    return ChatMessage(said[last].content, unused=len(_not_blank(said[begin:last])))


def last_turn(value: object) -> dict[str, str] | None:
    """The last question in a list of chat messages that has an answer, and the last message of the bot after it.

    Without any answer, the last message of the user; None for anything else. The query knows the turns before it, and
    how many messages are left out: of the bot, and of the user after the answer.
    """
    said = said_in(value)
    end = max((place for place, turn in enumerate(said, 1) if turn.role != USER), default=0)
    if not any(turn.role == USER for turn in _not_blank(said[:end])):
        question = last_message(value, of_user=True)
        return None if question is None else {QUERY: question}
    answers = list(takewhile(lambda turn: turn.role != USER, reversed(said[:end])))
    asked = end - len(answers) - 1
    message = ChatMessage(
        said[asked].content,
        _not_blank(said[:asked]),
        unused=len(_not_blank(answers[1:])),
        unanswered=len(_not_blank(said[end:])),
    )
    return {QUERY: message, RESPONSE: answers[0].content}


def is_open(value: object) -> bool:
    """Whether what the user says after the last answer in a list of chat messages asks for another: not mere thanks."""
    left = takewhile(lambda turn: turn.role == USER, reversed(said_in(value)))
    return any(_asks(turn.content) for turn in left)


def _asks(text: str) -> bool:
    words = _WORD.findall(text.casefold().replace("’", "'"))
    is_thanks = not words or (not _THANKS.isdisjoint(words) and (_THANKS | _WITH_THANKS).issuperset(words))
    return any(mark in text for mark in "?？؟") or not is_thanks


_WORD = re.compile(r"[^\W_](?:[^\W_]|['\u0300-\u036f\u0900-\u0dff])*")
_SAID_IN_THANKS = """
    thanks thank thx ty cheers great perfect excellent awesome wonderful amazing brilliant nice good cool fine ok okay
    alright understood noted appreciate appreciated helpful helps helped works worked bye goodbye goodnight
    danke dank dankeschön super prima toll klasse verstanden tschüss gut merci parfait entendu gracias perfecto vale
    genial adiós obrigado obrigada perfeito tchau grazie perfetto ciao bedankt dziękuję dzięki tack takk tak kiitos
    спасибо teşekkürler شكرا धन्यवाद 谢谢 谢谢你 谢谢您 謝謝 多谢 多謝 好的 明白了 再见 再見
    ありがとう ありがとうございます ありがとうございました わかりました 了解です 감사합니다 고맙습니다
"""
_THANKS = frozenset(_SAID_IN_THANKS.split())
"""Words of thanks, praise and goodbye."""
_SAID_WITH_THANKS = """
    many you so very much a lot bunch for your the that that's this it it's is was all really i you're to know got see
    later have day evening weekend help answer info information explanation clear now too no then and again right of
    vielen besten herzlichen lieben schön sehr alles klar für die deine ihre hilfe antwort auskunft dir ihnen euch das
    hat geholfen und auf wiedersehen beaucoup bien d'accord au revoir pour votre ton aide réponse bonne journée
    muchas mil por su tu la ayuda respuesta muy amable muito pela ajuda resposta mille per aiuto risposta molto gentile
    hartelijk heel erg je wel voor de hulp het antwoord
"""
_WITH_THANKS = frozenset(_SAID_WITH_THANKS.split())
"""What may be said with them."""


def said_in(value: object) -> list[Turn]:
    """What the user and the bot said in a list of chat messages; none in anything else."""
    if not isinstance(value, list) or not all(isinstance(message, dict) for message in value):
        return []
    return [turn for message in map(_unwrapped, value) if (turn := _turn(message)) is not None]


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message itself, of those that LangChain writes as an object within an object."""
    if isinstance(message.get("data"), dict):
        return {**message["data"], "type": message.get("type")}
    kinds = message.get("id")
    if isinstance(message.get("kwargs"), dict) and isinstance(kinds, list) and kinds:
        return {**message["kwargs"], "type": _kind_of(str(kinds[-1]))}
    return message


def _kind_of(name: str) -> str:
    """'human' for HumanMessage and HumanMessageChunk."""
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def _turn(message: Mapping[str, Any]) -> Turn | None:
    speaker = next((message[name] for name in _SPEAKERS if isinstance(message.get(name), str)), "")
    text = plain_text(message)
    role = role_of(speaker)
    is_call = not (text or "").strip() and any(message.get(name) for name in _TOOL_CALLS)
    return Turn(role, text) if role and text is not None and not is_call else None


def plain_text(value: object) -> str | None:
    """The text that a structure holds: its own, that of its one item, or of its parts in a row; None without any.

    Parts that are not said, such as thoughts and pictures, are left out.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        return next((text for name in _TEXTS if (text := plain_text(value.get(name))) is not None), None)
    if isinstance(value, list):
        texts = [
            plain_text(item)
            for item in value
            if not (isinstance(item, dict) and item.get("type") in _NOT_SAID)
        ]
        return "\n".join(text for text in texts if text) if texts and None not in texts else None
    return None


def _not_blank(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in turns if turn.content.strip())


# Earlier turns in a cell of their own


def turns_in(value: object) -> tuple[Turn, ...] | None:
    """The turns of a chat in any of its forms, blank ones left out; None for anything else."""
    if value in ([], {}, None):
        return ()
    if isinstance(value, str):
        if value.strip(" ()").casefold() in _NOTHING:
            return ()
        return _not_blank(turns_of_text(value)) or None
    if isinstance(value, dict):  # as frameworks store a conversation: {"messages": [...]}
        lists = [each for each in value.values() if isinstance(each, list)]
        return turns_in(lists[0]) if len(lists) == 1 else None
    if not isinstance(value, list):
        return None
    if all(isinstance(item, dict) for item in value):
        turns = said_in(value) or [turn for item in value for turn in _pair(item)]
    elif all(isinstance(item, str) for item in value):
        turns = [turn for text in value for turn in turns_of_text(text)]
        if len(turns) < len(value):
            turns = _alternating(value) if len(value) % 2 == 0 else []
    else:
        pairs = [item for item in value if isinstance(item, list) and len(item) == 2]
        turns = [turn for pair in pairs for turn in _alternating(pair)] if len(pairs) == len(value) else []
    return _not_blank(turns) or None


_NOTHING = frozenset(("none", "null", "nan", "n/a", "na", "-", "–", "—"))
"""Words of exports for a cell without turns."""


def _pair(item: Mapping[str, Any]) -> Iterator[Turn]:
    """A question and its answer from an object with both."""
    found = [
        next((text for name in names if (text := _text_of_side(item.get(name))) is not None), None)
        for names in (_ASKED, _ANSWERED)
    ]
    if None not in found:
        yield from _alternating(found)


def _text_of_side(value: object) -> str | None:
    """A text, or the only one in an object such as `inputs`."""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return plain_text(value)


def _alternating(texts: Sequence[Any]) -> list[Turn]:
    """Of the user and the bot by turns; [] if one is not a text. None is nothing said."""
    sides = (USER, ASSISTANT) * (len(texts) // 2)
    if any(text is not None and not isinstance(text, str) for text in texts):
        return []
    return [Turn(role, text or "") for role, text in zip(sides, texts, strict=True)]


def printed_messages(text: str) -> list[dict[str, Any]] | None:
    """The messages in a list that Python printed, such as `[HumanMessage(content='Hi')]`; None for anything else."""
    if not _PRINTED.match(text):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    calls = tree.elts if isinstance(tree, ast.List) else []
    found = []
    for call in calls:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            return None
        content = next((word.value for word in call.keywords if word.arg == "content"), None)
        if not isinstance(content, ast.Constant):
            return None
        found.append({"type": _kind_of(call.func.id), "content": content.value})
    return found


_PRINTED = re.compile(r"\s*\[\s*\w+Message(?:Chunk)?\(")
