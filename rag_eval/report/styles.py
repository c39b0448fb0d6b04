"""How the report looks: its few colours, and one cell format for each kind of cell."""

from enum import StrEnum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook

BLUE = "#1F4E79"
_RED = "#9C0006"
_RED_FILL = "#FFC7CE"
GREY = "#808080"
_GREY_FILL = "#EDEDED"
LINE = "#D9D9D9"
PALE = "#F3F6FA"
HEAT = "#9DB8D6"
AMBER = "#C55A11"
"""Of a partial run's tabs alone."""

FONT = "Calibri"
_FONT_SIZE = 10
LINE_HEIGHT = 12.75
"""Of one line of text, in points; rows are whole lines high, so that no line is cut."""


class Look(StrEnum):
    """The kinds of cells."""

    HEADER = auto()
    NUMBER_HEADER = auto()
    """Over a column of numbers; small, so that the longest word fits on one line."""
    TEXT = auto()
    """Text from data, on several lines. Editing its cell does not make anything else of it."""
    NAME = auto()
    """The same on one line."""
    WORD = auto()
    """A word of ours, such as YES or OK."""
    SCORE = auto()
    RQS = auto()
    GAP = auto()
    """A difference of two RQS."""
    UNRELIABLE = auto()
    """A limit of an interval over few queries."""
    COUNT = auto()
    PERCENT = auto()
    AMOUNT = auto()
    """A latency or a cost, or a difference of two."""
    LARGE_AMOUNT = auto()
    """The same from 100 on, in whole numbers."""
    MARK = auto()
    NOT_APPLICABLE = auto()
    FAILED = auto()
    LINK = auto()
    """A count that leads to another cell."""
    AGAINST = auto()
    """Text from data that speaks against a high score."""
    INPUT = auto()
    """A threshold that the reader may change: a score below it is red."""
    INPUT_FROM = auto()
    """The same of a score that is red from the threshold on."""


class Formats:
    """The formats of one workbook."""

    def __init__(self, workbook: "Workbook") -> None:
        self._workbook = workbook
        self._by_key: dict[tuple[Look, str, bool | None], Format] = {}
        self._by_look = {look: workbook.add_format(_BASE | _LOOKS[look]) for look in Look}
        self.below: Format = workbook.add_format({"bg_color": _RED_FILL, "font_color": _RED, "bold": True})
        self.exact: Format = workbook.add_format({"num_format": "0.000"})
        self.faint: Format = workbook.add_format({"font_color": GREY, "italic": True})
        self.run: Format = workbook.add_format({"font_name": FONT, "font_size": _FONT_SIZE})

    def __getitem__(self, look: Look) -> "Format":
        return self._by_look[look]

    def of(self, look: Look, words: str = "", *, begins_group: bool | None = None) -> "Format":
        """A variant: `words` of ours follow the number, and only the first row of a group has a line above it.

        The cell still holds only the number. Without a group every row has a line below it.
        """
        key = look, words, begins_group
        try:
            return self._by_key[key]
        except KeyError:
            self._by_key[key] = made = self._made(*key)
            return made

    def fix_numbers(self) -> None:
        """Number the formats of rows now and not when each is first used: the same way in every process."""
        for look in Look:
            for begins_group in (None, True, False):
                style = self.of(look, begins_group=begins_group)
                if style.xf_index is None:
                    style.xf_index = 1 + len(style.xf_format_indices)
                    style.xf_format_indices[look, begins_group] = style.xf_index

    def _made(self, look: Look, words: str, begins_group: bool | None) -> "Format":
        properties = _BASE | _LOOKS[look]
        if words:
            # Shrunk, because a column of means is as wide as a mean without its count.
            parts = (f'{part}"{words}"' for part in properties["num_format"].split(";"))
            properties |= {"num_format": ";".join(parts), "shrink": True}
        if begins_group is not None:
            properties |= {"bottom": 0, "top": int(begins_group), "top_color": GREY}
        return self._workbook.add_format(properties)


_BASE: dict[str, Any] = {
    "font_name": FONT,
    "font_size": _FONT_SIZE,
    "valign": "top",
    "left": 1,
    "right": 1,
    "bottom": 1,  # and no border at the top, which would hide the header's
    "border_color": LINE,
}
_HEADER: dict[str, Any] = {
    "bold": True,
    "font_size": 9,
    "font_color": BLUE,
    "bg_color": PALE,
    "text_wrap": True,
    "bottom": 1,
    "top": 1,
    "bottom_color": BLUE,
}
_NUMBER: dict[str, Any] = {"align": "center"}
_LOOKS: dict[Look, dict[str, Any]] = {
    Look.HEADER: _HEADER,
    Look.NUMBER_HEADER: _HEADER | _NUMBER | {"font_size": 7.5, "bold": False},
    Look.TEXT: {"text_wrap": True, "quote_prefix": True},
    Look.NAME: {"quote_prefix": True},
    Look.WORD: {"text_wrap": True},
    Look.SCORE: {"num_format": "0.00", **_NUMBER},
    Look.RQS: {"num_format": "0.0000", "bold": True, **_NUMBER},
    Look.GAP: {"num_format": "0.0000;−0.0000;0.0000", **_NUMBER},
    Look.UNRELIABLE: {"num_format": "0.0000", "font_color": GREY, "italic": True, **_NUMBER},
    Look.COUNT: {"num_format": "#,##0", **_NUMBER},
    Look.PERCENT: {"num_format": "0.0%", **_NUMBER},
    Look.AMOUNT: {"num_format": "0.0#####;−0.0#####;0", **_NUMBER},
    Look.LARGE_AMOUNT: {"num_format": "#,##0;−#,##0;0", **_NUMBER},
    Look.MARK: {"align": "center", "font_color": BLUE, "bold": True},
    Look.NOT_APPLICABLE: {"bg_color": _GREY_FILL},
    Look.FAILED: {"pattern": 14, "fg_color": BLUE, "bg_color": "#FFFFFF"},
    Look.LINK: {"num_format": "#,##0", "font_color": BLUE, "underline": 1, **_NUMBER},
    Look.AGAINST: {"text_wrap": True, "quote_prefix": True, "font_color": _RED, "bold": True},
    Look.INPUT_FROM: {"num_format": '"≥ "0.00', "font_color": BLUE, "bg_color": PALE, **_NUMBER},
    Look.INPUT: {"num_format": '"< "0.00', "font_color": BLUE, "bg_color": PALE, **_NUMBER},
}
