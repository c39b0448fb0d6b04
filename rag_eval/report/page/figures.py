"""Drawings of the page as SVG, made here so that they print and need no script. Sizes are in pixels.

Colours are attributes, for mail programs that drop style sheets; page.css overrides them by class.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.report.charts import Axis, NamedMark, Side, sides_of_names

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval

_BLUE, _PALE, _INK, _RED = "#5b93cc", "#e6ebf1", "#1b1f24", "#b3261e"
_WIDTH, _HEIGHT = 200, 22


def mean_bar(label: str, mean: float | None, interval: "Interval | None") -> str:
    """A bar from 0 to the mean, 0..1, and a whisker from one end of its interval to the other."""
    middle = _HEIGHT / 2
    shapes = [_rectangle("track", _PALE, 0, 6, _WIDTH, 10)]
    if mean is not None:
        shapes.append(_rectangle("bar", _BLUE, 0, 6, mean * _WIDTH, 10))
    if interval is not None:
        low, high = (min(max(end, 0.0), 1.0) * _WIDTH for end in (interval.low, interval.high))
        path = f"M{low:.1f} 3V19M{low:.1f} {middle}H{high:.1f}M{high:.1f} 3V19"
        shapes.append(_path("ink", _INK, path, 1.5))
    return _svg(label, _WIDTH, _HEIGHT, shapes)


def share_bar(label: str, share: float) -> str:
    """A thin bar of a share, 0..1."""
    shapes = [_rectangle("track", _PALE, 0, 2, _WIDTH, 6), _rectangle("bad", _RED, 0, 2, share * _WIDTH, 6)]
    return _svg(label, _WIDTH, 10, shapes)


def histogram(label: str, values: Sequence[float]) -> str:
    """How many of the values, 0..1, lie in each tenth; the last one holds 1 too."""
    counts = [0] * 10
    for value in values:
        counts[min(9, int(value * 10))] += 1
    most = max(*counts, 1)
    shapes = [
        _rectangle("bar", _BLUE, 1 + 20 * tenth, 40 - 38 * count / most, 18, 38 * count / most)
        for tenth, count in enumerate(counts)
        if count
    ]
    shapes.append(_path("axis", _INK, f"M0 40.5H{_WIDTH}", 1))
    for position, anchor, text in ((0, "start", "0"), (100, "middle", "0.5"), (_WIDTH, "end", "1")):
        shapes.append(f'<text x="{position}" y="53" text-anchor="{anchor}">{text}</text>')
    return _svg(label, _WIDTH, 56, shapes)


def _rectangle(kind: str, fill: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" fill="{fill}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _path(kind: str, colour: str, path: str, width: float) -> str:
    return f'<path class="{kind}" fill="none" stroke="{colour}" stroke-width="{width}" d="{path}"/>'


def _svg(label: str, width: int, height: int, shapes: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-size="11" font-family="sans-serif">{"".join(shapes)}</svg>'
    )


class Point(NamedTuple):
    """A mean at a moment."""

    moment: float
    """In seconds; only the order and the distances matter."""
    mean: float | None
    """0..1; None leaves a gap."""
    interval: tuple[float, float] | None
    segment: int
    """Only points of one segment are connected."""


def timeline(label: str, points: Sequence[Point]) -> str:
    """Means from left to right with their intervals as whiskers, on a scale from 0 to 1."""
    first, last = points[0].moment, points[-1].moment
    shapes = [
        _path("grid", _PALE, f"M{_MARGIN} {_high(level):.1f}H{_LONG - 8}", 1)
        for level in (0, 0.25, 0.5, 0.75, 1)
    ]
    shapes += [
        f'<text x="{_MARGIN - 6}" y="{_high(level) + 4:.1f}" text-anchor="end">{level:g}</text>'
        for level in (0, 0.5, 1)
    ]
    before: tuple[float, float, int] | None = None
    lines, whiskers, dots = "", "", []
    for point in points:
        if point.mean is None:
            before = None
            continue
        share = (point.moment - first) / (last - first) if last > first else 0.5
        x, y = _MARGIN + 12 + share * (_LONG - _MARGIN - 32), _high(point.mean)
        if before and before[2] == point.segment:
            lines += f"M{before[0]:.1f} {before[1]:.1f}L{x:.1f} {y:.1f}"
        if point.interval:
            low, high = (_high(min(max(end, 0.0), 1.0)) for end in point.interval)
            whiskers += f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6"
        dots.append(f'<circle class="bar" fill="{_BLUE}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
        before = x, y, point.segment
    shapes += [_path("line", _BLUE, lines, 2), _path("ink", _INK, whiskers, 1), *dots]
    return _svg(label, _LONG, _TALL, shapes)


_LONG, _TALL, _MARGIN = 640, 130, 34


def _high(value: float) -> float:
    """Where a value of 0..1 lies in a timeline, counted from the top."""
    return 10 + (1 - value) * (_TALL - 24)


class BotMark(NamedTuple):
    """A bot in a chart of two figures."""

    name: str
    x: float
    x_limits: tuple[float | None, float | None]
    y: float
    """0..1."""
    y_limits: tuple[float | None, float | None]
    is_circle: bool
    """Or a cross."""


def scatter(
    label: str, marks: Sequence[BotMark], axes: tuple[Axis, Axis], shown: Callable[[float], str]
) -> tuple[str, list[str]]:
    """Marks with their names and intervals; `shown` words the numbers of the horizontal one of the `axes`.

    The second value are the names that have no place where they cover nothing.
    """
    along, up = axes
    shapes = [
        _path("grid", _PALE, f"M{_MARGIN} {_up(up, level):.1f}H{_BROAD - 8}", 1) for level in up.numbers
    ]
    shapes += [
        f'<text x="{_MARGIN - 6}" y="{_up(up, level) + 4:.1f}" text-anchor="end">{level:.4g}</text>'
        for level in up.numbers
    ]
    shapes += [
        f'<text x="{_along(along, number):.1f}" y="{_HIGH - 6}" text-anchor="middle">{shown(number)}</text>'
        for number in along.numbers
    ]
    whiskers, crosses, unnamed = "", "", []
    places = [NamedMark(mark.name, _along(along, mark.x), _up(up, mark.y), mark.is_circle) for mark in marks]
    sides = sides_of_names(places, [*_ANCHORS], (_BROAD, _HIGH))
    for mark, (_, x, y, _), side in zip(marks, places, sides, strict=True):
        for end in mark.x_limits:
            whiskers += "" if end is None else f"M{x:.1f} {y:.1f}H{_along(along, end):.1f}m0 -3v6"
        for end in mark.y_limits:
            whiskers += "" if end is None else f"M{x:.1f} {y:.1f}V{_up(up, end):.1f}m-3 0h6"
        if mark.is_circle:
            shapes.append(f'<circle class="bar" fill="{_BLUE}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        else:
            crosses += f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        if side is None:
            unnamed.append(mark.name)
            continue
        left, top = x + 8 * side[0], y + 4 + 12 * side[1]
        shapes.append(
            f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{_ANCHORS[side]}">{escape(mark.name)}</text>'
        )
    shapes += [_path("ink", _INK, whiskers, 1), _path("line", _BLUE, crosses, 2.5)]
    return _svg(label, _BROAD, _HIGH, shapes), unnamed


_ANCHORS: Mapping[Side, str] = MappingProxyType(
    {(1, -1): "start", (-1, -1): "end", (1, 1): "start", (-1, 1): "end", (0, -1): "middle", (0, 1): "middle"}
)
"""Where names begin, end or have their middle, by their side; those next to whiskers come first."""
_BROAD, _HIGH = 460, 260


def _along(axis: Axis, value: float) -> float:
    """Where a value lies, counted from the left."""
    return _MARGIN + 12 + axis.share(value) * (_BROAD - _MARGIN - 48)


def _up(axis: Axis, value: float) -> float:
    """Where a value lies, counted from the top."""
    return 24 + (1 - axis.share(value)) * (_HIGH - 60)
