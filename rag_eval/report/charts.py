"""Bar charts of a table's columns: a bar for each bot, drawn from the cells, calm enough to be forwarded."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.report.styles import BLUE, FONT, GREY, LINE
from rag_eval.results.trade_off import TradeOff
from rag_eval.texts.display import enumerated, printable, shorten

if TYPE_CHECKING:
    from xlsxwriter.chart import Chart
    from xlsxwriter.workbook import Workbook

_PALE_BLUE = "#9DB8D6"
_CLUSTER_COLOURS = (BLUE, "#D55E00", _PALE_BLUE)
"""Of the bars side by side. They stay apart in every common form of colour blindness, and in grey."""
MOST_BOTS = 30
"""Charts of more bots than this are as unreadable as the table is long, so there are none."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A column of numbers from the second row of a sheet down, and the column of names they belong to."""

    title: str
    sheet: str
    name_column: int
    value_column: int
    values: Mapping[str, float | None]
    """By name, in the order of the sheet; here because cells that are written are no longer in memory."""
    error_lengths: Sequence[tuple[int, Sequence[float | None]]]
    """Two columns and what is in them: how far an error bar reaches below and above each value."""

    @property
    def has_bars(self) -> bool:
        """Whether there is anything to draw."""
        return any(self.values.values())

    @property
    def alt_text(self) -> str:
        values = (
            f"{shorten(name, 40)} {value:.4g}" for name, value in self.values.items() if value is not None
        )
        return f"{self.title}: {', '.join(values)}"

    def series(self, fill: str, number_format: str) -> dict[str, Any]:
        last = len(self.values)
        return {
            "name": self.title,
            "categories": [self.sheet, 1, self.name_column, last, self.name_column],
            "values": [self.sheet, 1, self.value_column, last, self.value_column],
            # For viewers that show what is stored. The space keeps names such as "7" and "nan" from being
            # stored as numbers.
            "categories_data": [f"{printable(name)} " for name in self.values],
            "values_data": list(self.values.values()),
            "fill": {"color": fill},
            "gap": 45,
            "data_labels": {
                "value": True,
                "num_format": number_format,
                "font": {**_font(9), "color": "#000000"},
            },
        }

    def error_bars(self) -> dict[str, Any]:
        (below, minus), (above, plus) = self.error_lengths
        cells = partial(_cells, self.sheet, 1, len(self.values))
        return {**_error_bars(cells(below), cells(above), BLUE, 1.25), "minus_data": minus, "plus_data": plus}


def height_of(bots: int, bars: int = 1) -> int:
    """Pixels that a chart of that many bots needs, each with so many bars."""
    return 84 + (12 + 11 * bars) * bots


def score_chart(workbook: "Workbook", bars: Bars) -> "Chart":
    """A bar for each bot, on an axis from 0 to 1, with error bars where their lengths are known."""
    chart = _bar_chart(workbook, bars.title)
    if bars.error_lengths:
        series = bars.series(_PALE_BLUE, "0.00")
        series["data_labels"]["position"] = "inside_base"  # at the end they would lie under the error bars
        chart.add_series({**series, "y_error_bars": bars.error_bars()})
        chart.show_hidden_data()  # the lengths of the error bars are in hidden columns
    else:
        chart.add_series(bars.series(BLUE, "0.00"))
    chart.set_x_axis(_axis(min=0, max=1, major_unit=0.5, num_format="0.0"))
    chart.set_legend({"none": True})
    return chart


def share_chart(workbook: "Workbook", title: str, parts: Sequence[Bars]) -> "Chart":
    """For each bot bars of shares side by side, at most three; a stack would add up to more cases than there are."""
    chart = _bar_chart(workbook, title)
    for bars, fill in zip(parts, _CLUSTER_COLOURS, strict=False):
        chart.add_series(bars.series(fill, "0%"))
    chart.show_hidden_data()  # the shares are in folded columns
    chart.set_x_axis(_axis(min=0, max=1, major_unit=0.5, num_format="0%"))
    chart.set_legend({"position": "bottom", "font": _font(9)})
    return chart


def _bar_chart(workbook: "Workbook", title: str) -> "Chart":
    chart = _chart(workbook, title, type="bar")
    chart.set_y_axis(_axis(reverse=True, crossing="max", major_gridlines={"visible": False}))
    return chart


def _chart(workbook: "Workbook", title: str, **kind: str) -> "Chart":
    chart = workbook.add_chart(kind)
    chart.set_title({"name": title, "name_font": {**_font(11), "bold": True, "color": BLUE}})
    chart.set_chartarea({"border": {"color": LINE}})
    return chart


def _axis(**options: Any) -> dict[str, Any]:
    line = {"color": GREY, "width": 0.5}
    grid = {"visible": True, "line": {"color": LINE, "width": 0.5}}
    return {"num_font": _font(9), "line": line, "major_gridlines": grid, "major_tick_mark": "none", **options}


def _font(size: int) -> dict[str, Any]:
    return {"name": FONT, "size": size, "bold": False}


