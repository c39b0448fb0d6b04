"""The scheduler: runs coroutines without an event loop, and makes every distinct judge call once.

All coroutines run in the calling thread; worker threads only talk to the judge and to the store, so nothing
that a metric touches needs a lock.
"""

import inspect
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import Any

from pydantic import BaseModel

from rag_eval.errors import (
    CONTENT_CODES,
    NOT_RUN,
    OVER_LIMIT,
    REFUSALS,
    JudgeError,
    RefusedReplyError,
    RunStoppedError,
    StoreError,
)
from rag_eval.judge.calls import Bundle, Call, Gather, Judge, PendingError, ReplyStore, T, awaited
from rag_eval.judge.replies import read_reply
from rag_eval.judge.workers import Part, Request, Workers
from rag_eval.records import TaskUsage, Usage

log = logging.getLogger(__name__)

BREAKER_LIMIT = 10
"""The number of failures in a row with one code that stops the run."""

_LASTING_CODES = CONTENT_CODES - {OVER_LIMIT}
"""Failures that the same request would meet again: the journaled one is served rather than paid for twice. Refused
replies are stored themselves."""


@dataclass(slots=True)
class _CallCounts:
    """How distinct calls were answered, however many metrics and bots share them; a bundle that is sent counts once."""

    answered: Counter[str] = field(default_factory=Counter)
    """The number of answered calls by task."""
    cached: Counter[str] = field(default_factory=Counter)
    """The number of calls with a stored reply by task."""
    failures: Counter[str] = field(default_factory=Counter)
    """The number of failed calls by code."""
    refused: Counter[str] = field(default_factory=Counter)
    """The number of replies that were not taken by code, those included that another reply made good."""
    outdated: int = 0
    """The number of stored replies that were requested again, because they were empty or no longer valid."""
    replies: Counter[str] = field(default_factory=Counter)
    """The number of replies in their answers by task, of a bundle as many as it has parts: each is stored by itself."""

    def added_to(self, usage: Usage) -> Usage:
        """The judge's usage, with how the calls were answered. With known prices, no request costs nothing."""
        free = 0.0 if usage.cost is not None else None
        tasks = sorted(usage.by_task.keys() | self.answered.keys() | self.cached.keys())
        return replace(
            usage,
            calls=self.answered.total(),
            cached=self.cached.total(),
            failed=self.failures.total(),
            failures=dict(+self.failures),
            refused=dict(+self.refused),
            by_task={
                task: usage.by_task.get(task, TaskUsage(cost=free))
                + TaskUsage(self.answered[task], self.cached[task])
                for task in tasks
            },
        )


