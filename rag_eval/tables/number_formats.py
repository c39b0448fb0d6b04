"""What the number format of a spreadsheet's cell shows: units next to its number, such as € or ms, and shares. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import groupby

from rag_eval.tables.cells import Measured, TimeOfDay
from rag_eval.tables.names import COST, DOLLAR, SPENT, TOKENS, unit_named

PERCENT = "%"
_YEN = "¥"
_PARTS = re.compile(
    r"""
    (?P<end>;)
    | "(?P<quoted>[^"]*)" | \\(?P<escaped>.)
    | \[\$(?P<currency>[^\]-]*)(?:-(?P<place>[0-9a-f]{1,8}))?[^\]]*\]
    | (?P<skipped>[_*]. | \[[^\]]*\])
    | (?P<number>General | E[+-] | [0\#?.,/@])
    | (?P<plain>.)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Parts of a format (ECMA-376, part 1, 18.8.31): `_x` is as wide as an x, `*x` fills the cell with it."""
_SCALED = re.compile(r"[0#?],+(?:\.|\Z)")
"""Digits whose number is shown in thousands."""
_CONDITIONS = ("[<", "[>", "[=")
_AROUND = " \u00a0\u202f()+-−:/~'"
"""Characters around a unit that are not part of it."""
_OF_PLACES = {
    0x409: "USD", 0x540A: "USD", 0x1009: "CAD", 0xC0C: "CAD", 0xC09: "AUD", 0x1409: "NZD", 0x4809: "SGD",
    0x1004: "SGD", 0xC04: "HKD", 0x3C09: "HKD", 0x80A: "MXN", 0x411: "JPY", 0x804: "CNY", 0x41D: "SEK", 0x414: "NOK",
    0x814: "NOK", 0x406: "DKK", 0x415: "PLN", 0x405: "CZK", 0x40E: "HUF", 0x41F: "TRY", 0x436: "ZAR", 0x1C09: "ZAR",
    0x416: "BRL", 0x807: "CHF", 0x100C: "CHF", 0x810: "CHF", 0x412: "KRW",
}  # fmt: skip
"""By the place of a currency (MS-LCID), for signs such as $ and kr that several countries have."""


@lru_cache(maxsize=1_000)
def shown_unit(code: str) -> str:
    """The unit in a number format, by its section for numbers above 0; '' for none.

    It is a currency as `unit_named` has it, or the sign of another currency, a unit of time, `tokens`, or PERCENT. If
    the sections have conditions, as in `[=0]"free";$0.00`, it is that of the first one with a unit.
    """
    for section in _sections(code):
        unit = _unit_of([*_shown(section)])
        if unit or not any(part[0].startswith(_CONDITIONS) for part in section):
            return unit
    return ""


def _sections(code: str) -> Iterator[list[re.Match[str]]]:
    section: list[re.Match[str]] = []
    for part in _PARTS.finditer(code):
        if part["end"]:
            yield section
            section = []
        else:
            section.append(part)
    yield section


def _unit_of(parts: Sequence[tuple[str, str]]) -> str:
    """By the parts of a section with their kinds."""
    texts = ("".join(text for _, text in its) for kind, its in groupby(parts, _is_number) if not kind)
    words = [word for text in texts if (word := text.strip(_AROUND))]
    found = [text for kind, text in parts if kind == "currency"]
    if not found and any(PERCENT in word for word in words):
        return PERCENT
    found = found or [money for word in words if (money := _money(word))]
    if len(found) > 1:  # as in $ 0.00 "USD"
        found = [money for money in found if money != DOLLAR]
    is_scaled = _SCALED.search("".join(text for kind, text in parts if kind == "number"))
    if not found and not is_scaled:  # what is shown in thousands says nothing of the number itself
        found = [unit for word in words for role in SPENT if (unit := unit_named(role, word))]
    return " ".join(dict.fromkeys(found))


def _shown(section: Sequence[re.Match[str]]) -> Iterator[tuple[str, str]]:
    """Kind and text of each part of a section, but for those that show nothing."""
    for part in section:
        kind = str(part.lastgroup)
        if kind in ("currency", "place"):
            if sign := part["currency"].strip(_AROUND):
                yield "currency", currency(sign, int(part["place"] or "0", 16) & 0xFFFF)
        elif kind != "skipped":
            yield ("number" if kind == "number" else "text"), part[kind]


def _is_number(part: tuple[str, str]) -> bool:
    return part[0] != "text"


def currency(sign: str, place: int = 0) -> str:
    """The currency of a sign, such as kr, in the country with a number of MS-LCID; the sign itself if it is unknown."""
    known = unit_named(COST, sign)
    return known if known and known not in (DOLLAR, _YEN) else _OF_PLACES.get(place) or known or sign


def _money(word: str) -> str:
    """The currency that a text of a format is; '' for any other text."""
    known = unit_named(COST, word)
    if known in TOKENS:
        return ""
    return known or (word if any(unicodedata.category(sign) == "Sc" for sign in word) else "")


def as_seen(cell: str) -> str:
    """The text of a cell as people see it: a share of 0.255 with a percent format as 25.5%, 13:30:00 as 13:30."""
    if isinstance(cell, Measured) and cell.unit == PERCENT:
        share = (Decimal(f"{cell.number:.{_DIGITS_OF_EXCEL}g}") * 100).normalize()
        return f"{share:f}{PERCENT}"
    is_time = isinstance(cell, TimeOfDay) or (isinstance(cell, Measured) and cell.startswith("00:"))
    return cell.removesuffix(":00") if is_time else str(cell)


_DIGITS_OF_EXCEL = 15
"""Significant ones, which a number has at most: 0.07 times 100 is 7 in it."""
