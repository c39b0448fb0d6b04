"""From the text that a judge wrote to a validated reply, or a reason why it is none."""

import json
import math
from collections import Counter
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_eval.judge.calls import Call

NEW = "is_new"
"""Is true in the validation context of a reply that has just come, and not in that of a stored one."""


def read_reply(text: str, call: Call[Any]) -> BaseModel:
    """A new reply as its type, from text that is exactly one JSON object.

    No repeated or unknown keys, no NaN or infinity, no booleans or texts for numbers, whatever the type itself
    would let through. Raises ValueError (pydantic's ValidationError is one) for anything else.
    """
    _check_json(text)
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


def _check_json(text: str) -> None:
    """Refuse what pydantic's own parser lets pass."""
    try:
        json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} occurs twice")


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError("a number in it is too large")
    return float(number)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