class Scheduler:
    """Runs coroutines over one judge, one store and a pool of worker threads.

    Only unique calls that the store does not know reach the pool; identical ones in flight are joined. Once
    stopped (by the judge, by too many equal failures, by a store that takes no more, or from outside), what the store
    knows is still served, and every other call fails with the code `not_run`: so all coroutines come to their end,
    and what was judged until then is not lost.
    """

    def __init__(
        self,
        judge: Judge,
        store: ReplyStore,
        *,
        workers: int,
        tries: int = 3,
        grace_seconds: float = 10.0,
        origin: Callable[[int], str] = "coroutine {}".format,
        in_batches: bool = False,
    ) -> None:
        """A call is sent at most `tries` times while replies to it are refused, and no more often than it wants.
        `origin` names a coroutine, counted from 0, in the log. With `in_batches`, every call is asked alone, and the
        run does not stop for equal failures: what was sent is sent.
        """
        self._judge = judge
        self._store = store
        self._workers = Workers(judge, store, workers, settle=self._settle)
        self._tries = tries
        self._grace_seconds = grace_seconds
        self._origin = origin
        self._in_batches = in_batches
        self.meanwhile: Iterator[object] = iter(())
        """Makes a step whenever nothing is to be done but to wait for a reply."""
        self._has_pending = False
        self._ready: deque[_Step] = deque()
        self._alive: set[_Task] = set()
        self._waiting: dict[str, list[_Task]] = {}
        self._ticket = count()
        self._unsent: dict[Bundle, list[Part]] = {}
        self._met: set[int] = set()  # hashes: there is one for every call of the run, and keys are long
        self._sent: set[int] = set()
        self._failed: set[int] = set()
        self._prepared: set[str] = set()
        self._held: dict[
            str, list[tuple[Sequence[_Task], Call[Any]]]
        ] = {}  # by deployment, while it is prepared
        self._streak = ("", 0)
        self._stop_request: RunStoppedError | None = None
        self._give_up_at: float | None = None
        self.stopped: RunStoppedError | None = None
        self.counts = _CallCounts()

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]], *, window: int) -> Iterator[T]:
        """The coroutines' results in their order; at most `window` of them are under way at a time.

        A coroutine that waits for replies that come at another time has no result: it is closed as soon as the
        others of its window, too, wait for such replies alone.
        """
        source = iter(coroutines)
        order: deque[_Task] = deque()
        while True:
            if self._stop_request:
                self._stop(self._stop_request)
            for coroutine in islice(source, window - len(order)):
                order.append(self._start(coroutine, next(self._ticket)))
            self._step_ready()
            if not order:
                return
            if not order[0].is_done:
                self._wait()
            while order and order[0].is_done:
                if (task := order.popleft()).is_closed:
                    continue
                yield task.result

    def usage(self) -> Usage:
        """What the run asked of the judge so far."""
        return self.counts.added_to(self._judge.usage())

    def request_stop(self, reason: RunStoppedError) -> None:
        """Stop at the next safe point. May be called from a signal handler or another thread."""
        self._stop_request = reason
        self._workers.wake()

    @property
    def stop_requested(self) -> bool:
        return self._stop_request is not None

    def close(self) -> None:
        """Let the worker threads go; calls still in flight are not waited for."""
        self._workers.close()
        for task in self._alive:
            task.coroutine.close()  # after a bug; otherwise all of them have come to their end

    # Coroutines

    def _start(
        self, coroutine: Coroutine[Any, Any, Any], order: int, parent: "_Task | None" = None, slot: int = 0
    ) -> "_Task":
        task = _Task(coroutine, order, parent, slot)
        self._alive.add(task)
        self._ready.append(_Step(task))
        return task

    def _step_ready(self) -> None:
        while self._ready:
            step = self._ready.popleft()
            coroutine = step.task.coroutine
            try:
                wanted = coroutine.throw(step.error) if step.error else coroutine.send(step.value)
            except StopIteration as finished:
                self._finish(step.task, finished.value, None)
            except JudgeError as error:
                self._finish(step.task, None, error)
            else:
                self._serve(step.task, wanted)

    def _finish(self, task: "_Task", result: Any, error: JudgeError | None) -> None:
        task.is_done, task.result = True, result
        self._alive.discard(task)
        parent = task.parent
        if parent is None:
            if error is not None:
                raise error
            return
        parent.parts[task.slot] = result
        if error is not None and (parent.error is None or task.slot < parent.error_slot):
            parent.error, parent.error_slot = error, task.slot
        parent.unfinished -= 1
        if parent.unfinished == 0:
            self._ready.append(_Step(parent, parent.parts, parent.error))

    def _serve(self, task: "_Task", wanted: object) -> None:
        if isinstance(wanted, Call):
            self._request([task], wanted)
        elif isinstance(wanted, Gather):
            task.expect(len(wanted.parts))
            for slot, part in enumerate(wanted.parts):
                self._start(part if inspect.iscoroutine(part) else awaited(part), task.order, task, slot)
            if not wanted.parts:
                self._ready.append(_Step(task, []))
        else:
            raise TypeError(f"a metric can await judge calls only, not {type(wanted).__name__}")

    # Calls

    def _request(self, tasks: Sequence["_Task"], call: Call[Any], *, replaces_stored: bool = False) -> None:
        """Serve the call from the store, or send it. `replaces_stored` if an earlier version took the reply before."""
        if call.deployment in self._held:
            self._held[call.deployment].append((tasks, call))
            return
        key = self._judge.key(call)
        is_new = self._is_new(self._met, key)
        known = _read(self._store.reply(key), call)
        if isinstance(known, RefusedReplyError):
            self._refuse_stored(tasks, key, call, known, is_new=is_new)
        elif known is not None:
            self.counts.cached[call.task] += is_new
            if is_new and log.isEnabledFor(logging.DEBUG):
                log.debug("%s, %s: stored", call.task, self._origin(tasks[0].order))
            self._resume(tasks, known, None)
        elif key in self._waiting:
            self._waiting[key].extend(tasks)
        elif (failure := self._store.failure(key)) and failure[0] in _LASTING_CODES:
            self._count_failure(failure[0], key)
            self._resume(tasks, None, JudgeError(*failure))
        else:
            self.counts.outdated += is_new and replaces_stored
            self._ask(tasks, key, call)

    def _refuse_stored(
        self, tasks: Sequence["_Task"], key: str, call: Call[Any], refusal: RefusedReplyError, *, is_new: bool
    ) -> None:
        """Go on as when the reply came. Where no further call follows, failures that are to be retried begin again."""
        self.counts.refused[refusal.code] += is_new
        is_journaled = self._store.failure(key) is not None
        if further := self._corrected(call, refusal):
            self._request(tasks, further, replaces_stored=not is_journaled)
            return
        first = call.question or call
        first_key = self._judge.key(first)
        if first_key in self._waiting:
            self._waiting[first_key].extend(tasks)
        elif is_journaled or hash(first_key) in self._sent:
            self._count_failure(refusal.code, key)
            self._resume(tasks, None, refusal)
        else:
            self.counts.outdated += is_new
            self._ask(tasks, first_key, first)

    def _corrected(self, call: Call[Any], refusal: RefusedReplyError) -> Call[Any] | None:
        return None if len(call.refused) + 1 >= self._tries else call.corrected(refusal)

    def _ask(self, tasks: Sequence["_Task"], key: str, call: Call[Any]) -> None:
        if self.stopped:
            self._resume(tasks, None, self._not_run())
        elif call.deployment not in self._prepared:
            # Other coroutines go on meanwhile, as far as their first call.
            self._held[call.deployment] = [(tasks, call)]
            self._prepared.add(call.deployment)
            self._workers.prepare(call.deployment, partial(self._begin, call.deployment))
        else:
            self._waiting[key] = [*tasks]
            self._is_new(self._sent, key)
            order = min(task.order for task in tasks)
            self._send(Part(key, replace(call, origin=self._origin(order)), order))

    def _resume(self, tasks: Iterable["_Task"], reply: BaseModel | None, error: JudgeError | None) -> None:
        self._ready.extend(_Step(task, reply, error) for task in tasks)

    def _count_failure(self, code: str, *keys: str) -> None:
        """Once for the calls of a request, however often they are met: stored, sent again, or asked for later."""
        are_new = [self._is_new(self._failed, key) for key in keys]
        if any(are_new):
            self.counts.failures[code] += 1

    @staticmethod
    def _is_new(known: set[int], key: str) -> bool:
        """Whether the key was not among the known ones; it is now."""
        before = len(known)
        known.add(hash(key))
        return len(known) > before

    def _begin(self, deployment: str, preparing: Future[None]) -> None:
        """Send the calls that were held back while the deployment was prepared, unless it cannot be used."""
        error = preparing.exception()
        if isinstance(error, RunStoppedError | StoreError):
            self._stop(_reason(error))
        elif error is not None:
            raise error
        self._release(deployment)

    def _release(self, deployment: str) -> None:
        """Request the calls that were held back. Their keys are made only now: the dialect may have changed."""
        for tasks, call in self._held.pop(deployment, ()):
            self._request(tasks, call)

    def _send(self, part: Part) -> None:
        bundle = None if self._in_batches else part.call.bundle
        if bundle is None:
            self._workers.submit(Request(part.call, (part,)))
            return
        unsent = self._unsent.setdefault(bundle, [])
        unsent.append(part)
        if len(unsent) == bundle.size:
            self._submit_bundle(bundle)

    def _submit_bundle(self, bundle: Bundle) -> None:
        parts = tuple(self._unsent.pop(bundle))
        call = parts[0].call
        if len(parts) > 1:
            origins = dict.fromkeys(part.call.origin for part in parts)
            call = replace(bundle.combine([part.call for part in parts]), origin=", ".join(origins))
        self._workers.submit(Request(call, parts))

    # Waiting

    def _wait(self) -> None:
        """Take in what the workers finished, or give it up when the grace period of a stop is over.

        Incomplete bundles are sent rather than let a worker idle.
        """
        if self._unsent and self._workers.has_idle:
            self._submit_bundle(next(iter(self._unsent)))
            return
        if not (self._workers.have_work or self._held):
            if self._has_pending:
                self._close_waiting()
                return
            raise RuntimeError("coroutines wait, but no call is under way")
        patience = None if self._give_up_at is None else max(0.0, self._give_up_at - time.monotonic())
        if not self._workers.take_news(patience, self.meanwhile):
            for request in self._workers.abandon():
                self._fail(request, self._not_run())

    def _close_waiting(self) -> None:
        """Everything that is under way waits for replies that come at another time."""
        for task in self._alive:
            task.coroutine.close()
            task.is_done = task.is_closed = True
        self._alive.clear()
        self._waiting.clear()
        self._has_pending = False

    def _settle(self, request: Request) -> None:
        future = request.future
        assert future is not None  # noqa: S101 - set when the request is submitted
        error = self._not_run() if future.cancelled() else future.exception()
        if error is None:
            self.counts.answered[request.call.task] += 1
            self.counts.replies[request.call.task] += len(request.parts)
            self._streak = ("", 0)
            for part, reply in zip(request.parts, future.result(), strict=True):
                self._resolve(part.key, reply, None)
        elif isinstance(error, PendingError):
            if self.stopped:
                self._fail(request, self._not_run())
            self._has_pending = True
        elif isinstance(error, RunStoppedError | StoreError):
            self._stop(_reason(error))
            self._fail(request, self._not_run())
        elif not isinstance(error, JudgeError):
            raise error
        elif isinstance(error, RefusedReplyError) and self._is_corrected(request, error):
            return
        elif len(request.parts) > 1 and not self.stopped:
            for part in request.parts:
                self._workers.submit(Request(part.call, (part,)))
        else:
            self._fail(request, error)

    def _is_corrected(self, request: Request, refusal: RefusedReplyError) -> bool:
        """Send the call that says what is wrong with a reply, if it is worth it. It is another one for the store."""
        self.counts.refused[refusal.code] += 1
        further = None if self.stopped else self._corrected(request.call, refusal)
        if further is None:
            return False
        if len(request.parts) == 1:
            self._request(self._waiting.pop(request.parts[0].key), further)
        else:
            self._workers.submit(Request(further, request.parts))
        return True

    def _resolve(self, key: str, reply: BaseModel | None, error: JudgeError | None) -> None:
        self._resume(self._waiting.pop(key), reply, error)

    def _fail(self, request: Request, error: JudgeError) -> None:
        for part in request.parts:
            self._resolve(part.key, None, error)
        self._count_failure(error.code, *(part.key for part in request.parts))
        if self._in_batches or error.code in CONTENT_CODES or error.code == NOT_RUN:
            return
        if isinstance(error, RefusedReplyError) and request.call.has_fallback:
            return
        code, length = self._streak
        self._streak = (error.code, length + 1 if code == error.code else 1)
        if self._streak[1] == BREAKER_LIMIT:
            told = f"{BREAKER_LIMIT} judge calls in a row failed ({error.code}): {error}"
            kept = "; these replies are kept, so add --retry-errors when the model or server is corrected"
            self._stop(RunStoppedError(error.code, told + (kept if error.code in REFUSALS else "")))

    # Stopping

    def _stop(self, reason: RunStoppedError) -> None:
        if self.stopped:
            return
        self.stopped = reason
        self._give_up_at = time.monotonic() + self._grace_seconds
        for bundle in list(self._unsent):
            for part in self._unsent.pop(bundle):
                self._resolve(part.key, None, self._not_run())
        for request in self._workers.withdraw():
            self._fail(request, self._not_run())
        for deployment in list(self._held):
            self._release(deployment)

    def _not_run(self) -> JudgeError:
        return JudgeError(NOT_RUN, f"not judged: the run stopped ({self.stopped or self._stop_request})")


