"""From the text that a judge wrote to a validated reply, or a reason why it is none."""

import json
from collections import Counter
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_eval.judge.calls import Call


def read_reply(text: str, call: Call[Any]) -> BaseModel:
    """The reply as its type, from text that is exactly one JSON object without repeated keys.

    Raises ValueError (pydantic's ValidationError is one) for anything else.
    """
    document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    reply: BaseModel = call.reply_type.model_validate(document, context=dict(call.agrees_with))
    return reply


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
        return f"{'.'.join(map(str, problem['loc'])) or 'reply'}: {problem['msg']}"
    return str(error)[:200]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} stands in it twice")
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
