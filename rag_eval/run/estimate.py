"""What a run would send and cost, found out without sending anything.

The real coroutines run over a judge that makes its replies up: as many statements as the text has sentences, and
every verdict unfavourable, so that every recommendation is asked for. Calls are therefore the most that are to
be expected; guards, duplicates and what the store knows already are taken into account exactly.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rag_eval.judge.budget import CHARACTERS_A_TOKEN, FEWEST_CHARACTERS_A_TOKEN, Price
from rag_eval.judge.calls import Answer, Call
from rag_eval.records import Usage
from rag_eval.store.reply_store import Store

_MOST_CHARACTERS_A_TOKEN = 5.0


@dataclass(frozen=True, slots=True)
class Tokens:
    """A range: the least, the expected and the most."""

    low: float
    expected: float
    high: float


@dataclass(slots=True)
class Estimate:
    """Calls and characters by deployment and task."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    prompt_characters: Counter[str] = field(default_factory=Counter)
    reply_characters: Counter[str] = field(default_factory=Counter)

    def add(self, deployment: str, call: Call[Any], reply: str) -> None:
        self.calls[deployment, call.task] += 1
        self.prompt_characters[deployment] += sum(len(message.text) for message in call.messages)
        self.reply_characters[deployment] += len(reply)

    @property
    def deployments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(deployment for deployment, _ in self.calls))

    def prompt_tokens(self, deployment: str) -> Tokens:
        """From the prompts' characters, which are known; how many make a token differs by language."""
        characters = self.prompt_characters[deployment]
        return Tokens(
            characters / _MOST_CHARACTERS_A_TOKEN,
            characters / CHARACTERS_A_TOKEN,
            characters / FEWEST_CHARACTERS_A_TOKEN,
        )

    def completion_tokens(self, deployment: str) -> Tokens:
        """From made-up replies; judges write half or twice as much."""
        expected = self.reply_characters[deployment] / CHARACTERS_A_TOKEN
        return Tokens(expected / 2, expected, expected * 2)

    def cost(self, prices: Mapping[str, Price]) -> Tokens | None:
        """In the currency of the prices; None when one of them is unknown."""
        if any(deployment not in prices for deployment in self.deployments):
            return None
        parts = [
            (prices[deployment], self.prompt_tokens(deployment), self.completion_tokens(deployment))
            for deployment in self.deployments
        ]
        return Tokens(
            sum(price.of(prompt.low, completion.low) for price, prompt, completion in parts),
            sum(price.of(prompt.expected, completion.expected) for price, prompt, completion in parts),
            sum(price.of(prompt.high, completion.high) for price, prompt, completion in parts),
        )


class _Keys(Protocol):
    def key(self, call: Call[Any]) -> str: ...


class EstimatingJudge:
    """Makes replies up, and counts what they would have taken. It sends nothing."""

    adaptations: tuple[str, ...] = ()

    def __init__(self, keys: _Keys, model: str) -> None:
        self.estimate = Estimate()
        self._keys = keys
        self._model = model

    def prepare(self, deployment: str) -> None:
        self.estimate.calls[deployment or self._model, "preflight"] += 1

    def key(self, call: Call[Any]) -> str:
        return self._keys.key(call)

    def ask(self, call: Call[Any]) -> Answer:
        reply = call.reply_type.made_up(call.agrees_with)
        text = reply.model_dump_json()
        self.estimate.add(call.deployment or self._model, call, text)
        return Answer(text, reply)

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


class Overlay:
    """A store of which only what was there before is real; what is put in is forgotten at the end."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._made_up: dict[str, str] = {}

    def reply(self, key: str) -> str | None:
        """What was made up comes first: it stands for a stored reply that would not be taken."""
        made_up = self._made_up.get(key)
        return made_up if made_up is not None or not self._store else self._store.reply(key)

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
        if self._store:
            self._store.end(keep=True)
