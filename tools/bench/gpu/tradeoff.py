"""Draws what the levers of a call achieve as one SVG: a panel for each scenario, with each way as a point; x is what others
keep of their native rate, y the important tenant's p99 as a multiple of that alone (log scale). Right and low is best. Full
points are at one host speed, rings as measured.

Thread rule: plain values.
"""

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence

import distribution
from benchlib.picture import GRID, INK, MUTED, Canvas
from figures import EQUALS, NOT_WAYS

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 330, 270, 3
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 34, 46  # within a panel
HEAD, FOOT = 84, 16  # of the picture
COLORS = {**distribution.COLORS, "fifo": "#57606a", "held": "#1a7f37", "beside": "#bf3989", "beside, 1 ms": "#fb8500",
          "beside, 2 ms": "#cf222e",
          "beside, 20 ms": "#953800", "held, slices": "#0598bc", "held, slices, 4 ms": "#8250df",
          "beside, slices": "#d4a72c", "beside, untracked": "#116329"}
# Coarse ticks first; finer ones are drawn where there is room.
TICKS = [factor * 10.0**exponent for factors in ((1,), (2, 5), (1.5, 3, 7), (1.1, 1.2, 1.3, 4, 6, 8, 9))
         for exponent in range(-2, 4) for factor in factors]
TICK_ROOM = 16


@dataclass(frozen=True)
class Point:
    way: str
    kept: float  # 1: all
    measured: float  # p99 as a multiple of alone
    same_host: Optional[float] = None


def points_of(result: dict) -> List[Point]:
    """From the result of figures.of_levers; without ways that have nothing to show."""
    alone, points = result["alone"]["high"], []
    for way, part in result.items():
        if way in ("alone", EQUALS, *NOT_WAYS) or not part["kept"]:
            continue
        same_host = None
        if "same_host" in part["high"]:
            same_host = part["high"]["same_host"]["p99_ms"] / alone["same_host"]["p99_ms"]
        point = Point(way, sum(part["kept"].values()) / len(part["kept"]), part["high"]["p99_ms"] / alone["p99_ms"], same_host)
        if not any(math.isnan(value) for value in (point.kept, point.measured, same_host or 0.0)):
            points.append(point)
    return points


def draw(path: str, title: str, subtitle: str, panels: Sequence[tuple]) -> None:
    """`panels`: title and points of each."""
    columns = min(COLUMNS, len(panels))
    width, height = max(2, columns) * PANEL_WIDTH, HEAD + math.ceil(len(panels) / columns) * PANEL_HEIGHT + FOOT
    canvas = Canvas()
    canvas.add(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
               'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">')
    canvas.box(0, 0, width, height, "#ffffff")
    canvas.text(16, 26, title, 18, bold=True)
    canvas.text(16, 44, subtitle, 10, MUTED)
    ways = list(dict.fromkeys(point.way for _, points in panels for point in points))
    x = 16.0
    for way in ways:
        canvas.add(f'<circle cx="{x + 5:.1f}" cy="64" r="5" fill="{COLORS[way]}"/>')
        canvas.text(x + 15, 68, way, 12, INK)
        x += 32 + 7 * len(way)
    for number, (name, points) in enumerate(panels):
        panel(canvas, number % columns * PANEL_WIDTH, HEAD + number // columns * PANEL_HEIGHT, name, points)
    canvas.add("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(canvas.parts) + "\n")


def panel(canvas: Canvas, at_x: float, at_y: float, name: str, points: Sequence[Point]) -> None:
    values = [1.0, *(value for point in points for value in (point.measured, point.same_host) if value is not None)]
    low, high = math.log10(min(values)) - 0.05, math.log10(max(values)) + 0.05
    most = max(1.05, *(point.kept for point in points)) * 1.03
    left, right, top, bottom = at_x + LEFT, at_x + PANEL_WIDTH - RIGHT, at_y + TOP, at_y + PANEL_HEIGHT - BOTTOM

    def x_at(kept: float) -> float:
        return left + kept / most * (right - left)

    def y_at(value: float) -> float:
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

    canvas.text(left, at_y + 22, name, 13, bold=True)
    drawn: List[float] = []
    for tick in TICKS:
        if low <= math.log10(tick) <= high and all(abs(y_at(tick) - other) >= TICK_ROOM for other in drawn):
            drawn.append(y_at(tick))
            canvas.line(left, y_at(tick), right, y_at(tick), MUTED if tick == 1 else GRID)
            canvas.text(left - 6, y_at(tick) + 4, f"{tick:g}", 11, MUTED, "end")
    for quarter in range(math.floor(most * 4) + 1):
        canvas.line(x_at(quarter / 4), top, x_at(quarter / 4), bottom, GRID)
        if most < 2 or quarter % 4 == 0:
            canvas.text(x_at(quarter / 4), bottom + 16, f"{25 * quarter} %", 11, MUTED, "middle")
    canvas.text((left + right) / 2, bottom + 34, "others keep of native", 11, MUTED, "middle")
    canvas.text(at_x + 18, (top + bottom) / 2, "p99 of alone", 11, MUTED, "middle", turn=True)
    for point in points:
        color, x = COLORS[point.way], x_at(point.kept)
        if point.same_host is not None:
            canvas.line(x, y_at(point.measured), x, y_at(point.same_host), color)
            canvas.add(f'<circle cx="{x:.1f}" cy="{y_at(point.same_host):.1f}" r="5" fill="{color}"/>')
        canvas.add(f'<circle cx="{x:.1f}" cy="{y_at(point.measured):.1f}" r="4" fill="none" stroke="{color}" stroke-width="1.5"/>')
