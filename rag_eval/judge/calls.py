"""A call to the judge as a value: what is asked, the shape of the answer, and how coroutines wait for it.

Metrics await `call` and `gather(...)` and nothing else; `scheduler` runs them.
"""

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from rag_eval.errors import JudgeError
from rag_eval.records import Usage
from rag_eval.texts.tokens import estimated_tokens

T = TypeVar("T")
Reply = TypeVar("Reply", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    """'system' for what we say, 'user' for what was written by others."""
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Call(Generic[Reply]):
    """One question to the judge and the shape of its answer. Awaiting it gives the validated reply."""

    task: str
    """What the call is for, such as 'faithfulness.verdicts'; usage is accounted by it."""
    messages: tuple[Message, ...]
    reply_type: type[Reply]
    agrees_with: Mapping[str, object] = field(default_factory=dict)
    """What the reply must agree with, handed to its validators as pydantic's validation context."""
    max_tokens: int = 2048
    deployment: str = ""
    """Name of another deployment than the judge's own; empty for that one."""
    bundle: "Bundle | None" = None
    """How several such calls are sent as one request; None if each is sent alone."""
    sample: int = 0
    """The number of the repetition, from 0: a repeated question is another call."""
    has_fallback: bool = False
    """The caller has another way: an unusable reply is requested only once more, and never stops the run."""
    origin: str = ""
    """What made the call first, such as 'row 7', for the log; set when the call is sent."""

    @property
    def estimated_tokens(self) -> float:
        """The estimated tokens of the prompt."""
        return sum(estimated_tokens(message.text) for message in self.messages)

    def __await__(self) -> Generator["Call[Reply]", Reply, Reply]:
        return (yield self)


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Several small calls of one kind asked as one. Each part's reply is stored under that part's own key."""

    size: int
    combine: Callable[[Sequence[Call[Any]]], Call[Any]]
    split: Callable[[BaseModel, int], Sequence[BaseModel]]
    """The combined reply and the number of parts → the reply of each part, in order."""


class Gather:
    """Several things that a coroutine waits for at once."""

    def __init__(self, parts: Sequence[Awaitable[Any]]) -> None:
        self.parts = parts

    def __await__(self) -> Generator["Gather", list[Any], list[Any]]:
        return (yield self)


@types.coroutine
def sampled(coroutine: Coroutine[Any, Any, T], number: int) -> Generator["Call[Any] | Gather", Any, T]:
    """The coroutine, with every call that it makes marked as the repetition with that number."""
    step = partial(coroutine.send, None)
    while True:
        try:
            wanted = step()
        except StopIteration as finished:
            result: T = finished.value
            return result
        try:
            step = partial(coroutine.send, (yield _marked(wanted, number)))
        except JudgeError as error:
            step = partial(coroutine.throw, error)


def _marked(wanted: "Call[Any] | Gather", number: int) -> "Call[Any] | Gather":
    if isinstance(wanted, Call):
        return replace(wanted, sample=number)
    return Gather([sampled(awaited(part), number) for part in wanted.parts])


async def awaited(part: Awaitable[T]) -> T:
    """Anything that can be awaited, as a coroutine."""
    return await part


async def gather(parts: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for several calls or coroutines at once; their results in the order given.

    All of them are finished first; then the first error, if any, is raised.
    """
    results: list[T] = await Gather(list(parts))
    return results


@dataclass(frozen=True, slots=True)
class Answer:
    """A validated reply and what it cost. A bundled call's answer has one reply a part."""

    text: str
    """The reply as JSON, as it is stored."""
    reply: BaseModel
    attempts: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0


class PendingError(Exception):
    """The judge takes the call and answers it at another time, to whoever makes the same call then."""


class Judge(Protocol):
    """What answers calls. Used from several threads at once."""

    def prepare(self, deployment: str) -> None:
        """Make sure that the judge can be reached, before its first call there. May raise RunStoppedError."""

    def key(self, call: Call[Any]) -> str:
        """Hash of everything that can change the reply."""

    def ask(self, call: Call[Any]) -> Answer:
        """Raise JudgeError when this call has no usable reply, RunStoppedError when no call can have one.

        Raise PendingError when the reply comes at another time.
        """

    def usage(self) -> Usage:
        """What was sent so far."""

    @property
    def adaptations(self) -> Sequence[str]:
        """What was adapted to the endpoint, one sentence each."""

    def close(self) -> None:
        """Let go of connections."""


class ReplyStore(Protocol):
    """Replies and failures by request key, and notes on endpoints, so that keys stay the same from run to run."""

    def reply(self, key: str) -> str | None: ...
    def failure(self, key: str) -> tuple[str, str] | None: ...
    def put_reply(
        self, key: str, *, task: str, reply: str, attempts: int, prompt_tokens: int, completion_tokens: int
    ) -> None: ...
    def put_failure(self, key: str, *, task: str, code: str, message: str) -> None: ...
    def end(self, *, keep: bool) -> None: ...
    def note(self, name: str) -> str | None: ...
    def put_note(self, name: str, value: str) -> None: ...
