"""A judge and a store as plain objects, for tests of what stands above the network."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from fake_judge import honest_reply

from rag_eval.errors import RunStoppedError
from rag_eval.judge.calls import Answer, Call
from rag_eval.judge.replies import read_reply
from rag_eval.judge.scheduler import Scheduler
from rag_eval.records import Usage

T = TypeVar("T")


class ObjectJudge:
    """Answers calls by a function from prompt to reply text; a JudgeError or RunStoppedError is raised instead."""

    adaptations: tuple[str, ...] = ()

    def __init__(self, reply: Callable[[str], str | Exception] = honest_reply, seconds: float = 0.0) -> None:
        self.prompts: list[str] = []
        self.prepared: list[str] = []
        self.deployments: list[str] = []
        """Of each call that was made."""
        self.refuses_at_first: RunStoppedError | None = None
        self._reply = reply
        self._seconds = seconds
        self._lock = threading.Lock()
        self._in_flight = 0
        self.most_in_flight = 0

    def prepare(self, deployment: str) -> None:
        self.prepared.append(deployment)
        if self.refuses_at_first:
            raise self.refuses_at_first

    def key(self, call: Call[Any]) -> str:
        return f"{call.deployment}/{call.reply_type.__name__}/{prompt_of(call)}"

    def ask(self, call: Call[Any]) -> Answer:
        with self._lock:
            self.prompts.append(prompt_of(call))
            self.deployments.append(call.deployment)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            time.sleep(self._seconds)
            text = self._reply(prompt_of(call))
        finally:
            with self._lock:
                self._in_flight -= 1
        if isinstance(text, Exception):
            raise text
        return Answer(text, read_reply(text, call), prompt_tokens=10, completion_tokens=2)

    def usage(self) -> Usage:
        return Usage(requests=len(self.prompts))

    def close(self) -> None:
        """Nothing is open."""


class DictStore:
    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def reply(self, key: str) -> str | None:
        return self.replies.get(key)

    def failure(self, key: str) -> tuple[str, str] | None:
        code = self.failures.get(key)
        return None if code is None else (code, "journaled before")

    def put_reply(self, key: str, *, reply: str, failure: tuple[str, str] | None = None, **paid: Any) -> None:
        self.replies[key] = reply
        self.failures.pop(key, None)
        if failure:
            self.failures[key] = failure[0]

    def put_failure(self, key: str, *, code: str, **failure: Any) -> None:
        self.failures[key] = code

    def end(self, *, keep: bool) -> None:
        """Nothing is open."""


def prompt_of(call: Call[Any]) -> str:
    return "\n".join(message.text for message in call.messages)


def run(
    coroutines: Iterable[Coroutine[Any, Any, T]],
    judge: ObjectJudge | None = None,
    store: DictStore | None = None,
    *,
    workers: int = 4,
    window: int = 100,
) -> list[T]:
    """Run coroutines to their end over a judge that counts words."""
    scheduler = Scheduler(judge or ObjectJudge(), store or DictStore(), workers=workers)
    try:
        return list(scheduler.run(coroutines, window=window))
    finally:
        scheduler.close()


def counted(prompts: Iterable[str]) -> Counter[str]:
    return Counter(prompts)
