"""What a judge can do, found out with a few small calls: its speed, its context, and whether it judges at all."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from rag_eval.configuration.settings import Settings
from rag_eval.errors import JudgeError
from rag_eval.judge.calls import Call, Message
from rag_eval.judge.null_judges import NoStore
from rag_eval.judge.scheduler import Scheduler
from rag_eval.judge.transport import ARE_YOU_READY, Transport
from rag_eval.metrics.catalogue import llm_metrics
from rag_eval.metrics.prompt_forms import metrics_by_verdicts
from rag_eval.records import Case, Score

# Speed


@dataclass(frozen=True, slots=True)
class Timed:
    """One call: the tokens that the model read and wrote, and how long that took."""

    prompt_tokens: int
    reply_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one call at a time."""

    prompt: float
    reply: float

    def seconds(self, prompt_tokens: float, reply_tokens: float) -> float:
        return prompt_tokens / self.prompt + reply_tokens / self.reply

    @property
    def usual_call(self) -> float:
        """Seconds of a call with one of the longer prompts of ragas and a reply of some statements."""
        return self.seconds(_USUAL_PROMPT, _USUAL_REPLY)


_USUAL_PROMPT, _USUAL_REPLY = 1_400, 300
"""Tokens."""


class _ReadyReply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    ready: bool


class _Numbers(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    numbers: list[int]


def timed_call(transport: Transport) -> Timed:
    """Ask whether the judge is ready. Raises what `Transport.ask` raises."""
    return _timed(transport, _READY)


def measured_speed(transport: Transport, short: Timed) -> Speed | None:
    """From a short call and two more. It must not be the first one: that includes the start of client and server.

    None if the server does not count tokens. Raises what `Transport.ask` raises for a call without a reply.
    """
    return speed_of(short, *(_timed(transport, call, any_reply=True) for call in (_long_prompt(), _COUNT)))


def _timed(transport: Transport, call: Call[Any], *, any_reply: bool = False) -> Timed:
    """`any_reply` if one that is cut or not valid does as well, since its tokens are counted."""
    before, began = transport.usage(), time.monotonic()
    try:
        transport.ask(call)
    except JudgeError:
        if not (any_reply and transport.usage().completion_tokens > before.completion_tokens):
            raise
    seconds, after = time.monotonic() - began, transport.usage()
    return Timed(
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        seconds,
    )


_READY = Call("doctor", ARE_YOU_READY, _ReadyReply, max_tokens=512)  # some models think before they reply
_COUNT = Call(
    "doctor",
    (
        Message(
            "system",
            'Reply with the JSON object {"numbers": [1, 2, 3]}, but with all numbers that are wanted.',
        ),
        Message("user", "All numbers from 1 to 60."),
    ),
    _Numbers,
    max_tokens=128,
)


def _long_prompt() -> Call[_ReadyReply]:
    """Other words each time: servers remember what they have read, and do not read it again."""
    first = 1_000 + time.time_ns() // 1_000_000 % 8_000
    system, user = ARE_YOU_READY
    rooms = "".join(f"Room {first + n} is open. " for n in range(_ROOMS))
    return replace(_READY, messages=(system, Message("user", rooms + user.text)))


_ROOMS = 160
"""Sentences of some six tokens."""


def speed_of(short: Timed, long_prompt: Timed, long_reply: Timed) -> Speed | None:
    """From what two calls took longer than a short one; None if the endpoint does not count tokens."""
    read = long_prompt.prompt_tokens - short.prompt_tokens
    written = long_reply.reply_tokens - short.reply_tokens
    if not (short.reply_tokens and read > 0):
        return None
    if written >= _ENOUGH:
        writing = written / max(long_reply.seconds - short.seconds, _SHORTEST)
    else:
        writing = short.reply_tokens / max(short.seconds, _SHORTEST)
    # Models that think do not write equally much in reply to the same question.
    more_written = (long_prompt.reply_tokens - short.reply_tokens) / writing
    return Speed(read / max(long_prompt.seconds - short.seconds - more_written, _SHORTEST), writing)


_SHORTEST = 0.001
_ENOUGH = 16
"""Tokens. The time of fewer is lost in that of the request."""


# Context


def context_size(models: Any, model: str) -> int | None:
    """Tokens that the model can read and write together, as the server lists them under /models; None if it does not.

    llama.cpp says n_ctx, vLLM max_model_len; other servers have a context_length.
    """
    listed = [each for each in _list(models) if isinstance(each, dict)]
    named = [each for each in listed if model in (each.get("id"), each.get("root"), *_list(each, "aliases"))]
    found = named or (listed if len(listed) == 1 else [])
    for entry in found:
        meta = entry.get("meta")
        for place in (meta if isinstance(meta, dict) else {}, entry):
            for name in (
                "n_ctx",
                "max_model_len",
                "loaded_context_length",
                "context_length",
                "context_window",
            ):
                if isinstance(size := place.get(name), int) and size > 0:
                    return size
    return None


def _list(document: Any, name: str = "data") -> list[Any]:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, list) else []


def listed_models(transport: Transport) -> Any:
    """What the server says of its models as JSON values; None if it says nothing that can be read."""
    import aiohttp

    try:
        response = transport.connected().send("GET", "/models")
        return json.loads(response.text) if response.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
        return None


# Known cases


@dataclass(frozen=True, slots=True)
class _Probed:
    """A known case, and the faithfulness that the judge gave it."""

    name: str
    expected: float
    score: Score


def probe(settings: Settings, transport: Transport) -> Iterator[_Probed]:
    """Judge the known cases in the prompt form of the settings. Raises RunStoppedError if no call can succeed."""
    name, form = "faithfulness", settings.judge.prompts
    (metric,) = llm_metrics([name]) if form == "ragas" else metrics_by_verdicts([name], form, {})
    scheduler = Scheduler(transport, NoStore(), workers=1, tries=1)
    try:
        scores = scheduler.run([metric.measure(case) for case, _ in _KNOWN_CASES.values()], window=1)
        for (name, (_, expected)), score in zip(_KNOWN_CASES.items(), scores, strict=True):
            yield _Probed(name, expected, score)
        if scheduler.stopped:
            raise scheduler.stopped
    finally:
        scheduler.close()


_CHUNKS = ("The swimming pool opens at nine in the morning. A ticket costs eight euros.",)
_KNOWN_CASES: Mapping[str, tuple[Case, float]] = {
    "a statement that the context supports": (
        Case(1, "probe", "When does the pool open?", "The swimming pool opens at nine.", None, _CHUNKS),
        1.0,
    ),
    "a statement that the context contradicts": (
        Case(2, "probe", "What does a ticket cost?", "A ticket costs forty euros.", None, _CHUNKS),
        0.0,
    ),
    "a statement on which the context says nothing": (
        Case(
            3, "probe", "Who built the pool?", "The swimming pool was built by Mara Lindqvist.", None, _CHUNKS
        ),
        0.0,
    ),
}
"""Nothing of them is in an example of a prompt."""
