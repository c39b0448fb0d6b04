"""The errors of RAG Eval as one tree, and the exit code of the process for each branch.

RagEvalError
├── InputError          a file or an option of the user is wrong; nothing was paid        exit 2
│   ├── SettingsError   config.ini, environment or command line
│   └── TableError      the spreadsheet
├── OutputError         the report or another output cannot be written                    exit 5
├── StoreError          the store of paid replies cannot be read or written               exit 5
├── LockedError         another run writes to the same place; the same command works later  exit 75
├── RunStoppedError     no further call can succeed, or a limit was reached               exit 4
└── JudgeError          one call has no usable reply; only its score fails
    └── RefusedReplyError   a reply came whole, and is not taken
"""

import errno
import sys
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """The process's exit codes. They are public: scripts and CI rely on them."""

    COMPLETE = 0
    GATE_FAILED = 1
    USAGE = 2
    LOW_COVERAGE = 3
    STOPPED = 4
    IO_FAILED = 5
    NOT_FINISHED = 75
    """The same command works, or goes on, later: another run writes the report, or batches are waited for."""
    INTERRUPTED = 130
    TERMINATED = 143


NOT_RUN = "not_run"
"""Code of a call that was never made, because the run stopped before its turn."""

OVER_LIMIT = "over_limit"
"""Code of a call that was not sent, because its prompt is longer than the user allows."""

EXCEEDS_RATE_LIMIT = "exceeds_rate_limit"
"""Code of a call that is larger than what the endpoint takes in a minute, or in a day."""

CONTENT_CODES = frozenset(
    {"blocked_by_filter", "output_filtered", "refused", "too_long", "truncated", "loop", OVER_LIMIT}
)
"""Failures that are caused by the judged text, not by the endpoint."""

UNPARSEABLE, INCOMPLETE, ECHO = "unparseable", "incomplete", "echo"
REFUSALS = {
    UNPARSEABLE: "the judge's reply does not fit its schema",
    INCOMPLETE: "the judge's reply leaves out what it was asked about",
    ECHO: "the judge repeated the prompt's example",
}
"""Codes of replies that came whole and are not taken, and how messages begin that name them."""


def how_to_judge_again(codes: Collection[str]) -> str:
    """What to do about failures with these codes. What the model itself said is kept: that is paid for once."""
    kept = CONTENT_CODES - {OVER_LIMIT} | REFUSALS.keys()
    if {*codes} == {EXCEEDS_RATE_LIMIT}:
        return "Raise the judge's tokens per minute, and run the same command again to judge them."
    if kept.isdisjoint(codes):
        return "Run the same command again to judge them."
    if kept.issuperset(codes):
        return "Add --retry-errors to the same command to retry refused, blocked or unreadable replies."
    return (
        "Run the same command again to judge them; add --retry-errors to retry refused, blocked or unreadable "
        "replies."
    )


def how_to_install(extra: str = "") -> str:
    """The command that installs RAG Eval, or one of the extras in pyproject.toml.

    It names the folder, not a package: on package indexes, similar names belong to other projects.
    """
    place = f"'.[{extra}]'" if extra else "."
    return f"pip install {place} in RAG Eval's folder"


def describe_missing(error: BaseException) -> str:
    """The package that is missing and the remedy, in one line; empty for every other error."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package in ("", __package__):
        return ""
    return (
        f"the package {package} is not installed for {sys.executable}; install everything with {how_to_install()}, "
        "or use the Python of the environment that has it (.venv/bin/python; on Windows .venv\\Scripts\\python)"
    )


def describe_obstacle(error: BaseException) -> str:
    """What keeps any command from working, and the remedy, in one line; empty for every other error."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{str(error.filename)[:60]}…: the name is too long for a file; choose a shorter one"
    return describe_missing(error)


class RagEvalError(Exception):
    """Base of every error that the command line reports in one line and without a traceback."""

    exit_code: ExitCode = ExitCode.STOPPED


class InputError(RagEvalError):
    """The user's input cannot be used. `problems` has every problem found, one line each."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


def first_of(messages: Sequence[str], count: int | None = None) -> list[str]:
    """The first messages, as many as somebody would read, and how many more there are: `count` in all, if given."""
    more = (len(messages) if count is None else count) - MOST_LISTED
    return [*messages[:MOST_LISTED], *([f"and {more:,} more like these"] if more > 0 else [])]


MOST_LISTED = 20
"""Problems or warnings of one kind: nobody reads more."""


class SettingsError(InputError):
    """A value in config.ini, the environment or on the command line is not allowed."""


class TableError(InputError):
    """The spreadsheet cannot be read, or lacks something that an evaluation needs.

    `roles` is what --map would take to make it readable, where that is known.
    """

    def __init__(self, problems: str | Iterable[str], roles: Iterable[str] = ()) -> None:
        super().__init__(problems)
        self.roles = tuple(roles)


class OutputError(RagEvalError):
    """An output file cannot be written."""

    exit_code = ExitCode.IO_FAILED

    @classmethod
    def no_temporary_space(cls, name: object, error: OSError) -> Self:
        """`name` cannot be kept in temporary files."""
        from tempfile import gettempdir

        return cls(
            f"writing {name} to temporary disk space failed: {error.strerror or error}; free some space in "
            f"{gettempdir()}, or set TMPDIR to another folder"
        )


class StoreError(RagEvalError):
    """The store of paid replies cannot be read or written."""

    exit_code = ExitCode.IO_FAILED


class LockedError(RagEvalError):
    """Another run holds the lock on the output or the cache."""

    exit_code = ExitCode.NOT_FINISHED


class RunStoppedError(RagEvalError):
    """The run cannot continue. `code` is stable and machine-readable; the message is for people."""

    exit_code = ExitCode.STOPPED

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class JudgeError(RagEvalError):
    """One judge call has no usable reply. `code` is stable and machine-readable."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class RefusedReplyError(JudgeError):
    """A reply came whole, and is not taken. It was paid for, so it is stored as it is; whoever reads it refuses it."""

    def __init__(self, code: str, problem: str, text: str) -> None:
        """`code` is one of REFUSALS; `problem` says what is wrong, without quoting `text`, the reply."""
        super().__init__(code, f"{REFUSALS[code]}: {problem}")
        self.problem = problem
        self.text = text
        self.attempts = 1
        self.prompt_tokens = 0
        self.completion_tokens = 0
