"""Draws latency distributions as one SVG: latency (log scale) over the part of the requests that took longer (log scale), so
that the slowest hundredth is as wide as the median. Text stays text, so that the picture can be searched.

Thread rule: plain values.
"""

import math
from typing import Sequence, Tuple

from benchlib.picture import GRID, INK, MUTED, Canvas

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 84, 190, 76, 456
# Each way has the same colour in every picture.
COLORS = {"alone": "#1f6feb", "native": "#8c959f", "mps priority": "#8250df", "xschedd": "#bc4c00"}


def draw(path: str, title: str, notes: Sequence[str], curves: Sequence[Tuple[str, Sequence[float]]]) -> None:
    """`notes`: up to two lines below the title; `curves`: name and latencies in ms of each."""
    values = [value for _, latencies in curves for value in latencies]
    low, high = math.floor(math.log10(min(values)) * 4) / 4, math.ceil(math.log10(max(values)) * 4) / 4
    most = max(len(latencies) for _, latencies in curves)

    def x_at(part: float) -> float:  # part of the requests that took longer, 1 to 1/most
        return LEFT + -math.log10(part) / math.log10(most) * (WIDTH - LEFT - RIGHT)

    def y_at(ms: float) -> float:
        return BOTTOM - (math.log10(ms) - low) / (high - low) * (BOTTOM - TOP)

    canvas = Canvas()
    canvas.add(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
               'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">')
    canvas.box(0, 0, WIDTH, HEIGHT, "#ffffff")
    canvas.text(LEFT, 28, title, 18, bold=True)
    for number, note in enumerate(notes):
        canvas.text(LEFT, 46 + 16 * number, note, 12, MUTED)
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for factor in (1, 2, 5):
            ms = factor * 10.0**exponent
            if low <= math.log10(ms) <= high:
                canvas.line(LEFT, y_at(ms), WIDTH - RIGHT, y_at(ms), GRID)
                canvas.text(LEFT - 8, y_at(ms) + 4, f"{ms:g} ms", 12, MUTED, "end")
    for part, name in ((1.0, "all"), (0.5, "p50"), (0.1, "p90"), (0.01, "p99"), (0.001, "p99.9")):
        if part >= 1 / most:
            canvas.line(x_at(part), TOP, x_at(part), BOTTOM, GRID)
            canvas.text(x_at(part), BOTTOM + 18, name, 12, MUTED, "middle")
    canvas.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "requests, the slower to the right", 12, MUTED, "middle")
    for number, (name, latencies) in enumerate(curves):
        color, ordered = COLORS[name], sorted(latencies)
        points = " ".join(f"{x_at((len(ordered) - rank) / len(ordered)):.1f},{y_at(value):.1f}"
                          for rank, value in enumerate(ordered))
        canvas.add(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        canvas.box(WIDTH - RIGHT + 18, TOP + 22 * number, 14, 4, color)
        canvas.text(WIDTH - RIGHT + 38, TOP + 22 * number + 6, name, 13, INK)
    canvas.add("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(canvas.parts) + "\n")
