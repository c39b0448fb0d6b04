"""Reads an answer: a completion, what comes in its place with HTTP 200, or an HTTP status other than 2xx."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_eval.judge.outcomes import (
    LOADING,
    LONGEST_WAIT,
    LOOP,
    Action,
    Completion,
    Fault,
    Parameter,
    Tokens,
    mapping,
    one_line,
)
from rag_eval.judge.quota import asked_wait


def read_status(status: int, headers: Mapping[str, str], body: str, path: str = "") -> Fault:
    """The fault behind an HTTP status other than 2xx. `path` is where the request went, for the message."""
    refusal = _Refusal(status, headers, path, ErrorBody.parse(body))
    if 300 <= status < 400:
        return refusal.fault(
            Action.STOP,
            "redirect_refused",
            "the endpoint redirects to another address, and nothing is sent there; "
            "set the endpoint to its final address",
        )
    if refusal.error.kinds & _SPENT:
        status = 402
    if status in _FINAL:
        return refusal.fault(Action.STOP, *_FINAL[status])
    if refusal.error.exceeds_context:
        return _too_long(refusal)
    read = _BY_STATUS.get(status, _server_error if status >= 500 else _bad_request)
    return read(refusal)


def _not_found(refusal: "_Refusal") -> Fault:
    if refusal.error.kinds & {"deploymentnotfound", "model_not_found", "modeldeprecated"}:
        return refusal.fault(Action.STOP, "deployment_not_found", "check the deployment or model name")
    return refusal.fault(
        Action.STOP, "not_found", "check the endpoint's address and, for Azure, the api_version"
    )


def _bad_request(refusal: "_Refusal") -> Fault:
    error = refusal.error
    if error.is_filtered:
        categories = f" ({', '.join(error.filtered)})" if error.filtered else ""
        return refusal.fault(
            Action.REJECT,
            "blocked_by_filter",
            f"the provider's content filter blocked the prompt{categories}",
        )
    if "output limit was reached" in error.message:
        return Fault.truncated(refusal.heading())
    parameter = error.refused_parameter()
    if parameter is None:
        return refusal.fault(Action.REJECT, "bad_request", "the endpoint does not accept this request")
    return refusal.unsupported(parameter)


def _too_long(refusal: "_Refusal") -> Fault:
    error = refusal.error
    if error.context is None or error.prompt is None:
        advice = "the prompt is too long for the model; nothing is cut to make it fit"
        return refusal.fault(Action.REJECT, "too_long", advice)
    # vLLM stops counting a prompt with the first token that is too many.
    is_partly_counted = error.reply is not None and error.prompt + error.reply == error.context + 1
    room = (error.reply or 0) // 2 if is_partly_counted else error.context - error.prompt
    least = "at least " if is_partly_counted else ""
    lengths = f"{least}{error.prompt:,} tokens of prompt, and the model's context has {error.context:,}"
    advice = f"{lengths}; give it a larger one, or set [limits] max_prompt_tokens and long_prompts = truncate"
    is_reply_too_long = error.reply is not None and room >= _LEAST_ROOM
    left = (error.reply or 0, room) if is_reply_too_long else None
    return refusal.fault(Action.REJECT, "too_long", advice, left=left)


_LEAST_ROOM = 64
"""Tokens. In fewer there is no reply."""


def _too_many(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    if "Request too large" in refusal.error.message:
        return _exceeds_rate_limit(refusal, "this single request is larger")
    if wait is not None and wait > LONGEST_WAIT:
        return _exceeds_rate_limit(refusal, f"it asks to wait {wait:g} s; this single request may be larger")
    return refusal.fault(
        Action.RETRY,
        "rate_limited",
        "the deployment's rate limit is reached; lower max_workers or raise its quota",
        wait=wait,
    )


def _exceeds_rate_limit(refusal: "_Refusal", reason: str) -> Fault:
    return refusal.fault(
        Action.REJECT,
        "exceeds_rate_limit",
        f"{reason} than the deployment's tokens per minute: raise its quota",
    )


def _server_error(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    if refusal.status == 503 and "loading" in refusal.error.message.lower():
        advice = "the server is still loading its model; run the same command again later to continue"
        return refusal.fault(Action.RETRY, LOADING, advice, wait=wait or _LOADING_SECONDS)
    if _GRAMMAR.search(refusal.error.message[:1000]):
        return refusal.unsupported(Parameter.RESPONSE_FORMAT)
    return refusal.fault(
        Action.RETRY,
        "server_error",
        "the endpoint failed; run the same command again later to continue",
        wait=wait if wait is not None and wait <= LONGEST_WAIT else None,
    )


_GRAMMAR = re.compile(r"\b(parse|compile|build|convert)\b.*\b(grammar|json[_ ]schema)\b", re.IGNORECASE)
"""How servers that constrain replies by a grammar say that they can make none of a schema."""
_LOADING_SECONDS = 5.0
"""Between two looks whether the model is there."""
_SPENT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
_FINAL = {
    401: ("unauthorized", "the endpoint rejected the API key; check that it belongs to this endpoint"),
    402: (
        "insufficient_quota",
        "the account's quota is used up; raise it and run the same command again to continue",
    ),
    403: (
        "forbidden",
        "the endpoint refuses this network or account; it may require a VPN, a private endpoint or a firewall rule",
    ),
    407: ("proxy_refused", "the proxy requires a user name and password; put them in HTTPS_PROXY"),
}
"""Code and advice by status, where no other call can succeed either."""
_BY_STATUS: Mapping[int, Callable[["_Refusal"], Fault]] = {
    404: _not_found,
    405: _not_found,
    408: _server_error,
    409: _server_error,
    410: _not_found,
    413: _too_long,
    425: _server_error,
    429: _too_many,
}
_ADVICE_ON_PARAMETER = {
    Parameter.MAX_TOKENS: "the model expects its token limit in another parameter",
    Parameter.TEMPERATURE: "the model does not accept a temperature",
    Parameter.RESPONSE_FORMAT: "the endpoint does not accept this form of structured output; Azure OpenAI "
    "accepts JSON schemas from api_version 2024-08-01-preview on, or set structured_output = auto",
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An HTTP status other than 2xx, and what can be made out of its body."""

    status: int
    headers: Mapping[str, str]
    path: str
    error: "ErrorBody"

    def fault(self, action: Action, code: str, advice: str, **more: Any) -> Fault:
        return Fault(action, code, f"{self.heading()}: {advice}", **more)

    def unsupported(self, parameter: Parameter) -> Fault:
        advice = _ADVICE_ON_PARAMETER[parameter]
        return self.fault(Action.ADAPT, f"unsupported_{parameter}", advice, parameter=parameter)

    def heading(self) -> str:
        """Status, path where it helps, the endpoint's own words and its name for the request, on one line."""
        place = f" at {self.path}" if self.path and self.status in _STATUSES_OF_A_PLACE else ""
        identifier = self.headers.get("apim-request-id") or self.headers.get("x-request-id")
        request = f" [request {one_line(identifier)[:60]}]" if identifier else ""
        return f"HTTP {self.status}{place}{self.error.quoted()}{request}"

    def wait(self) -> float | None:
        return asked_wait(self.headers, self.error.message)


