"""What a run looks like on a terminal: progress, and text from others made harmless."""

import re
import time
import unicodedata
from typing import Protocol, TextIO

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    """One line of text in which every control, escape and direction character is shown and has no effect."""
    shown = (_shown(char) if unicodedata.category(char) in _HIDDEN else char for char in readable(text))
    return "".join(shown)


def readable(text: str) -> str:
    """Text from a path or an option that the locale could not decode, as the UTF-8 that it mostly is.

    Python keeps each byte of it as a lone surrogate. Bytes that are not UTF-8 are spelled out, as in `\\xff`.
    """
    return _UNDECODED.sub(_from_bytes, text)


_UNDECODED = re.compile("[\udc80-\udcff]+")


def _from_bytes(found: "re.Match[str]") -> str:
    return found[0].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def carried(text: str, encoding: str | None) -> str:
    """`text` in characters that the encoding has: signs of ours in plain ones, all others spelled out as in `\\xe9`."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return (
            text.translate(_PLAIN).encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")
        )
    return text


_PLAIN = str.maketrans(
    {"★": "*", "…": "...", "–": "-", "−": "-", "“": '"', "”": '"', "÷": "/", "≥": ">=", "█": "#", "·": "."}
)


class Progress(Protocol):
    """Told of every finished row."""

    def advance(self) -> None: ...
    def close(self) -> None: ...


class _ProgressBar:
    """A bar with count, rate and time left, redrawn at most ten times a second, for a terminal."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._done = 0
        self._started = time.monotonic()
        self._drawn = 0.0
        self._draw()

    def advance(self) -> None:
        self._done += 1
        if time.monotonic() - self._drawn >= 0.1:
            self._draw()

    def close(self) -> None:
        self._draw()
        self._stream.write("\n")
        self._stream.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        width = 30
        full = width * self._done // max(1, self._total)
        bar = carried("█" * full + "·" * (width - full), self._stream.encoding)
        self._stream.write(f"\r\x1b[K{bar} {self._done}/{self._total} rows{self._pace()}")
        self._stream.flush()

    def _pace(self) -> str:
        seconds = time.monotonic() - self._started
        if not self._done or seconds <= 0:
            return ""
        rate = self._done / seconds
        left = (self._total - self._done) / rate
        return f", {rate:.1f}/s, {duration(left)} left" if self._done < self._total else f", {rate:.1f}/s"


class _ProgressLines:
    """A plain line now and then, for a log: at every tenth of the rows, and at least half a second apart."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._done = 0
        self._started = self._told = time.monotonic()
        self._next = 1

    def advance(self) -> None:
        self._done += 1
        now = time.monotonic()
        if self._done * 10 >= self._total * self._next and now - self._told >= 0.5:
            self._next = self._done * 10 // max(1, self._total) + 1
            self._told = now
            self._tell()

    def close(self) -> None:
        self._tell()

    def _tell(self) -> None:
        seconds = time.monotonic() - self._started
        what = "row" if self._total == 1 else "rows"
        self._stream.write(f"{self._done:,} of {self._total:,} {what} finished after {duration(seconds)}\n")
        self._stream.flush()


class _Counter:
    """How many there are so far, when nobody knows how many there will be; silent while that takes less than a second.

    On a terminal the line is redrawn and in the end removed; elsewhere there is a line now and then.
    """

    def __init__(self, stream: TextIO, what: str) -> None:
        self._stream = stream
        self._what = what
        self._is_redrawn = stream.isatty()
        self._pause = 0.1 if self._is_redrawn else 10.0
        self._count = 0
        self._next = time.monotonic() + 0.8

    def advance(self) -> None:
        self._count += 1
        if self._count % 64 == 0 and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._pause
            begin, end = ("\r\x1b[K", "") if self._is_redrawn else ("", "\n")
            self._stream.write(f"{begin}{self._what}: {self._count:,} so far{end}")
            self._stream.flush()

    def close(self) -> None:
        if self._is_redrawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class _NoProgress:
    """For --quiet."""

    def advance(self) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""


def counter(stream: TextIO, what: str, *, quiet: bool) -> Progress:
    return _NoProgress() if quiet else _Counter(stream, what)


def progress(total: int, stream: TextIO, *, quiet: bool) -> Progress:
    if quiet:
        return _NoProgress()
    return _ProgressBar(total, stream) if stream.isatty() else _ProgressLines(total, stream)


def _shown(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
