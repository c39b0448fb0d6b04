"""Words for the person at the terminal. Nothing else in the package prints."""

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import click

from rag_eval.cli.terminal import carried, counter, printable
from rag_eval.errors import OutputError


def say(line: str, **style: Any) -> None:
    """A line of the result, on standard output; `style` is click's, such as bold=True, and shows on a terminal only.

    Raises OutputError if standard output cannot take it.
    """
    click.echo(_painted(_harmless(without_secrets(line), sys.stdout), sys.stdout, style))


def remark(line: str, **style: Any) -> None:
    """A line about a result that is in a file, whether it can be said or not."""
    if getattr(sys.stdout, "problems", None):
        return
    try:
        say(line, **style)
    except OutputError as unsaid:
        warn(str(unsaid))


def warn(sentence: str) -> None:
    """A warning or an error, on standard error."""
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
def standard_streams() -> Iterator[None]:
    """Meanwhile, whatever prints finds streams that can be written to, in whatever state they were handed over."""
    _occupy_descriptors()
    out, err = (stream or _Nowhere() for stream in (sys.stdout, sys.stderr))
    safe_out = cast(TextIO, _Stream(out, [], is_terminal=out.isatty()))
    safe_err = cast(TextIO, _Stream(err, None, is_terminal=err.isatty()))
    with redirect_stdout(safe_out), redirect_stderr(safe_err):
        yield


def _occupy_descriptors() -> None:
    """Give the numbers of standard streams that are closed to nothing.

    The next file that is opened would get such a number, and with it all that is printed by whatever knows no better.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free


class _Nowhere(StringIO):
    """In place of a stream that is missing."""

    encoding, errors = "utf-8", "strict"

    def write(self, text: str) -> int:
        return len(text)


class _Stream:
    """Standard output or standard error, which no run depends on: the report matters more than being heard.

    If nobody listens any more (`| head -1`, a closed terminal) or the disk is full, the rest is said to nobody. The
    stream itself is redirected, so that its last flush cannot fail.
    """

    def __init__(self, stream: TextIO | BinaryIO, problems: list[str] | None, *, is_terminal: bool) -> None:
        """`problems` is where to note why a result is lost; None for what is no result."""
        self._stream: Any = stream
        self._is_terminal = is_terminal
        self.problems = problems

    @property
    def buffer(self) -> "_Stream":
        """For bytes, and for all that click says in an ASCII locale."""
        return _Stream(self._stream.buffer, self.problems, is_terminal=self._is_terminal)

    def write(self, data: str | bytes) -> int:
        with self._forgiven():
            self._stream.write(data)
        return len(data)

    def flush(self) -> None:
        with self._forgiven():
            self._stream.flush()

    @contextmanager
    def _forgiven(self) -> Iterator[None]:
        """Raises OutputError, then and from then on, if a part of the result is lost."""
        try:
            yield
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            is_unheard = self._is_terminal or isinstance(error, ConnectionError)
            if self.problems is not None and not is_unheard:
                self.problems.append(error.strerror or str(error))
        if self.problems:
            raise OutputError(
                f"standard output: cannot be written: {self.problems[0]}; free some space, or send it to another place"
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Gives what is to be called for each of many things, and says on standard error how many there are so far."""
    progress = counter(sys.stderr, what, quiet=quiet)
    try:
        yield progress.advance
    finally:
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
    if not isinstance(sys.unraisablehook, partial):  # of an earlier run in this process
        sys.unraisablehook = partial(_say_unless_reported, sys.unraisablehook)


def _say_unless_reported(
    say: "Callable[[sys.UnraisableHookArgs], object]", unraisable: "sys.UnraisableHookArgs"
) -> None:
    if not isinstance(unraisable.exc_value, OSError):
        say(unraisable)


class _HarmlessFormatter(logging.Formatter):
    """For tracebacks as well, whose messages may quote anything."""

    def format(self, record: logging.LogRecord) -> str:
        lines = without_secrets(super().format(record), is_error=True).split("\n")
        return "\n".join(_harmless(line, sys.stderr) for line in lines)


def program_words() -> list[str]:
    """The words by which this program was started, as they can be used again in the current folder."""
    called = sys.argv[0]
    if not called.endswith(".py"):
        name = Path(called).stem
        return [name if shutil.which(name) or called == name else called]
    is_module = Path(called).name == "__main__.py"
    return [_python(), *(["-m", "rag_eval"] if is_module else [called])]


def _python() -> str:
    """A short name for this Python where the shell finds it by that, else its path."""
    for name in ("python", "python3"):
        if shutil.which(name) == sys.executable:
            return name
    here = Path.cwd()
    python = Path(sys.executable)
    return str(python.relative_to(here) if python.is_relative_to(here) else python)


def command_line(*words: str | Path) -> str:
    """A command as it can be pasted into a shell."""
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(list(map(str, words)))
    return shlex.join(map(str, words))


def same_command_with(roles: Sequence[str]) -> str:
    """The command that was given, and the roles of columns with --map."""
    words = sys.argv[1:]
    if sum(role.endswith("=bot") for role in roles) > 1:  # several bots have their names from their columns
        pairs = zip(["", *words], words, strict=False)
        words = [word for before, word in pairs if "--bot-name" not in (before, word.partition("=")[0])]
    place = words.index("--") if "--" in words else len(words)
    options = [word for role in roles for word in ("--map", role)]
    return command_line(*program_words(), *words[:place], *options, *words[place:])
