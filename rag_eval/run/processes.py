"""Worker processes of this machine under supervision: one that dies costs the item that it worked on.

`Processes` starts workers, gives each of them items over a pipe, and takes the results back. What crosses the pipes are
values that `store.codec` encodes; it knows nothing of what an item is. A worker is a fresh interpreter, or a fork of
this process where that is wanted and safe: a fork has imported already what takes a fresh one a second.

A worker ends when its standard input ends, so none outlives the process that started it, however that one ended.
"""

import contextlib
import gc
import itertools
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, get_type_hints

from rag_eval.errors import ExitCode, RagEvalError, RunStoppedError
from rag_eval.store.codec import decode, encode, read_record, write_record

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

log = logging.getLogger(__name__)

_MOST_DEATHS = 3
"""So many workers may die on one item, or one after the other before they are ready."""
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; from rag_eval.run.processes import serve; serve(sys.argv[1])"
)
_GRACE = 1.0  # seconds that a worker has to finish what it does when nobody listens any more
_HEED = 1.0  # seconds after which a signal is heeded that another thread than the main one has received
_PATIENCE = 5.0  # seconds that a worker without work has to end


class WorkerError(RagEvalError):
    """A worker process failed on an item, died on it again and again, or cannot be started."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.STOPPED) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class StopSwitch:
    """A request that whatever is judged ends early; what begins later ends at once."""

    def __init__(self) -> None:
        self._reason: RunStoppedError | None = None
        self._heed: Callable[[RunStoppedError], None] | None = None

    @property
    def stop_requested(self) -> bool:
        return self._reason is not None

    def request_stop(self, reason: RunStoppedError) -> None:
        """May be called from a signal handler or another thread."""
        self._reason = reason
        if self._heed:
            self._heed(reason)

    @contextlib.contextmanager
    def heeded_by(self, heed: Callable[[RunStoppedError], None]) -> Iterator[None]:
        """`heed` is called with the reason when there is one."""
        self._heed = heed
        if self._reason:
            heed(self._reason)
        try:
            yield
        finally:
            self._heed = None


THIS_PROCESS = StopSwitch()
"""Of what this process judges: for a signal, or for the process that it works for."""

_STOP = b""
"""What a worker is sent in the place of an item when the others stop."""


class Processes:
    """A fixed number of worker processes. `close` ends them; as a context it does so at the end."""

    def __init__(
        self, task: str, number: int, *, result: Any = Any, ahead: int = 0, forks: bool = False
    ) -> None:
        """Start `number` workers, which have the module of `task`, 'module:function', and wait for `open`.

        `result` is the type of a result, and an item has the type that the annotation of the parameter says.

        `ahead` items wait in each worker while it works on one: 0 for items that take seconds, 1 for items that take
        milliseconds. With `forks`, workers are copies of this process where that is safe; what it holds open or locked
        at this moment they hold as well. Raises WorkerError if no process can be started.
        """
        self._task = task
        self._reply = tuple[result | None, str, int]
        self._ahead = ahead
        self._news: queue.SimpleQueue[tuple[_Worker, bytes | None] | None] = queue.SimpleQueue()
        self._false_starts = 0
        self._give_up_at: float | None = None
        self._workers: list[_Worker] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            is_safe = forks and _may_fork()
            for _ in range(number):
                self._workers.append(self._start(forks=is_safe))
            for worker in self._workers:
                worker.listen()
            undo.pop_all()

    def open(self, spec: Any) -> "Processes":
        """Have each worker call the task with `spec`; it gets a function of one item, safe to run twice on an item."""
        self._spec: bytes = encode(spec)
        for worker in self._workers:
            worker.send(self._spec)
        return self

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def map(self, items: Iterable[tuple[str, Any]], *, in_order: bool = True) -> Iterator[Any]:
        """The result of each item, in the order of the items or as they come.

        An item is its name, as messages say it ('rows 2 to 51'), and what is handed to the worker. It is taken from
        `items` when there is room for it, so few are in memory at a time. Raises WorkerError, which names the item,
        if the function raised an exception or if three workers died on it.
        """
        source = (_Item(name, encode(value)) for name, value in items)
        under_way: deque[_Item] = deque()
        while True:
            if self._give_up_at is None:
                for item in itertools.islice(source, self._room(under_way, in_order=in_order)):
                    under_way.append(item)
                    min(self._workers, key=lambda worker: len(worker.items)).give(item)
            if not under_way:
                return
            done = _first_done(under_way, in_order=in_order)
            if done is not None:
                under_way.remove(done)
                assert done.result is not None  # noqa: S101 - it is done
                yield self._outcome(done.name, done.result)
            elif not self._take_news():
                return

    def stop(self, seconds: float) -> None:
        """Take no more items, and give up what is not done after so many seconds: `map` ends then.

        What the workers judge may end early. May be called from a signal handler or another thread.
        """
        self._give_up_at = time.monotonic() + seconds
        for worker in self._workers:
            worker.send(_STOP)
        self._news.put(None)

    def end(self) -> None:
        """Let the workers end, at once those that still work. Nothing can be given to them any more."""
        for worker in self._workers:
            worker.end()

    def close(self) -> None:
        """End the workers and wait until they are gone."""
        self.end()
        for worker in self._workers:
            worker.wait()

    @property
    def ids(self) -> tuple[int, ...]:
        """Process ids of the workers that run now."""
        return tuple(worker.process.pid for worker in self._workers)

    def _start(self, *, forks: bool) -> "_Worker":
        try:
            process = _Fork(self._task, self._workers) if forks else _fresh(self._task)
        except OSError as error:
            raise WorkerError(f"A worker process cannot be started: {error}") from error
        return _Worker(process, self._news)

    def _room(self, under_way: Iterable["_Item"], *, in_order: bool) -> int:
        """So many more items can be given out; finished ones that wait for an earlier one are few as well."""
        at_once = len(self._workers) * (1 + self._ahead)
        unfinished = finished = 0
        for item in under_way:
            unfinished += item.result is None
            finished += item.result is not None
        return at_once - unfinished if not in_order or finished < 2 * at_once else 0

    def _outcome(self, name: str, frame: bytes) -> Any:
        value, problem, code = decode(self._reply, frame)
        if problem:
            raise WorkerError(f"{name}: {problem}", ExitCode(code))
        return value

    def _take_news(self) -> bool:
        """Wait for one thing that a worker did; False when the time to wait after a stop is over."""
        patience = None if self._give_up_at is None else max(0.0, self._give_up_at - time.monotonic())
        try:
            news = self._news.get(timeout=_HEED if patience is None else patience)
        except queue.Empty:
            return patience is None
        if news is None:
            return True
        worker, frame = news
        if frame is None:
            self._replace(worker)
        elif worker.is_ready:
            worker.items.popleft().result = frame
        else:
            worker.is_ready = True
            self._false_starts = 0
            self._outcome("A worker process", frame)
        return True

    def _replace(self, dead: "_Worker") -> None:
        """A fresh worker for one that died, with what that one had to do."""
        how = _how_it_ended(dead.wait())
        if not dead.is_ready:
            self._false_starts += 1
            if self._false_starts == _MOST_DEATHS:
                raise WorkerError(f"Worker processes cannot be started: the last one {how}")
        elif dead.items:
            dead.items[0].deaths += 1
            if dead.items[0].deaths == _MOST_DEATHS:
                raise WorkerError(
                    f"{dead.items[0].name}: {_MOST_DEATHS} worker processes died on this part; the last one {how}. "
                    "If memory is short, use fewer processes."
                )
        what = f"does {dead.items[0].name} again" if dead.is_ready and dead.items else "takes its place"
        hint = "If memory is short, use fewer processes."
        log.warning("Worker process %d %s; another one %s. %s", dead.process.pid, how, what, hint)
        fresh = self._start(forks=False)  # there are threads by now
        self._workers[self._workers.index(dead)] = fresh
        fresh.listen()
        fresh.send(self._spec)
        if self._give_up_at is not None:
            fresh.send(_STOP)
        for item in dead.items:
            fresh.give(item)


@dataclass(slots=True, eq=False)
class _Item:
    name: str
    frame: bytes
    deaths: int = 0
    result: bytes | None = None


def _first_done(under_way: deque[_Item], *, in_order: bool) -> _Item | None:
    candidates = itertools.islice(under_way, 1) if in_order else under_way
    return next((item for item in candidates if item.result is not None), None)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


@dataclass(slots=True, eq=False)
class _Worker:
    """One process seen from outside. Two threads write to it and read from it, so that neither side waits."""

    process: "subprocess.Popen[bytes] | _Fork"
    news: "queue.SimpleQueue[tuple[_Worker, bytes | None] | None]"
    items: deque[_Item] = field(default_factory=deque)
    """Given and not finished; it works on the first."""
    is_ready: bool = False
    _outbox: "queue.SimpleQueue[bytes | None]" = field(init=False, default_factory=queue.SimpleQueue)

    def listen(self) -> None:
        """From now on it can be talked to. Starts threads, so this process can no longer fork safely."""
        for target in (self._write, self._read):
            threading.Thread(target=target, name=f"worker {self.process.pid}", daemon=True).start()

    def send(self, frame: bytes) -> None:
        self._outbox.put(frame)

    def give(self, item: _Item) -> None:
        self.items.append(item)
        self.send(item.frame)

    def end(self) -> None:
        if self.items:
            self.process.kill()
        self._outbox.put(None)

    def wait(self) -> int:
        """Until it is gone; its exit code."""
        try:
            return self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _write(self) -> None:
        pipe = self.process.stdin
        assert pipe is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(OSError):  # who died is known from the other pipe
            while (frame := self._outbox.get()) is not None:
                write_record(pipe, frame)
                pipe.flush()
        with contextlib.suppress(OSError):
            pipe.close()

    def _read(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None  # noqa: S101 - it was asked for
        with pipe:
            while (frame := _received(pipe)) is not None:
                self.news.put((self, frame))
        self._outbox.put(None)
        self.news.put((self, None))


def _fresh(task: str) -> "subprocess.Popen[bytes]":
    # A session of its own: what a terminal signals is for the process that it started.
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    command = [sys.executable, "-c", _START, task, *sys.path]
    return subprocess.Popen(  # noqa: S603 - this interpreter
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **apart
    )


def _may_fork() -> bool:
    """A fork copies one thread only: what other threads hold locked would stay so. Elsewhere than on Linux, system
    libraries do not allow it.
    """
    import multiprocessing

    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return False
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1
    return False


class _Fork:
    """A copy of this process that serves; to be used like a Popen."""

    def __init__(self, task: str, others: "Iterable[_Worker]") -> None:
        """`others` are workers whose pipes this one must not keep open."""
        import multiprocessing

        with contextlib.suppress(Exception):  # what is wrong with it is said when it is called
            function_named(task)
        (inbox, to_worker), (from_worker, outbox) = os.pipe(), os.pipe()
        self.stdin: IO[bytes] | None = os.fdopen(to_worker, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(from_worker, "rb")
        pipes: list[IO[bytes] | None] = [self.stdin, self.stdout]
        for other in others:
            pipes += [other.process.stdin, other.process.stdout]
        forking: Any = multiprocessing.get_context("fork")  # its type is another on Windows
        closing = [pipe.fileno() for pipe in pipes if pipe]
        self._process: BaseProcess = forking.Process(
            target=_serve_as_fork, args=(task, inbox, outbox, closing), daemon=True
        )
        try:
            with _without_signals():
                self._process.start()
        finally:
            os.close(inbox)
            os.close(outbox)
        self.pid = self._process.pid or 0

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code; the negative number of the signal that ended it. Raises TimeoutExpired."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("worker", seconds or 0.0)
        return self._process.exitcode


@contextlib.contextmanager
def _without_signals() -> Iterator[None]:
    """Signals come afterwards: what a handler raises in the middle of a fork, Python ignores."""
    if sys.platform == "win32":  # where nothing forks
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _received(pipe: IO[bytes]) -> bytes | None:
    """None when nothing more comes that can be read."""
    try:
        return read_record(pipe)
    except (OSError, ValueError):
        return None


# In a worker process


def _serve_as_fork(task: str, inbox: int, outbox: int, others: Iterable[int]) -> None:
    for descriptor in others:
        os.close(descriptor)
    if sys.platform != "win32":  # where it never runs
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(inbox, 0)
    os.dup2(outbox, 1)
    os.close(inbox)
    os.close(outbox)
    gc.freeze()
    serve(task)


def serve(task: str) -> None:
    """What a worker process runs: 'module:function' once, then its function on each item, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000, 50, 100)
    replies = _private_output()
    inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(inbox,), daemon=True).start()
    with contextlib.suppress(Exception):  # what is wrong with it is said when it is called
        function_named(task)
    do, kind = None, Any
    while (frame := inbox.get()) is not None:
        try:
            if do is None:
                do, result = function_named(task)(decode(Any, frame)), None
                kind = next(iter(get_type_hints(do).values()), Any)
            else:
                result = do(decode(kind, frame))
            reply = encode((result, "", 0))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other process ends the run with it
            reply = encode((None, *_problem(error)))
        try:
            write_record(replies, reply)
            replies.flush()
        except BrokenPipeError:
            os._exit(0)  # nobody listens, and what the buffer holds cannot be written at the end either


def function_named(name: str) -> Callable[..., Any]:
    """What 'module:function' names."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _private_output() -> IO[bytes]:
    """The pipe to the process that started this one; what anything prints goes to standard error instead."""
    try:
        os.fstat(2)
    except OSError:  # there is none, so that the copy of the pipe would take its number
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _receive(inbox: "queue.SimpleQueue[bytes | None]") -> None:
    """Take in frames until the input ends; then nobody wants a result any more."""
    pipe = os.fdopen(os.dup(0), "rb")
    while (frame := _received(pipe)) is not None:
        if frame == _STOP:
            THIS_PROCESS.request_stop(RunStoppedError("interrupted", "the run was interrupted"))
        else:
            inbox.put(frame)
    inbox.put(None)
    time.sleep(_GRACE)
    os._exit(0)


def _problem(error: Exception) -> tuple[str, int]:
    """The message of an error of ours with its exit code; of any other one what shows where it is."""
    if isinstance(error, RagEvalError):
        return str(error), int(error.exit_code)
    where = "".join(traceback.format_exception(error))
    log.debug("worker process failed\n%s", where)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"internal error ({type(error).__name__}: {error}, {place})", int(ExitCode.STOPPED)
