"""What a judge can do, found out with a few small calls: its speed, its context, and whether it judges at all."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from rag_eval.configuration.settings import Settings
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


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    ready: bool


def timed_call(transport: Transport, *, long_prompt: bool = False) -> Timed:
    """Ask whether the judge is ready, with a long text on request. Raises what `Transport.ask` raises."""
    system, user = ARE_YOU_READY
    text = user.text + "".join(f" Room {n} is open." for n in range(_ROOMS)) if long_prompt else user.text
    call = Call(
        task="doctor",
        messages=(system, Message("user", text)),
        reply_type=_Ready,
        max_tokens=512,  # some models think before they reply
    )
    before, began = transport.usage(), time.monotonic()
    transport.ask(call)
    seconds, after = time.monotonic() - began, transport.usage()
    return Timed(
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        seconds,
    )


_ROOMS = 200
"""Sentences of some five tokens."""


def speed_of(short: Timed, long: Timed) -> Speed | None:
    """From a short and a long prompt with equal replies; None if the endpoint does not count tokens."""
    if not (short.reply_tokens and long.prompt_tokens > short.prompt_tokens):
        return None
    # As if replies cost the same per token in both, and the rest of the long call was reading.
    reading = (long.prompt_tokens - short.prompt_tokens) / max(long.seconds - short.seconds, _SHORTEST)
    writing = short.reply_tokens / max(short.seconds - short.prompt_tokens / reading, _SHORTEST)
    return Speed(reading, writing)


_SHORTEST = 0.001


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
class Probed:
    """A known case, and the faithfulness that the judge gave it."""

    name: str
    expected: float
    score: Score


def probe(settings: Settings, transport: Transport) -> Iterator[Probed]:
    """Judge the known cases in the prompt form of the settings. Raises RunStoppedError if no call can succeed."""
    name, form = "faithfulness", settings.judge.prompts
    (metric,) = llm_metrics([name]) if form == "ragas" else metrics_by_verdicts([name], form, {})
    scheduler = Scheduler(transport, NoStore(), workers=1, tries=1)
    try:
        scores = scheduler.run([metric.measure(case) for case, _ in KNOWN_CASES.values()], window=1)
        for (name, (_, expected)), score in zip(KNOWN_CASES.items(), scores, strict=True):
            yield Probed(name, expected, score)
        if scheduler.stopped:
            raise scheduler.stopped
    finally:
        scheduler.close()


_CHUNKS = ("The swimming pool opens at nine in the morning. A ticket costs eight euros.",)
KNOWN_CASES: Mapping[str, tuple[Case, float]] = {
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