_STATUSES_OF_A_PLACE = frozenset({301, 302, 303, 307, 308, 400, 404, 405, 410})


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What can be made out of an error body; servers wrap it in `error`, or do not, or send no JSON at all."""

    code: str = ""
    message: str = ""
    parameter: str = ""
    type: str = ""
    filtered: tuple[str, ...] = ()
    """The content filter's categories that were hit."""
    is_filtered: bool = False
    context: int | None = None
    """Tokens that the model can read and write together, where a prompt did not fit."""
    prompt: int | None = None
    """Tokens of that prompt."""
    reply: int | None = None
    """Tokens that were wanted for the reply, if that is told apart."""

    @classmethod
    def parse(cls, body: str) -> "ErrorBody":
        try:
            return cls.of(json.loads(body))
        except (ValueError, RecursionError):
            return cls(message=re.sub(r"<[^>]*>", " ", body[:5000]))

    @classmethod
    def of(cls, document: Any) -> "ErrorBody":
        error = mapping(document).get("error") or document
        if not isinstance(error, dict):
            return cls(message=str(error) if error else "")
        inner = mapping(_first(error, "innererror", "inner_error"))
        results = mapping(_first(inner, "content_filter_result", "content_filter_results"))
        context, prompt, reply = _lengths(error)
        return cls(
            code=str(_first(error, "code")),
            message=_said(_first(error, "message", "detail")),
            parameter=str(_first(error, "param")),
            type=str(_first(error, "type")),
            filtered=tuple(str(name) for name, hit in results.items() if mapping(hit).get("filtered")),
            is_filtered="content_filter" in (error.get("code"), error.get("type"))
            or inner.get("code") == "ResponsibleAIPolicyViolation",
            context=context,
            prompt=prompt,
            reply=reply,
        )

    @property
    def kinds(self) -> set[str]:
        """Code and type: servers put the same words into one or the other."""
        return {self.code.lower(), self.type.lower()}

    @property
    def exceeds_context(self) -> bool:
        """Whether the prompt, or prompt and reply together, are too long for the model."""
        return self.context is not None or bool(
            self.kinds & {"context_length_exceeded", "exceed_context_size_error"}
        )

    def quoted(self) -> str:
        """The code and message for an error line; empty when there is neither."""
        words = " ".join(part for part in (self.code, self.message) if part.strip())
        return f" ({one_line(words)[:300]})" if words else ""

    def refused_parameter(self) -> Parameter | None:
        """Which part of the request is not taken at all; a value that is merely too large is another matter."""
        text = f"{self.parameter} {self.message}".lower()
        is_unknown = "unsupported" in self.code or _UNKNOWN.search(text) is not None
        if re.search(r"use ['\"`]?max_completion_tokens", text):
            return Parameter.MAX_TOKENS
        if re.search(r"\bmax_tokens\b", text) and is_unknown and not _TOO_HIGH.search(text):
            return Parameter.MAX_TOKENS
        # In whatever words: a value that is not too high is one that the server does not take.
        if (
            (self.parameter or "temperature") == "temperature"
            and "temperature" in text
            and not _TOO_HIGH.search(text)
        ):
            return Parameter.TEMPERATURE
        if _OUTPUT_FORM.search(text):
            return Parameter.RESPONSE_FORMAT
        return None


