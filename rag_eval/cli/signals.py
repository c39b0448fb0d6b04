"""Signals end the program in order: a run that judges may finish what is in flight, and temporary files go."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from rag_eval.errors import ExitCode, RunStoppedError

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_STOPPING = (
    "\nrag-eval: Stopping: waiting up to 10 s for open calls, then writing the partial report, if any.\n"
)


class Stoppable(Protocol):
    """What judges."""

    @property
    def stop_requested(self) -> bool: ...

    def request_stop(self, reason: RunStoppedError) -> None:
        """May be called from a signal handler."""
        ...


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, outside of judging."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP leave by way of an exception, so that temporary files are removed; the second ends at once.

    Signals that are ignored or handled stay so.
    """

    def leave(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Terminated

    deadly = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in deadly:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in deadly:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def stopping_on_signals(judging: Stoppable) -> Iterator[None]:
    """The first signal lets calls in flight finish and writes a partial report; the second ends at once.

    A signal that is ignored, as SIGHUP is under nohup, stays so.
    """

    def stop(number: int, frame: object) -> None:
        is_users = number == signal.SIGINT
        code = ExitCode.INTERRUPTED if is_users else ExitCode.TERMINATED
        if judging.stop_requested:
            os._exit(code)
        by = "the user" if is_users else f"the signal {signal.Signals(number).name}"
        reason = RunStoppedError("interrupted", f"interrupted by {by}")
        reason.exit_code = code
        judging.request_stop(reason)  # before the message: a second signal may come while it is written
        with suppress(OSError):  # not by a stream: this may interrupt a write to it
            os.write(2, _STOPPING.encode())

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
