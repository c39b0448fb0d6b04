"""Worker threads that ask the judge and store what it says, the most urgent requests first."""

import heapq
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from pydantic import BaseModel

from rag_eval.errors import JudgeError, RefusedReplyError, StoreError
from rag_eval.judge.calls import Answer, Call, Judge, ReplyStore


@dataclass(frozen=True, slots=True)
class Part:
    key: str
    call: Call[Any]
    order: int
    """The number of the coroutine that makes the call: earlier ones go first."""


@dataclass(slots=True, eq=False)
class Request:
    """One request to the judge and the calls that it answers: one, or several when they are a bundle."""

    call: Call[Any]
    parts: tuple[Part, ...]
    future: Future[list[BaseModel]] | None = None


class Workers:
    """A pool of threads. What they finish is taken in by the one thread that waits for news."""

    def __init__(
        self, judge: Judge, store: ReplyStore, number: int, *, settle: Callable[[Request], None]
    ) -> None:
        """`settle` takes in a request that has ended, well or not, or was cancelled."""
        self._judge = judge
        self._store = store
        self._number = number
        self._settle = settle
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="judge")
        self._ticket = count()
        # A heap: earlier coroutines first, then first come first.
        self._queued: list[tuple[int, int, Request]] = []
        self._under_way: list[Request] = []  # with the pool, begun or not
        self._news: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    @property
    def have_work(self) -> bool:
        return bool(self._under_way or self._queued)

    @property
    def has_idle(self) -> bool:
        """Whether there are fewer requests than workers."""
        return len(self._under_way) + len(self._queued) < self._number

    def submit(self, request: Request) -> None:
        heapq.heappush(self._queued, (request.parts[0].order, next(self._ticket), request))
        self._fill_pool()

    def prepare(self, deployment: str, then: Callable[[Future[None]], None]) -> None:
        preparing = self._pool.submit(self._judge.prepare, deployment)
        self._when_done(preparing, partial(then, preparing))

    def wake(self) -> None:
        """End a wait for news. May be called from a signal handler or another thread."""
        self._news.put(lambda: None)

    def take_news(self, patience: float | None, meanwhile: Iterator[object]) -> bool:
        """Wait for what was finished, and take in all of it; False when there was none for so many seconds.

        `meanwhile` makes a step if there is none yet.
        """
        self._fill_pool()
        if self._news.empty():
            next(meanwhile, None)
        try:
            act = self._news.get(timeout=patience)
        except queue.Empty:
            return False
        while True:
            act()
            try:
                act = self._news.get_nowait()
            except queue.Empty:
                return True

    def withdraw(self) -> Iterator[Request]:
        """Take back what nobody has begun. What the pool has of it is cancelled, and settled like all the rest."""
        while self._queued:
            yield self._queued.pop()[-1]
        for request in self._under_way:
            if request.future is not None:
                request.future.cancel()

    def abandon(self) -> Iterator[Request]:
        """Give up what is under way: its replies are stored if they still come, but nothing waits for them."""
        while self._under_way:
            yield self._under_way.pop(0)

    def close(self) -> None:
        """Let the threads go; calls still in flight are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _fill_pool(self) -> None:
        """Keep a little more with the pool than it can do at once, and the rest in order of urgency here."""
        while self._queued and len(self._under_way) < 2 * self._number:
            request = heapq.heappop(self._queued)[-1]
            self._under_way.append(request)
            request.future = self._pool.submit(self._work, request)
            self._when_done(request.future, partial(self._finish, request))

    def _when_done(self, future: Future[Any], act: Callable[[], None]) -> None:
        future.add_done_callback(lambda _: self._news.put(act))

    def _finish(self, request: Request) -> None:
        if request in self._under_way:  # else it was given up
            self._under_way.remove(request)
            self._settle(request)
            # They hold each other, and with them every reply, until garbage is collected.
            request.future = None

    # In a worker thread

    def _work(self, request: Request) -> list[BaseModel]:
        """Ask the judge and store what it says: nothing counts before it is stored."""
        try:
            answer = self._judge.ask(request.call)
        except JudgeError as error:
            if len(request.parts) == 1:  # which part of a bundle is to blame shows when each is asked alone
                self._keep_failure(request.parts[0], error)
            raise
        if len(request.parts) == 1:
            self._keep(request.parts[0], answer.text, answer)
            return [answer.reply]
        assert request.parts[0].call.bundle is not None  # noqa: S101 - only bundled calls have several parts
        replies = list(request.parts[0].call.bundle.split(answer.reply, len(request.parts)))
        self._keep_all(request.parts, replies, answer)
        return replies

    def _keep_all(self, parts: Sequence[Part], replies: Sequence[BaseModel], answer: Answer) -> None:
        """Store every reply that can be stored, since all are paid for; then raise the first error."""
        errors: list[StoreError] = []
        for index, (part, reply) in enumerate(zip(parts, replies, strict=True)):
            try:
                self._keep(part, reply.model_dump_json(), answer if index == 0 else None)
            except StoreError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _keep_failure(self, part: Part, error: JudgeError) -> None:
        """With the reply, if one came: it was paid for, and the call that follows it depends on it."""
        if isinstance(error, RefusedReplyError):
            self._keep(part, error.text, error, failure=(error.code, str(error)))
        else:
            self._store.put_failure(part.key, task=part.call.task, code=error.code, message=str(error))

    def _keep(
        self,
        part: Part,
        text: str,
        paid: Answer | RefusedReplyError | None,
        failure: tuple[str, str] | None = None,
    ) -> None:
        self._store.put_reply(
            part.key,
            task=part.call.task,
            reply=text,
            attempts=paid.attempts if paid else 0,
            prompt_tokens=paid.prompt_tokens if paid else 0,
            completion_tokens=paid.completion_tokens if paid else 0,
            failure=failure,
        )
