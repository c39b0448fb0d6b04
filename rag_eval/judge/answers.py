"""Reads an answer: a completion, what comes in its place with HTTP 200, or an HTTP status other than 2xx."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from rag_eval.errors import EXCEEDS_RATE_LIMIT
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
    refusal = _Refusal(status, headers, path, _ErrorBody.parse(body))
    if 300 <= status < 400:
        return refusal.fault(
            Action.STOP,
            "redirect_refused",
            "the endpoint redirects to another address, and nothing is sent there; "
            "set the endpoint to its final address",
        )
    if refusal.error.kinds & _SPENT:
        status = 402
    elif status == 400 and refusal.error.refuses_key:
        status = 401
    if status in _FINAL:
        return refusal.fault(Action.STOP, *_FINAL[status])
    if refusal.error.exceeds_context:
        return _too_long(refusal)
    if status in (400, 403, 404, 410, 422) and refusal.error.lacks_model:
        return refusal.fault(Action.STOP, "deployment_not_found", "check the deployment or model name")
    read = _BY_STATUS.get(status, _server_error if status >= 500 else _bad_request)
    return read(refusal)


def _not_found(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.STOP, "not_found", "check the endpoint's address and, for Azure, the api_version"
    )


def _blocked(refusal: "_Refusal") -> Fault:
    filtered = refusal.error.filtered
    categories = f" ({', '.join(filtered)})" if filtered else ""
    advice = f"the provider's content filter blocked the prompt{categories}"
    return refusal.fault(Action.REJECT, "blocked_by_filter", advice)


def _forbidden(refusal: "_Refusal") -> Fault:
    """Whoever forbids it: the model's content filter, a page in front of the endpoint, a quota, or the endpoint."""
    if refusal.error.is_filtered:
        return _blocked(refusal)
    if refusal.error.is_page:
        return refusal.fault(
            Action.RETRY,
            "not_json",
            "a web page answers in place of the model, such as a firewall or a check that keeps programs out; "
            "ask who operates it to let these calls through",
        )
    if found := _QUOTA.search(refusal.error.message[:_WORDS]):
        return _too_many(refusal) if found["rate"] else _quota_used_up(refusal)
    return refusal.fault(
        Action.STOP,
        "forbidden",
        "the endpoint refuses this network or account; it may require a VPN, a private endpoint or a firewall rule",
    )