def _reason(error: RunStoppedError | StoreError) -> RunStoppedError:
    """Why the run stops; a store that takes no reply is the cause of the error that is made for it."""
    if isinstance(error, RunStoppedError):
        return error
    reason = RunStoppedError("store", str(error))
    reason.exit_code, reason.__cause__ = error.exit_code, error
    return reason


def _read(stored: str | None, call: Call[Any]) -> BaseModel | RefusedReplyError | None:
    if stored is None:
        return None
    try:
        return read_reply(stored, call)
    except RefusedReplyError as refusal:
        return refusal


class _Task:
    """A coroutine under way, what it waits for, and where its result goes."""

    __slots__ = (
        "coroutine", "error", "error_slot", "is_closed", "is_done", "order", "parent", "parts", "result", "slot",
        "unfinished",
    )  # fmt: skip

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], order: int, parent: "_Task | None", slot: int
    ) -> None:
        self.coroutine = coroutine
        self.order = order
        self.parent = parent
        self.slot = slot
        self.is_done = False
        self.is_closed = False
        """It waits for what does not come in this run."""
        self.result: Any = None
        self.expect(0)

    def expect(self, parts: int) -> None:
        """Wait for so many parts; their results are collected by slot, and the error of the first slot is kept."""
        self.parts: list[Any] = [None] * parts
        self.unfinished = parts
        self.error: JudgeError | None = None
        self.error_slot = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """What to hand to a coroutine that can go on."""

    task: _Task
    value: Any = None
    error: JudgeError | None = None
