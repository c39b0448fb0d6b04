"""From the text that a judge wrote to a validated reply, or a reason why it is none."""

from typing import Any

from pydantic import BaseModel, ValidationError

from rag_eval.judge.calls import Call
from rag_eval.texts.strict_json import parse_json

NEW = "is_new"
"""Is true in the validation context of a reply that has just come, and not in that of a stored one."""
A_REASON = "A reason of one sentence, as judges give them when they are asked to explain a verdict."
"""Stands in replies that are made up for an estimate."""


def read_reply(text: str, call: Call[Any]) -> BaseModel:
    """A new reply as its type, from text that is exactly one JSON object.

    No repeated or unknown keys, no NaN or infinity, no booleans or texts for numbers, whatever the type itself
    would let through. Raises ValueError (pydantic's ValidationError is one) for anything else.
    """
    try:
        parse_json(text)  # pydantic's own parser lets more pass
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return _validated(text, call, is_new=True)


def read_stored(text: str, call: Call[Any]) -> BaseModel:
    """A reply that `read_reply` took once. Raises ValueError for one that it would not take any more."""
    return _validated(text, call, is_new=False)


def strip_fence(text: str) -> str:
    """The text without the one Markdown code fence that some models put around JSON."""
    lines = text.strip().split("\n")
    if len(lines) >= 3 and lines[0].strip() in ("```", "```json") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text.strip()


def first_problem(error: ValueError) -> str:
    """What is wrong with a reply, in one phrase that does not quote the reply."""
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, problem['loc'])) or 'reply'}: {problem['msg']}"[:200]
    return str(error)[:200]


def _validated(text: str, call: Call[Any], *, is_new: bool) -> BaseModel:
    reply: BaseModel = call.reply_type.model_validate_json(
        text, strict=True, extra="forbid", context={**call.agrees_with, NEW: is_new}
    )
    return reply
