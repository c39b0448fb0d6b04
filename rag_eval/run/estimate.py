"""What a run would send and cost, found out without sending anything.

The real coroutines run over a judge that makes its replies up: as many statements as the text has sentences, and
every verdict unfavourable, so that every recommendation is asked for. Calls are therefore the most that are to
be expected; guards, duplicates and what the store knows already are taken into account exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from rag_eval.judge.attempt import Attempt
from rag_eval.judge.batches.lines import request_line
from rag_eval.judge.batches.outbox import BatchLimits
from rag_eval.judge.budget import Price
from rag_eval.judge.calls import Answer, Call, PendingError, ReplyStore
from rag_eval.judge.endpoint import request_body
from rag_eval.judge.transport import Transport
from rag_eval.records import Usage
from rag_eval.texts.tokens import estimated_tokens


@dataclass(frozen=True, slots=True)
class Range:
    """What is expected of tokens or money, and between which two figures it will probably be."""

    low: float
    expected: float
    high: float


@dataclass(slots=True)
class Estimate:
    """Calls by deployment and task, and tokens by deployment."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    prompts: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))
    """Estimated tokens."""
    replies: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))

    def add(self, deployment: str, call: Call[Any], reply: str) -> None:
        self.calls[deployment, call.task] += 1
        self.prompts[deployment] += call.estimated_tokens
        self.replies[deployment] += estimated_tokens(reply)

    def merge(self, other: "Estimate") -> None:
        """Add what another part of the run takes."""
        self.calls.update(other.calls)
        for mine, others in ((self.prompts, other.prompts), (self.replies, other.replies)):
            for deployment, tokens in others.items():
                mine[deployment] += tokens

    @property
    def deployments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(deployment for deployment, _ in self.calls))

    def prompt_tokens(self, deployment: str) -> Range:
        """Of the prompts as they would be sent; vocabularies of models differ."""
        expected = self.prompts[deployment]
        return Range(expected * 0.8, expected, expected * 1.6)

    def completion_tokens(self, deployment: str) -> Range:
        """From made-up replies; judges write half or twice as much."""
        expected = self.replies[deployment]
        return Range(expected / 2, expected, expected * 2)

    def seconds(self, prompt_speed: float, reply_speed: float) -> Range:
        """At so many tokens a second, one call at a time."""
        parts = [(self.prompt_tokens(each), self.completion_tokens(each)) for each in self.deployments]
        return Range(
            *(
                sum(
                    getattr(prompt, end) / prompt_speed + getattr(reply, end) / reply_speed
                    for prompt, reply in parts
                )
                for end in ("low", "expected", "high")
            )
        )

    def cost(self, prices: Mapping[str, Price]) -> Range | None:
        """In the currency of the prices; None when one of them is unknown."""
        if any(deployment not in prices for deployment in self.deployments):
            return None
        parts = [
            (prices[deployment], self.prompt_tokens(deployment), self.completion_tokens(deployment))
            for deployment in self.deployments
        ]
        return Range(
            sum(price.of(prompt.low, completion.low) for price, prompt, completion in parts),
            sum(price.of(prompt.expected, completion.expected) for price, prompt, completion in parts),
            sum(price.of(prompt.high, completion.high) for price, prompt, completion in parts),
        )


class _Keys(Protocol):
    def key(self, call: Call[Any]) -> str: ...


class EstimatingJudge:
    """Makes replies up, and counts what they would have taken. It sends nothing."""

    adaptations: tuple[str, ...] = ()

    def __init__(self, keys: _Keys, model: str, sent: Collection[str] = ()) -> None:
        """`sent` are the keys of calls in open batches, which a run waits for."""
        self.estimate = Estimate()
        self.awaited = 0
        """How many calls are in open batches."""
        self._keys = keys
        self._model = model
        self._sent = sent

    def prepare(self, deployment: str) -> None:
        self.estimate.calls[deployment or self._model, "preflight"] += 1

    def key(self, call: Call[Any]) -> str:
        return self._keys.key(call)

    def ask(self, call: Call[Any]) -> Answer:
        reply = call.reply_type.made_up(call.agrees_with)
        text = reply.model_dump_json()
        if self._sent and self.key(call) in self._sent:
            self.awaited += 1
        else:
            self.estimate.add(call.deployment or self._model, call, text)
        return Answer(text, reply)

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