def _error_bars(below: str, above: str, colour: str, width: float) -> dict[str, Any]:
    """By the ranges of cells with their lengths."""
    line = {"color": colour, "width": width}
    return {"type": "custom", "minus_values": below, "plus_values": above, "line": line}


def _marker(kind: str, size: int, colour: str) -> dict[str, Any]:
    return {"type": kind, "size": size, "fill": {"color": colour}, "border": {"color": colour}}


def _cells(sheet: str, first_row: int, last_row: int, column: int) -> str:
    """Cells of a column as a formula names them; counted from 0."""
    from xlsxwriter.utility import xl_range_formula

    return str(xl_range_formula(sheet, first_row, column, last_row, column))


class Curve(NamedTuple):
    """Rows of a sheet that are one connected line of a chart over time. Rows and columns are counted from 0."""

    name: str
    number: int
    """Lines of the same number look alike; only the first of them is in the legend."""
    first: int
    last: int
    day: int
    """Column of the days, as spreadsheets count them."""
    value: int
    below: int
    """Column of how far the error bar reaches below the value."""
    above: int


def time_chart(
    workbook: "Workbook", title: str, sheet: str, curves: Sequence[Curve], num_format: str
) -> "Chart":
    """Values of 0 to 1 over time with error bars; a gap lies between two curves of one number."""
    chart = _chart(workbook, title, type="scatter", subtype="straight_with_markers")
    seen: set[int] = set()
    repeated = []
    for index, curve in enumerate(curves):
        colour = _LINE_COLOURS[curve.number % len(_LINE_COLOURS)]
        marker = _MARKERS[curve.number % len(_MARKERS)]

        cells = partial(_cells, sheet, curve.first, curve.last)
        chart.add_series(
            {
                "name": printable(curve.name),
                "categories": cells(curve.day),
                "values": cells(curve.value),
                "line": {"color": colour, "width": 1.75},
                "marker": _marker(marker, 6, colour),
                "y_error_bars": _error_bars(cells(curve.below), cells(curve.above), colour, 0.75),
            }
        )
        if curve.number in seen:
            repeated.append(index)
        seen.add(curve.number)
    chart.show_hidden_data()  # days and lengths of the error bars are in hidden columns
    chart.set_x_axis(_axis(num_format=num_format, major_gridlines={"visible": False}))
    chart.set_y_axis(_axis(min=0, max=1, major_unit=0.25, num_format="0.00"))
    chart.set_legend({"position": "bottom", "font": _font(9), "delete_series": repeated})
    return chart


_LINE_COLOURS = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8A6D00", "#6A3D9A", GREY)
_MARKERS = ("circle", "square", "diamond", "triangle")
"""So that lines can be told apart without colour, too."""


class NamedMark(NamedTuple):
    """A mark of a chart of two figures that is to have its name beside it. Lengths are in pixels, from the top left."""

    name: str
    x: float
    y: float
    goes_first: bool
    """Whether it may cover marks that do not, and takes its place before them."""


Side = tuple[float, float]
"""Where a name lies next to its mark: -1, 0 or 1 to the right, and downwards."""


def sides_of_names(
    marks: Sequence[NamedMark], sides: Sequence[Side], area: tuple[float, float]
) -> list[Side | None]:
    """The first of the `sides` on which each name covers no other name and no mark; None if there is none.

    `area` is the width and height that all have.
    """
    found: list[Side | None] = [None] * len(marks)
    boxes = [_box(mark.x, mark.y, _MARK, _MARK) for mark in marks]
    names: list[_Box] = []
    for number, mark in sorted(enumerate(marks), key=lambda each: not each[1].goes_first):
        others = [each for each in range(len(marks)) if each != number]
        first = [boxes[each] for each in others if marks[each].goes_first]
        ways = [[boxes[each] for each in others], *([first] if mark.goes_first else [])]
        around = {side: _beside(mark, side) for side in sides}
        free = (
            side
            for covered in ways
            for side, box in around.items()
            if box[0] >= 0 and box[1] >= 0 and box[2] <= area[0] and box[3] <= area[1]
            if not any(_overlap(box, each) for each in (*covered, *names))
        )
        found[number] = side = next(free, None)
        if side:
            names.append(around[side])
    return found


def _beside(mark: NamedMark, side: Side) -> "_Box":
    """Where the name is on this side of its mark."""
    width = _LETTER * sum(2 if ord(letter) > _WIDE else 1 for letter in mark.name)
    x, y = mark.x + side[0] * (width + _MARK) / 2, mark.y + side[1] * (_LINE + _MARK) / 2
    return _box(x, y, width, _LINE)


_MARK, _LETTER, _LINE = 12.0, 6.2, 13.0
"""Pixels of a mark, of a letter of a name and of its height, with some space around."""
_WIDE = 0x2E7F
"""Letters after this one are about as wide as high."""
_Box = tuple[float, float, float, float]


def _box(x: float, y: float, width: float, height: float) -> _Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


