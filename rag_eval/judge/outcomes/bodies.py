"""Answers with HTTP 200: a completion, or something in its place."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag_eval.judge.outcomes.classes import (
    Action,
    Completion,
    Fault,
    Tokens,
    mapping,
    one_line,
)
from rag_eval.judge.outcomes.error_body import ErrorBody


def read_body(body: str) -> Completion | Fault:
    """A completion from the body of an HTTP 200, or the fault behind it. The finish reason is looked at first."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _not_json(body)
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        quoted = ErrorBody.of(document).quoted()
        return Fault(
            Action.RETRY,
            "no_choices",
            f"HTTP 200 without a completion{quoted}: check that the endpoint serves chat completions",
            possibly_billed=True,
        )
    usage = mapping(document.get("usage"))
    tokens = Tokens(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
    read = _read_choice(choices[0], tokens)
    model = document.get("model")
    return replace(read, model=model) if isinstance(read, Completion) and isinstance(model, str) else read


def _not_json(body: str) -> Fault:
    kind = (
        "a web page"
        if body.lstrip()[:1] == "<"
        else "text that is not JSON"
        if body.strip()
        else "an empty body"
    )
    return Fault(
        Action.RETRY,
        "not_json",
        f"the endpoint answered HTTP 200 with {kind} instead of a completion; "
        "check its address, and whether a proxy or a sign-in page answers in its place",
        possibly_billed=True,
    )


def _read_choice(choice: Mapping[str, Any], tokens: Tokens) -> Completion | Fault:
    message = mapping(choice.get("message"))
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        advice = "the provider's content filter cut the judge's reply"
        return Fault(Action.REJECT, "output_filtered", advice, tokens=tokens)
    if finish == "length":
        return Fault.truncated("the judge's reply was cut at its token limit", tokens)
    if message.get("refusal"):
        words = one_line(str(message["refusal"]))[:200]
        return Fault(Action.REJECT, "refused", f"the judge refused: {words}", tokens=tokens)
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        return Fault.unparseable("it is empty", tokens)
    filtering = mapping(mapping(choice.get("content_filter_results")).get("error"))
    return Completion(content, tokens, is_unfiltered=filtering.get("code") == "content_filter_error")


def _count(value: Any) -> int:
    """A count of tokens, at most more than any model can have read or written: its sums must fit the store."""
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value >= 0 else 0


_MOST_TOKENS = 10**9
