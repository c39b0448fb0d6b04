"""Bar charts of a table's columns: a bar for each bot, drawn from the cells, calm enough to be forwarded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.report.styles import BLUE, FONT, GREY, LINE
from rag_eval.texts.display import printable, shorten

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
    error_lengths: Sequence[tuple[int, Sequence[float | None]]] = ()
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

    def series(self, fill: str, ink: str, number_format: str) -> dict[str, Any]:
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
            "data_labels": {"value": True, "num_format": number_format, "font": {**_font(9), "color": ink}},
        }

    def error_bars(self) -> dict[str, Any]:
        (below, minus), (above, plus) = self.error_lengths
        return {
            "type": "custom",
            "minus_values": self._range(below),
            "minus_data": minus,
            "plus_values": self._range(above),
            "plus_data": plus,
            "line": {"color": BLUE, "width": 1.25},
        }

    def _range(self, column: int) -> str:
        from xlsxwriter.utility import xl_range_formula

        return str(xl_range_formula(self.sheet, 1, column, len(self.values), column))


def height_of(bots: int, bars: int = 1) -> int:
    """Pixels that a chart of that many bots needs, each with so many bars."""
    return 84 + (12 + 11 * bars) * bots


def score_chart(workbook: "Workbook", bars: Bars) -> "Chart":
    """A bar for each bot, on an axis from 0 to 1, with error bars where their lengths are known."""
    chart = _bar_chart(workbook, bars.title)
    if bars.error_lengths:
        series = bars.series(_PALE_BLUE, "#000000", "0.00")
        series["data_labels"]["position"] = "inside_base"  # at the end they would lie under the error bars
        chart.add_series({**series, "y_error_bars": bars.error_bars()})
        chart.show_hidden_data()  # the lengths of the error bars are in hidden columns
    else:
        chart.add_series(bars.series(BLUE, "#000000", "0.00"))
    chart.set_x_axis(_axis(min=0, max=1, major_unit=0.5, num_format="0.0"))
    chart.set_legend({"none": True})
    return chart


def share_chart(workbook: "Workbook", title: str, parts: Sequence[Bars]) -> "Chart":
    """For each bot bars of shares side by side, at most three; a stack would add up to more cases than there are."""
    chart = _bar_chart(workbook, title)
    for bars, fill in zip(parts, _CLUSTER_COLOURS, strict=False):
        chart.add_series(bars.series(fill, "#000000", "0%"))
    chart.show_hidden_data()  # the shares are in folded columns
    chart.set_x_axis(_axis(min=0, max=1, major_unit=0.5, num_format="0%"))
    chart.set_legend({"position": "bottom", "font": _font(9)})
    return chart


def _bar_chart(workbook: "Workbook", title: str, **kind: str) -> "Chart":
    chart = workbook.add_chart({"type": "bar", **kind})
    chart.set_title({"name": title, "name_font": {**_font(11), "bold": True, "color": BLUE}})
    chart.set_y_axis(_axis(reverse=True, crossing="max", major_gridlines={"visible": False}))
    chart.set_chartarea({"border": {"color": LINE}})
    return chart


def _axis(**options: Any) -> dict[str, Any]:
    line = {"color": GREY, "width": 0.5}
    grid = {"visible": True, "line": {"color": LINE, "width": 0.5}}
    return {"num_font": _font(9), "line": line, "major_gridlines": grid, "major_tick_mark": "none", **options}


def _font(size: int) -> dict[str, Any]:
    return {"name": FONT, "size": size, "bold": False}


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


def time_chart(workbook: "Workbook", title: str, sheet: str, curves: Sequence[Curve]) -> "Chart":
    """Values of 0 to 1 over time with error bars; a gap lies between two curves of one number."""
    from xlsxwriter.utility import xl_range_formula

    chart = workbook.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    seen: set[int] = set()
    repeated = []
    for index, curve in enumerate(curves):
        colour = _LINE_COLOURS[curve.number % len(_LINE_COLOURS)]
        marker = _MARKERS[curve.number % len(_MARKERS)]

        def cells(column: int, curve: Curve = curve) -> str:
            return str(xl_range_formula(sheet, curve.first, column, curve.last, column))

        chart.add_series(
            {
                "name": printable(curve.name),
                "categories": cells(curve.day),
                "values": cells(curve.value),
                "line": {"color": colour, "width": 1.75},
                "marker": {"type": marker, "size": 6, "fill": {"color": colour}, "border": {"color": colour}},
                "y_error_bars": {
                    "type": "custom",
                    "minus_values": cells(curve.below),
                    "plus_values": cells(curve.above),
                    "line": {"color": colour, "width": 0.75},
                },
            }
        )
        if curve.number in seen:
            repeated.append(index)
        seen.add(curve.number)
    chart.show_hidden_data()  # days and lengths of the error bars are in hidden columns
    chart.set_title({"name": title, "name_font": {**_font(11), "bold": True, "color": BLUE}})
    chart.set_x_axis(_axis(num_format="yyyy-mm-dd", major_gridlines={"visible": False}))
    chart.set_y_axis(_axis(min=0, max=1, major_unit=0.25, num_format="0.00"))
    chart.set_legend({"position": "bottom", "font": _font(9), "delete_series": repeated})
    chart.set_chartarea({"border": {"color": LINE}})
    return chart


_LINE_COLOURS = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8A6D00", "#6A3D9A", GREY)
_MARKERS = ("circle", "square", "diamond", "triangle")
"""So that lines can be told apart without colour, too."""


class BotPoint(NamedTuple):
    """A row of a sheet that is one point of a chart. Rows and columns are counted from 0."""

    row: int
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
    workbook: "Workbook", title: str, x_title: str, columns: PointColumns, points: Sequence[BotPoint]
) -> "Chart":
    """A point for each bot with its name, on an axis from 0 to 1 and another one from 0 on, with error bars."""
    chart = workbook.add_chart({"type": "scatter"})
    for number, point in enumerate(points):
        colour = _LINE_COLOURS[number % len(_LINE_COLOURS)]

        def cells(column: int, row: int = point.row) -> list[object]:
            return [columns.sheet, row, column, row, column]

        chart.add_series(
            {
                "name": [columns.sheet, point.row, columns.name],
                "categories": cells(columns.x),
                "values": cells(columns.y),
                "marker": {
                    "type": "circle" if point.is_circle else "x",
                    "size": 8,
                    "fill": {"color": colour},
                    "border": {"color": colour},
                },
                "data_labels": {"series_name": True, "position": "above", "font": _font(9)},
                **{
                    f"{axis}_error_bars": {
                        "type": "custom",
                        "minus_values": _one_cell(columns.sheet, point.row, minus),
                        "plus_values": _one_cell(columns.sheet, point.row, plus),
                        "line": {"color": colour, "width": 0.75},
                    }
                    for axis, (minus, plus) in (("x", columns.x_errors), ("y", columns.y_errors))
                },
            }
        )
    chart.show_hidden_data()  # the lengths of the error bars are in hidden columns
    chart.set_title({"name": title, "name_font": {**_font(11), "bold": True, "color": BLUE}})
    named = {"name": x_title, "name_font": _font(9)}
    chart.set_x_axis(_axis(min=0, num_format="[>=100]#,##0;0.######", **named))
    chart.set_y_axis(_axis(min=0, max=1, major_unit=0.25, num_format="0.00", name="RQS", name_font=_font(9)))
    chart.set_legend({"none": True})
    chart.set_chartarea({"border": {"color": LINE}})
    return chart


def _one_cell(sheet: str, row: int, column: int) -> str:
    from xlsxwriter.utility import xl_range_formula

    return str(xl_range_formula(sheet, row, column, row, column))
