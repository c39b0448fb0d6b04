"""Words for the person at the terminal. Nothing else in the package prints."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import click

from rag_eval.cli.terminal import carried, counter, printable


def say(line: str, **style: Any) -> None:
    """A line of the result, on standard output; `style` is click's, such as bold=True, and shows on a terminal only."""
    with speaking_to(sys.stdout):
        click.echo(_painted(_harmless(without_secrets(line), sys.stdout), sys.stdout, style))


def warn(sentence: str) -> None:
    """A warning or an error, on standard error."""
    with speaking_to(sys.stderr):
        name = _painted("rag-eval:", sys.stderr, {"fg": "yellow"})
        click.echo(f"{name} {_harmless(without_secrets(sentence, is_error=True), sys.stderr)}", err=True)


def _painted(text: str, stream: TextIO, style: Mapping[str, Any]) -> str:
    """With colours on a terminal; plain in a pipe, on a dumb terminal and if NO_COLOR is set (no-color.org)."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if is_plain or not style or not text else click.style(text, **style)


def hide(secrets: Iterable[str]) -> None:
    """From now on, [key] is shown in place of each secret and, in warnings, errors and logs, of pieces of it."""
    _hidden.update(secrets)


_hidden: set[str] = set()


def _harmless(text: str, stream: TextIO) -> str:
    """One line without control characters, in characters that the stream can carry."""
    return carried(printable(text), getattr(stream, "encoding", None))


def without_secrets(text: str, *, is_error: bool = False) -> str:
    """`text` with [key] in place of every secret that is to be hidden and, in an error, of pieces of it."""
    if not _hidden:
        return text
    from rag_eval.judge.masking import masked, without_keys

    return masked(text, _hidden) if is_error else without_keys(text, _hidden)


@contextmanager
def speaking_to(stream: TextIO) -> Iterator[None]:
    """Whoever listened may be gone (`| head -1`, a closed terminal): the rest is then said to nobody.

    The report matters more than being heard. The stream itself is redirected, so that its last flush cannot fail.
    """
    try:
        yield
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Gives what is to be called for each of many things, and says on standard error how many there are so far."""
    progress = counter(sys.stderr, what, quiet=quiet or sys.stderr is None)

    def advance() -> None:
        with speaking_to(sys.stderr):
            progress.advance()

    try:
        yield advance
    finally:
        with speaking_to(sys.stderr):
            progress.close()


def set_up_logging(debug: bool) -> None:
    """Our own log alone: the clients' debug logs would show headers and prompts."""
    handler = logging.StreamHandler()
    form = "%(asctime)s %(name)s: %(message)s" if debug else "rag-eval: %(message)s"
    handler.setFormatter(_HarmlessFormatter(form))
    logger = logging.getLogger("rag_eval")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    _say_failures_once()


def _say_failures_once() -> None:
    """A file that cannot be written fails again when its object is cleared away; that has been reported already."""
    others = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, OSError):
            others(unraisable)

    sys.unraisablehook = hook


class _HarmlessFormatter(logging.Formatter):
    """For tracebacks as well, whose messages may quote anything."""

    def format(self, record: logging.LogRecord) -> str:
        lines = without_secrets(super().format(record), is_error=True).split("\n")
        return "\n".join(_harmless(line, sys.stderr) for line in lines)