class DryRunStore:
    """A store of which only what was there before is real; what is put in is forgotten at the end."""

    def __init__(self, store: ReplyStore | None, others: dict[str, str] | None = None) -> None:
        """`others` are replies that were made up for other parts of the run; those of this part are added."""
        self._store = store
        self._others = {} if others is None else others
        self._made_up: dict[str, str] = {}
        self.shared = set[str]()
        """Keys of replies that were served and made up for other parts."""

    def reply(self, key: str) -> str | None:
        """What was made up comes first: it stands for a stored reply that would not be taken."""
        if (made_up := self._made_up.get(key)) is not None:
            return made_up
        if (made_up := self._others.get(key)) is not None:
            self.shared.add(key)
            return made_up
        return self._store.reply(key) if self._store else None

    def failure(self, key: str) -> tuple[str, str] | None:
        return self._store.failure(key) if self._store else None

    def put_reply(self, key: str, *, reply: str, **paid: Any) -> None:
        self._made_up[key] = reply

    def put_failure(self, key: str, **failure: Any) -> None:
        """A made-up judge does not fail."""

    def note(self, name: str) -> str | None:
        return self._store.note(name) if self._store else None

    def put_note(self, name: str, value: str) -> None:
        """Nothing is found out about an endpoint that is not asked."""

    def end(self, *, keep: bool) -> None:
        self._others.update(self._made_up)
        if self._store:
            self._store.end(keep=True)


@dataclass(slots=True)
class Wave:
    """Calls that are sent at the same time: none needs the reply to another."""

    calls: int = 0
    files: int = 0
    size: int = 0
    """In bytes, of all files together."""


class WaveJudge(EstimatingJudge):
    """Replies to a call only in the evaluation after the one that made it."""

    def __init__(
        self, transport: Transport, store: DryRunStore, limits: BatchLimits, sent: Collection[str] = ()
    ) -> None:
        super().__init__(transport, transport.endpoint.model, sent)
        self.waves: list[Wave] = []
        self._transport = transport
        self._store = store
        self._limits = limits
        self._made_up: dict[str, str] = {}
        self._wave = Wave()
        self._files: dict[str, Counter[str]] = {}

    def prepare(self, deployment: str) -> None:
        """What one call costs in advance is left out."""

    def ask(self, call: Call[Any]) -> Answer:
        key = self.key(call)
        if key not in self._made_up:
            self._made_up[key] = super().ask(call).text
            if key not in self._sent:
                self._add(key, call)
        raise PendingError

    def end_wave(self) -> bool:
        """Reply to what was asked since the last wave; False if that is nothing."""
        if not self._made_up:
            return False
        for key, reply in self._made_up.items():
            self._store.put_reply(key, reply=reply)
        if self._wave.calls:
            self.waves.append(self._wave)
        self._made_up, self._wave, self._files = {}, Wave(), {}
        return True

    def _add(self, key: str, call: Call[Any]) -> None:
        attempt = self._transport.replay(call, ())
        assert isinstance(attempt, Attempt)  # noqa: S101 - without an outcome there is no answer
        body = request_body(self._transport.endpoint, attempt.dialect, call, attempt.max_tokens)
        size = len(request_line(key, self._limits.url, body))
        tokens = int(call.estimated_tokens) + 1
        file = self._files.get(attempt.deployment.name)
        if file is None or not self._limits.have_room(
            file["calls"], file["size"] + size, file["tokens"] + tokens
        ):
            file = self._files[attempt.deployment.name] = Counter()
            self._wave.files += 1
        file.update(calls=1, size=size, tokens=tokens)
        self._wave.calls += 1
        self._wave.size += size
