"""Texts and numbers as a reader sees them: nothing that XML forbids or longer than a cell, and one way to round."""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

CELL_LIMIT = 32_767
"""What a cell can hold, in UTF-16 units."""

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_LINE_END = re.compile("\r\n?")
_TO_BE_CHANGED = re.compile(f"{_FORBIDDEN.pattern[:-1]}\r]")
_WHITESPACE = re.compile(r"\s+")


def printable(text: str) -> str:
    """`text` with U+FFFD for each character that XML cannot carry, and line ends as line feeds."""
    if not _TO_BE_CHANGED.search(text):  # nearly always, and this is asked of every text
        return text
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", _LINE_END.sub("\n", text))


def without_half_pairs(text: str) -> str:
    """`text` with U+FFFD for half a surrogate pair, which a JSON escape can spell but UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def formula_safe(text: str) -> str:
    """`text` with an apostrophe before it if a spreadsheet program could read it as a formula.

    The first characters are those that OWASP lists (CSV injection), and their full-width forms.
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


_FORMULA_STARTS = tuple("=+-@\t\r\n\0＝＋－＠")


def fits_cell(text: str) -> bool:
    return len(text) <= CELL_LIMIT // 2 or utf16_units(text) <= CELL_LIMIT


def cut_to_cell(text: str) -> str:
    """`text`, cut with a visible mark when it is longer than a cell; expects printable text."""
    if fits_cell(text):
        return text
    mark = f" […] (cut: {len(text):,} characters in all)"
    kept = text.encode("utf-16-le")[: 2 * (CELL_LIMIT - utf16_units(mark))]
    return kept.decode("utf-16-le", "ignore") + mark  # "ignore" drops half a surrogate pair


def shorten(text: str, limit: int) -> str:
    """`text` on one line and in at most `limit` characters, with an ellipsis where it was cut."""
    line = _WHITESPACE.sub(" ", printable(text)).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def join_chunks(chunks: tuple[str, ...]) -> str:
    """The retrieved passages as one text: a single one as it is, several numbered by rank."""
    if len(chunks) == 1:
        return chunks[0]
    return "\n\n".join(f"[{rank}] {chunk}" for rank, chunk in enumerate(chunks, 1))


def enumerated(names: Sequence[str], conjunction: str = "and") -> str:
    """'A, B and C', or 'A, B, C and 12 others' for more than _MOST_NAMES; at least one name."""
    if len(names) > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1:,} others"]
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}" if others else last


_MOST_NAMES = 6


def counted(number: int, noun: str, several: str = "") -> str:
    """'1 case' or '1,200 cases'; `several` is the plural if it has no s at its end."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def decimals(value: float | None, digits: int = 2, *, is_signed: bool = False) -> str:
    """`value` rounded as Excel shows it: half up, seen in 15 digits, so that 0.725 is 0.73. '–' for None.

    `is_signed` puts a plus before what is above 0; a minus is U+2212, and 0 has no sign.
    """
    if value is None:
        return "–"
    number = _rounded(value, digits)
    sign = "−" if number < 0 else "+" if is_signed and number > 0 else ""
    return f"{sign}{abs(number):f}"


def amount(value: float) -> str:
    """An amount of any size with at least three digits that count: '1,240', '12.4', '0.0021'; a minus is U+2212."""
    size = math.floor(math.log10(abs(value))) if value else 0
    digits = min(max(0, 2 - size), _MOST_DIGITS)
    shown = f"{_rounded(abs(value), digits):,f}"
    whole, dot, fraction = shown.partition(".")
    return f"{'−' if value < 0 else ''}{whole}{dot}{fraction.rstrip('0')}".rstrip(".")


_MOST_DIGITS = 9


def _rounded(value: float, digits: int) -> Decimal:
    return Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def digits_that_differ(pairs: Iterable[tuple[float, float]]) -> int:
    """How many decimals, 2 to 4, tell the two numbers of each pair apart; numbers equal in 4 count as equal."""
    unequal = [(one, other) for one, other in pairs if decimals(one, 4) != decimals(other, 4)]
    return next(n for n in (2, 3, 4) if all(decimals(one, n) != decimals(other, n) for one, other in unequal))


def digits_beside(threshold: float, value: float) -> int:
    """How many decimals show that `value` is below `threshold`, or is not: 2 or 3."""
    return 3 if (_rounded(value, 2) < threshold) != (value < threshold) else 2


def percent(share: float, digits: int = 0) -> str:
    """A share, 0..1, in per cents with so many decimals."""
    return f"{decimals(100 * share, digits)}%"


def percent_range(low: float, high: float) -> str:
    """'51–65%'; with a decimal if an end would look like 50% and is not: then the win rate is on one side of it."""
    digits = 1 if any(percent(end) == "50%" and abs(end - 0.5) > 1e-9 for end in (low, high)) else 0
    return f"{percent(low, digits).removesuffix('%')}–{percent(high, digits)}"


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