def _quota_used_up(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    if wait is not None and wait <= LONGEST_WAIT:
        return refusal.fault(Action.RETRY, "rate_limited", "a quota is used up; raise it", wait=wait)
    advice = "this quota is used up; when it is renewed or raised, run the same command again to continue"
    return refusal.fault(Action.STOP, "insufficient_quota", advice)


_QUOTA = re.compile(r"(?P<rate>\brate limit)|\bquota\b|\blimit exceeded\b", re.IGNORECASE)
_WORDS = 300
"""Characters of an error message in which servers say what is wrong; what follows may quote the prompt."""


def _bad_request(refusal: "_Refusal") -> Fault:
    error = refusal.error
    if error.is_filtered:
        return _blocked(refusal)
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
    reply = error.reply or 0
    is_partly_counted = reply > 0 and error.prompt + reply == error.context + 1
    room = reply // 2 if is_partly_counted else error.context - error.prompt
    least = "at least " if is_partly_counted else ""
    lengths = f"{least}{error.prompt:,} tokens of prompt, and the model's context has {error.context:,}"
    advice = f"{lengths}; give it a larger one, or set [limits] max_prompt_tokens and long_prompts = truncate"
    left = (reply, room) if reply and room >= _LEAST_ROOM else None
    return refusal.fault(Action.REJECT, "too_long", advice, left=left)


_LEAST_ROOM = 64
"""Tokens. In fewer there is no reply."""


def _too_many(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    if "Request too large" in refusal.error.message:
        return _exceeds_rate_limit(refusal, f"this single request is larger {_THAN_A_MINUTE}")
    if wait is not None and wait > LONGEST_WAIT:
        if _DAILY.search(refusal.error.message[:_WORDS]):
            advice = f"a limit per day is reached; run the same command again in {ceil(wait / 60)} minutes"
            return _exceeds_rate_limit(refusal, f"{advice}, or raise the limit")
        advice = f"it asks to wait {wait:g} s; this single request may be larger {_THAN_A_MINUTE}"
        return _exceeds_rate_limit(refusal, advice)
    return refusal.fault(
        Action.RETRY,
        "rate_limited",
        "the deployment's rate limit is reached; lower max_workers or raise its quota",
        wait=wait,
    )


def _too_large(refusal: "_Refusal") -> Fault:
    """For the model, or for what it may read in a minute."""
    if "rate_limit_exceeded" in refusal.error.kinds or _PER_MINUTE.search(refusal.error.message[:_WORDS]):
        return _exceeds_rate_limit(refusal, f"this single request is larger {_THAN_A_MINUTE}")
    return _too_long(refusal)


def _exceeds_rate_limit(refusal: "_Refusal", advice: str) -> Fault:
    return refusal.fault(Action.REJECT, EXCEEDS_RATE_LIMIT, advice)


_THAN_A_MINUTE = "than the deployment's tokens per minute: raise its quota"
_PER_MINUTE = re.compile(r"\btokens per min", re.IGNORECASE)
_DAILY = re.compile(r"\bper day\b|\bdaily\b", re.IGNORECASE)


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
_SPENT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "budget_exceeded"}
_FINAL = {
    401: ("unauthorized", "the endpoint rejected the API key; check that it belongs to this endpoint"),
    402: (
        "insufficient_quota",
        "the account's quota is used up; raise it and run the same command again to continue",
    ),
    407: ("proxy_refused", "the proxy requires a user name and password; put them in HTTPS_PROXY"),
}
"""Code and advice by status, where no other call can succeed either."""
_BY_STATUS: Mapping[int, Callable[["_Refusal"], Fault]] = {
    403: _forbidden,
    404: _not_found,
    405: _not_found,
    408: _server_error,
    409: _server_error,
    410: _not_found,
    413: _too_large,
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
    error: "_ErrorBody"

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
class _ErrorBody:
    """What can be made out of an error body; servers wrap it in `error`, or do not, or send no JSON at all."""

    code: str = ""
    message: str = ""
    parameter: str = ""
    type: str = ""
    filtered: tuple[str, ...] = ()
    """The content filter's categories that were hit."""
    is_filtered: bool = False
    is_page: bool = False
    """It is a web page."""
    context: int | None = None
    """Tokens that the model can read and write together, where a prompt did not fit."""
    prompt: int | None = None
    """Tokens of that prompt."""
    reply: int | None = None
    """Tokens that were wanted for the reply, if that is told apart."""

    @classmethod
    def parse(cls, body: str) -> "_ErrorBody":
        try:
            return cls.of(json.loads(body))
        except (ValueError, RecursionError):
            shown = _UNSEEN.sub(" ", body[:100_000])
            return cls(message=_TAG.sub(" ", shown[:5000]), is_page=body.lstrip()[:1] == "<")

    @classmethod
    def of(cls, document: Any) -> "_ErrorBody":
        if isinstance(document, list) and document and isinstance(document[0], dict):
            document = document[0]  # Gemini's come in a list
        error = mapping(document).get("error") or document
        if not isinstance(error, dict):
            return cls(message=str(error) if error else "")
        inner = mapping(_first(error, "innererror", "inner_error"))
        results = mapping(_first(inner, "content_filter_result", "content_filter_results"))
        filtered = [name for name, hit in results.items() if mapping(hit).get("filtered")]
        metadata = mapping(error.get("metadata"))  # OpenRouter's, of a moderation
        reasons = metadata.get("reasons")
        code, message, type_ = (
            str(_first(error, "code")),
            _said(_first(error, "message", "detail")),
            str(_first(error, "type")),
        )
        context, prompt, reply = _lengths(error)
        return cls(
            code=code,
            message=message,
            parameter=str(_first(error, "param")),
            type=type_,
            filtered=tuple(
                one_line(str(each))[:60]
                for each in (*filtered, *(reasons if isinstance(reasons, list) else ()))
            ),
            is_filtered=not _FILTERS.isdisjoint((code, type_, str(inner.get("code"))))
            or "flagged_input" in metadata
            or _FILTER.search(message[:_WORDS]) is not None,
            context=context,
            prompt=prompt,
            reply=reply,
        )

    @property
    def kinds(self) -> set[str]:
        """Code and type: servers put the same words into one or the other."""
        return {self.code.lower(), self.type.lower()}

    @property
    def status(self) -> int | None:
        """The HTTP status of a refused request that its code says, where the answer itself has another one."""
        return int(self.code) if re.fullmatch("4[0-9]{2}", self.code, re.ASCII) else None

    @property
    def refuses_key(self) -> bool:
        return "invalid_api_key" in self.kinds or _BAD_KEY.match(self.message) is not None

    @property
    def lacks_model(self) -> bool:
        """Whether there is no such model or deployment, or none that can chat."""
        return bool(self.kinds & _NO_MODELS) or _NO_MODEL.search(self.message[:_WORDS]) is not None

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


_FILTERS = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
_FILTER = re.compile(
    r"ContentPolicyViolationError|content_policy_violation|(?:triggering|violat\w+) .{0,40}content management policy|"
    r"\brequires moderation\b|\binput was flagged\b",
    re.IGNORECASE,
)
"""How gateways name a content filter, theirs or one behind them."""
_BAD_KEY = re.compile(r"\W*(?:API key (?:not valid|expired)|(?:incorrect|invalid) API key)\b", re.IGNORECASE)
_NO_MODELS = {
    "deploymentnotfound",
    "model_not_found",
    "modeldeprecated",
    "invalid_model",
    "model_not_available",
}
_NO_MODEL = re.compile(
    r"\bmodels?(?:[ /](?:[`'\"][^`'\"]+[`'\"]|(?=\S*(?:\d|[-:/.]\w))[^\s`'\"]*\w))?(?: is)? "
    r"(?:does not exist|not exist|not found)\b|"
    r"\bis not a valid model(?: id| name|\W*$)|\binvalid model(?: name| id|:|\W*$)|"
    r"\boperation does not work with the specified model\b",
    re.IGNORECASE,
)
"""A name without quotes has a digit or a sign in it: other words would be those of something else."""
_UNSEEN = re.compile(r"<(style|script)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
"""What a web page does not show."""
_TAG = re.compile(r"<[^>]*>")
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
    r"context window of|maximum number of tokens allowed \(?) ?(\d{1,9})",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:messages resulted in|request has|requested tokens \(|request \(|you passed|prompt contains at least|"
    r"prompt \(length|prompt length of|input token count \(|tokens \((?=\d+ in the messages)) ?(\d{1,9})",
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
    choices, usage = answer.get("choices"), mapping(answer.get("usage"))
    first = next(iter(choices), None) if isinstance(choices, list) else None
    if not isinstance(first, dict):
        error = _ErrorBody.of(document)
        status = 400 if error.exceeds_context else error.status
        if not choices and status:
            return read_status(status, {}, body)  # some servers say 200 to everything
        tokens = _tokens(usage, has_text=False)
        return Fault(
            Action.RETRY,
            "no_choices",
            f"HTTP 200 without a completion{error.quoted()}: check that the endpoint serves chat completions",
            possibly_billed=not tokens.prompt,
            tokens=tokens if tokens.prompt else Tokens(),
        )
    read = _read_choice(first, _tokens(usage, has_text=_has_text(first)))
    model = answer.get("model")
    return replace(read, model=model) if isinstance(read, Completion) and isinstance(model, str) else read


def _tokens(usage: Mapping[str, Any], *, has_text: bool) -> Tokens:
    """Some providers count what a model thinks in the total only; it is billed like the rest of the reply."""
    prompt, reply, total = (_count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    cached = _count(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    thoughts = total - prompt - reply
    is_whole = cached <= prompt and cached != thoughts  # else the prompt's count lacks those that were cached
    if prompt and is_whole and 0 < thoughts <= _MOST_THOUGHTS:
        reply += thoughts
    is_counted = prompt > 0 and (reply > 0 or not has_text)
    return Tokens(prompt, reply, min(cached, prompt), are_counted=is_counted)


_MOST_THOUGHTS = 300_000
"""Tokens, more than models write in one reply. A larger total counts something else, such as all requests so far."""


def refused_reply(status: int, body: str) -> Completion | None:
    """The reply that a server refuses by itself since it is no JSON (Groq); None for every other answer."""
    if status != 400 or "json_validate_failed" not in body:
        return None
    try:
        error = mapping(mapping(json.loads(body)).get("error"))
    except (ValueError, RecursionError):
        return None
    if error.get("code") != "json_validate_failed":
        return None
    return Completion(_text_of(error.get("failed_generation")), Tokens(are_counted=False))


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
    return any(message.get(name) for name in ("content", *_THOUGHTS, "refusal", "tool_calls"))


_THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers put what a model thinks, and some of them the reply of a model that was told not to think."""


def _thoughts_of(message: Mapping[str, Any]) -> str:
    return next((text for name in _THOUGHTS if (text := _text_of(message.get(name)))), "")


def _read_choice(choice: Mapping[str, Any], tokens: Tokens) -> Completion | Fault:
    message = mapping(choice.get("message"))
    finish = one_line(str(choice.get("finish_reason") or ""))[:60]
    if _OUTPUT_FILTER.match(finish):
        named = "" if finish == "content_filter" else f" ({finish})"
        advice = f"the provider's content filter cut the judge's reply{named}"
        return Fault(Action.REJECT, "output_filtered", advice, tokens=tokens)
    if finish.lower() in _BROKEN_OFF or (mapping(choice.get("error")) and finish.lower() != "stop"):
        return _broken_off({"error": choice.get("error")}, finish, tokens)
    if finish.lower() in ("length", "max_tokens"):
        return _cut(message, tokens)
    if message.get("refusal"):
        words = one_line(str(message["refusal"]))[:200]
        return Fault(Action.REJECT, "refused", f"the judge refused: {words}", tokens=tokens)
    text = _text_of(message.get("content"))
    if not text.strip() and (thoughts := _thoughts_of(message).strip()).startswith(("{", "```")):
        text = thoughts
    filtering = mapping(mapping(choice.get("content_filter_results")).get("error"))
    return Completion(text, tokens, is_unfiltered=filtering.get("code") == "content_filter_error")


_OUTPUT_FILTER = re.compile(
    r"content_filter\b|(?:safety|prohibited_content|recitation|blocklist|spii|sensitive)$", re.IGNORECASE
)
"""Reasons to finish that name a content filter: OpenAI's, Gemini's and Z.AI's."""
_BROKEN_OFF = {"error", "network_error", "insufficient_system_resource"}
"""Reasons to finish of a server that failed while it wrote."""


def _broken_off(document: Mapping[str, Any], finish: str, tokens: Tokens) -> Fault:
    """What its error says, if that is a refusal; else a failure of the server, whatever was written until then."""
    error = _ErrorBody.of(document)
    if error.status:
        fault = read_status(error.status, {}, json.dumps(document))
    else:
        said = error.quoted() or f" ({finish or 'error'})"
        advice = "the endpoint failed while it replied; run the same command again later to continue"
        is_uncounted = not tokens.prompt
        fault = Fault(Action.RETRY, "server_error", f"HTTP 200{said}: {advice}", possibly_billed=is_uncounted)
    return replace(fault, tokens=tokens if tokens.prompt else Tokens())


def _text_of(content: Any) -> str:
    """Of a message, which may come in parts: thoughts and other kinds are no part of the text."""
    if isinstance(content, list):
        parts = map(mapping, content)
        return "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") == "text")
    return content if isinstance(content, str) else ""


def _cut(message: Mapping[str, Any], tokens: Tokens) -> Fault:
    """A reply that reached the token limit: because it needs more, or because it would never end."""
    content, thoughts = _text_of(message.get("content")), _thoughts_of(message)
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
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return min(int(value), _MOST_TOKENS) if is_whole and value >= 0 else 0


_MOST_TOKENS = 10**9
