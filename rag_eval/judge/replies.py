"""From the text that a judge wrote to a validated reply, or a reason why it is none."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from rag_eval.errors import ECHO, INCOMPLETE, REFUSALS, UNPARSEABLE, RefusedReplyError
from rag_eval.judge.calls import Call
from rag_eval.texts.strict_json import parse_json

A_REASON = "A reason of one sentence, as judges give them when they are asked to explain a verdict."
"""Stands in replies that are made up for an estimate."""


def read_reply(text: str, call: Call[Any]) -> BaseModel:
    """A reply as its type, from text that is exactly one JSON object.

    No repeated or unknown keys, no NaN or infinity, no booleans or texts for numbers, whatever the type itself
    would let through. Raises RefusedReplyError for anything else, and for a reply about an example of the prompt.
    """
    if not text:
        raise RefusedReplyError(UNPARSEABLE, "it is empty", text)
    try:
        document = parse_json(text)  # pydantic's own parser lets more pass
        if any(each.examples and each.examples.are_repeated(document, each.case) for each in call.messages):
            raise RefusedReplyError(ECHO, "it is about an example, not about the given texts", text)
        checked = json.dumps(_with_integers(document)) if _WHOLE.search(text) else text
        reply: BaseModel = call.reply_type.model_validate_json(
            checked, strict=True, extra="forbid", context=call.agrees_with
        )
    except RecursionError:
        raise RefusedReplyError(UNPARSEABLE, "it is nested too deeply", text) from None
    except json.JSONDecodeError as error:
        is_before = "{" in text and text[0] != "{"
        raise RefusedReplyError(UNPARSEABLE, _BEFORE if is_before else str(error), text) from None
    except ValueError as error:
        raise RefusedReplyError(*_named(error), text) from None
    return reply


_BEFORE = "there is text before the JSON object"
_WHOLE = re.compile(r"\d\.0+(?!\d)")


def _with_integers(value: Any) -> Any:
    """A JSON value in which 1.0 is an integer, as JSON Schema has it. Pydantic takes it for none."""
    if isinstance(value, dict):
        return {name: _with_integers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def incomplete(problem: str) -> PydanticCustomError:
    """What a reply type raises for a reply of the right form that leaves something out."""
    return PydanticCustomError(INCOMPLETE, "{problem}", {"problem": problem})


def json_of(text: str, prompts: Sequence[str] = ()) -> str:
    """A reply without a model's thoughts and the one Markdown code fence around its JSON. It is not searched for.

    A chat template may begin the thoughts, so that only their end is in the reply; not if one of the `prompts` has such
    an end, which a judge could quote together with a planted verdict.
    """
    text = _THOUGHTS.sub("", text).strip()
    if _THOUGHTS_END in text and not any(_THOUGHTS_END in each.casefold() for each in prompts):
        text = _BEGUN_THOUGHTS.sub("", text).strip()
    fenced = _FENCE.fullmatch(text)
    return fenced[1].strip() if fenced else text


_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_THOUGHTS_END = "</think"
_BEGUN_THOUGHTS = re.compile(r"\A(?![{`<]).*?</think(?:ing)?>", re.DOTALL)
_FENCE = re.compile(r"```\w*((?:(?!```).)*)```", re.DOTALL)


def _named(error: ValueError) -> tuple[str, str]:
    """Code of a refusal, and what is wrong in one phrase that does not quote the reply."""
    if not isinstance(error, ValidationError):
        return UNPARSEABLE, str(error)[:200]
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] in REFUSALS:
        return problem["type"], problem["msg"][:200]
    return UNPARSEABLE, f"{_place(problem)}: {problem['msg']}"[:200]


def _place(problem: ErrorDetails) -> str:
    """Where in the reply, without the name of a field that the judge made up."""
    known = problem["loc"][:-1] if problem["type"] == "extra_forbidden" else problem["loc"]
    return ".".join(map(str, known)) or "reply"
