"""Answers with HTTP 200: a completion, or something in its place."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag_eval.judge.outcomes.classes import (
    LOOP,
    Action,
    Completion,
    Fault,
    Tokens,
    mapping,
    one_line,
)
from rag_eval.judge.outcomes.statuses import ErrorBody, read_status


def read_body(body: str) -> Completion | Fault:
    """A completion from the body of an HTTP 200, or the fault behind it. The finish reason is looked at first."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _not_json(body)
    answer = mapping(document)
    choices = answer.get("choices")
    first = next(iter(choices), None) if isinstance(choices, list) else None
    if not isinstance(first, dict):
        error = ErrorBody.of(document)
        if not choices and error.exceeds_context:
            return read_status(400, {}, body)  # some servers say 200 to everything
        return Fault(
            Action.RETRY,
            "no_choices",
            f"HTTP 200 without a completion{error.quoted()}: check that the endpoint serves chat completions",
            possibly_billed=True,
        )
    usage = mapping(answer.get("usage"))
    prompt, reply = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    is_counted = prompt > 0 and (reply > 0 or not _has_text(first))
    cached = _count(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    tokens = Tokens(prompt, reply, min(cached, prompt), are_counted=is_counted)
    read = _read_choice(first, tokens)
    model = answer.get("model")
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


def _has_text(choice: Mapping[str, Any]) -> bool:
    """Whether the model wrote anything: a reply, thoughts, a refusal or the arguments of a tool."""
    message = mapping(choice.get("message"))
    return any(message.get(name) for name in ("content", "reasoning_content", "refusal", "tool_calls"))


def _read_choice(choice: Mapping[str, Any], tokens: Tokens) -> Completion | Fault:
    message = mapping(choice.get("message"))
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        advice = "the provider's content filter cut the judge's reply"
        return Fault(Action.REJECT, "output_filtered", advice, tokens=tokens)
    if finish == "length":
        return _cut(message, tokens)
    if message.get("refusal"):
        words = one_line(str(message["refusal"]))[:200]
        return Fault(Action.REJECT, "refused", f"the judge refused: {words}", tokens=tokens)
    content = message.get("content")
    filtering = mapping(mapping(choice.get("content_filter_results")).get("error"))
    text = content if isinstance(content, str) else ""
    return Completion(text, tokens, is_unfiltered=filtering.get("code") == "content_filter_error")


def _cut(message: Mapping[str, Any], tokens: Tokens) -> Fault:
    """A reply that reached the token limit: because it needs more, or because it would never end."""
    content, thoughts = (str(message.get(name) or "") for name in ("content", "reasoning_content"))
    thinks = not content.strip() or (content.lstrip().startswith("<think>") and "</think>" not in content)
    end = (thoughts if thinks and thoughts else content)[-_LOOKED_AT:]
    # The same, said three times or more. Not so a list whose items differ.
    periods = range(_SHORTEST_LOOP // 3, len(end) // 3 + 1)
    if any(end.endswith(3 * end[-period:]) for period in periods):
        advice = "the judge's reply repeats itself until its token limit"
        return Fault(Action.REJECT, LOOP, advice, tokens=tokens)
    return Fault.truncated("the judge's reply was cut at its token limit", tokens, cut=content, thinks=thinks)


_LOOKED_AT = 12_000
"""Characters."""
_SHORTEST_LOOP = 60
"""Characters in which the same is said three times; fewer may be dots of a table or a long number."""


def _count(value: Any) -> int:
    """A count of tokens, at most more than any model can have read or written: its sums must fit the store."""
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value >= 0 else 0


_MOST_TOKENS = 10**9