_UNKNOWN = re.compile(
    r"(\bnot|n't) (\w+ )?(support|permit|allow|accept)|unsupported|unrecogni[sz]ed|unknown|unexpected|forbidden"
    r"|deprecated"
)
_TOO_HIGH = re.compile(r"above|maximum|less than|at most|too (large|high|big)|between 0(\.0+)? and|exceed|<=")
_OUTPUT_FORM = re.compile(
    r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]outputs?|guided[_ ](json|decoding)"
)
"""Words for a form of the reply that not every server can be asked for."""


def _said(message: Any) -> str:
    """A message as text. FastAPI's are lists that quote what was sent, which is left out."""
    if not isinstance(message, list):
        return str(message)
    parts = []
    for each in map(mapping, message):
        place = each.get("loc")
        names = map(str, place) if isinstance(place, list) else ()
        parts.append(f"{'.'.join(names)} {each.get('msg', '')}")
    return "; ".join(filter(str.strip, parts)) or str(message)


def _first(error: Mapping[str, Any], *names: str) -> Any:
    """The first of these members that says anything; '' for none."""
    return next(filter(None, map(error.get, names)), "")


def _lengths(error: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Tokens of the model's context, of the prompt and of the reply, as far as they are told.

    llama.cpp has fields for the first two, other servers have sentences.
    """
    if isinstance(context := error.get("n_ctx"), int):
        prompt = error.get("n_prompt_tokens")
        return context, prompt if isinstance(prompt, int) else None, None
    text = str(_first(error, "message", "detail"))[:1000]
    if not (found := _CONTEXT.search(text)):
        return None, None, None
    prompt, reply = (form.search(text) for form in (_PROMPT, _REPLY))
    return int(found[1]), int(prompt[1]) if prompt else None, int(reply[1]) if reply else None


_CONTEXT = re.compile(
    r"(?:maximum context length is|context length is only|maximum model length of|available context size \(|"
    r"context window of) ?(\d{1,9})",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:messages resulted in|request has|requested tokens \(|request \(|you passed|prompt contains at least|"
    r"prompt \(length|prompt length of|tokens \((?=\d+ in the messages)) ?(\d{1,9})",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"(?:in the messages,|requested|max_completion_tokens'? is too large:) (\d{1,9})(?= in the completion| output|\.)",
    re.IGNORECASE,
)


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
    read = _read_choice(first, _tokens(mapping(answer.get("usage")), has_text=_has_text(first)))
    model = answer.get("model")
    return replace(read, model=model) if isinstance(read, Completion) and isinstance(model, str) else read


def _tokens(usage: Mapping[str, Any], *, has_text: bool) -> Tokens:
    """Some providers count what a model thinks in the total only; it is billed like the rest of the reply."""
    prompt, reply, total = (_count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    cached = _count(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    thoughts = total - prompt - reply
    # Those that were cached are told apart by some servers, though they are part of the prompt.
    if prompt and 0 < thoughts <= _MOST_THOUGHTS and thoughts != cached:
        reply += thoughts
    is_counted = prompt > 0 and (reply > 0 or not has_text)
    return Tokens(prompt, reply, min(cached, prompt), are_counted=is_counted)


_MOST_THOUGHTS = 300_000
"""Tokens, more than models write in one reply. A larger total counts something else, such as all requests so far."""


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
    text = _text_of(message.get("content"))
    filtering = mapping(mapping(choice.get("content_filter_results")).get("error"))
    return Completion(text, tokens, is_unfiltered=filtering.get("code") == "content_filter_error")


def _text_of(content: Any) -> str:
    """Of a message, which may come in parts: thoughts and other kinds are no part of the text."""
    if isinstance(content, list):
        parts = map(mapping, content)
        return "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") == "text")
    return content if isinstance(content, str) else ""


def _cut(message: Mapping[str, Any], tokens: Tokens) -> Fault:
    """A reply that reached the token limit: because it needs more, or because it would never end."""
    content, thoughts = (_text_of(message.get(name)) for name in ("content", "reasoning_content"))
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