class Axis(NamedTuple):
    """The numbers along one side of a chart of two figures."""

    least: float
    most: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float | None]) -> "Axis":
        """For values of 0 or more: from 0 on, unless all are in the upper half. Steps are 1, 2, 2.5 or 5 with zeros."""
        known = [value for value in values if value is not None]
        smallest, largest = min(known), max(known)
        start = smallest if 2 * smallest > largest else 0.0
        wanted = (largest - start) / _STEPS or largest / _STEPS or 1.0
        power = 10.0 ** math.floor(math.log10(wanted))
        step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= wanted * (1 - 1e-9))
        first, last = math.floor(start / step + 1e-9), math.ceil(largest / step - 1e-9)
        return cls(first * step, max(last, first + 1) * step, step)

    def share(self, value: float) -> float:
        """Where a value is between the ends, 0 to 1."""
        return (value - self.least) / (self.most - self.least)

    @property
    def numbers(self) -> list[float]:
        """Those that are written along it."""
        count = round((self.most - self.least) / self.step)
        return [self.least + number * self.step for number in range(count + 1)]


_STEPS = 4


def axes_of(offs: Sequence[TradeOff]) -> tuple[Axis, Axis]:
    """The axes of what bots spend, and of their RQS, that show all intervals."""
    return (
        Axis.over(value for each in offs for value in (each.spent, *each.limits)),
        Axis.over(value for each in offs for value in (each.rqs, *each.rqs_limits)),
    )


def unnamed_words(names: Sequence[str]) -> str:
    """Which bots have no name in a chart of two figures; '' if all have one."""
    return f" Without room for a name: {enumerated([shorten(name, 40) for name in names])}." if names else ""


class BotPoint(NamedTuple):
    """A row of a sheet that is one point of a chart. Rows and columns are counted from 0."""

    row: int
    name: str
    x: float
    y: float
    """0..1."""
    is_circle: bool
    """Or a cross."""


class PointColumns(NamedTuple):
    """Columns of a sheet with bots as points: two figures, each with the lengths of its error bars."""

    sheet: str
    name: int
    x: int
    x_errors: tuple[int, int]
    y: int
    y_errors: tuple[int, int]


def point_chart(
    workbook: "Workbook",
    title: str,
    words: str,
    columns: PointColumns,
    points: Sequence[BotPoint],
    axes: tuple[Axis, Axis],
    size: tuple[int, int],
) -> "Chart":
    """A point for each bot with error bars; `axes` are the horizontal and the other one, `size` is in pixels.

    A point has its name where that covers no other one; `words`, below the chart, are followed by those without it.
    """
    chart = _chart(workbook, title, type="scatter")
    along, up = axes
    width, height = size[0] * (1 - _LEFT - _RIGHT), size[1] * (1 - _TOP - _BOTTOM)
    names = [
        NamedMark(
            shorten(point.name, _NAME),
            along.share(point.x) * width,
            (1 - up.share(point.y)) * height,
            point.is_circle,
        )
        for point in points
    ]
    places = sides_of_names(names, [*_POSITIONS], (width + size[0] * _RIGHT, height))
    for number, (point, side) in enumerate(zip(points, places, strict=True)):
        colour = _LINE_COLOURS[number % len(_LINE_COLOURS)]

        def cells(column: int, row: int = point.row) -> list[object]:
            return [columns.sheet, row, column, row, column]

        cell = partial(_cells, columns.sheet, point.row, point.row)
        label = {"series_name": True, "position": _POSITIONS[side], "font": _font(9)} if side else None
        chart.add_series(
            {
                "name": [columns.sheet, point.row, columns.name],
                "categories": cells(columns.x),
                "values": cells(columns.y),
                "marker": _marker("circle" if point.is_circle else "x", 8, colour),
                **({"data_labels": label} if label else {}),
                **{
                    f"{name}_error_bars": _error_bars(cell(minus), cell(plus), colour, 0.75)
                    for name, (minus, plus) in (("x", columns.x_errors), ("y", columns.y_errors))
                },
            }
        )
    chart.show_hidden_data()  # the lengths of the error bars are in hidden columns
    unnamed = [point.name for point, side in zip(points, places, strict=True) if side is None]
    named = {"name": f"{words}{unnamed_words(unnamed)}", "name_font": _font(9)}
    scales = [{"min": each.least, "max": each.most, "major_unit": each.step} for each in axes]
    chart.set_x_axis(_axis(**scales[0], num_format="[>=100]#,##0;0.######", crossing="min", **named))
    chart.set_y_axis(_axis(**scales[1], num_format="0.00", crossing="min", name="RQS", name_font=_font(9)))
    inner = {"x": _LEFT, "y": _TOP, "width": 1 - _LEFT - _RIGHT, "height": 1 - _TOP - _BOTTOM}
    chart.set_plotarea({"layout": inner})
    chart.set_legend({"none": True})
    return chart


_POSITIONS: Mapping[Side, str] = MappingProxyType(
    {(0, -1): "above", (1, 0): "right", (0, 1): "below", (-1, 0): "left"}
)
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.13, 0.06, 0.14, 0.24
"""Of a chart of two figures, the parts around what its axes enclose."""
_NAME = 30
"""Characters of a name in a chart of two figures."""
