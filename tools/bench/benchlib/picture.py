"""Draws the demo as one SVG: latency of every request over time (log scale), phases as bands, swaps as marks, and the
neighbours' rate below. Text is text, so that the picture can be searched and scaled.

Thread rule: plain values.
"""

import math
from dataclasses import dataclass, field
from typing import List, Sequence, Tuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1180, 640
LEFT, RIGHT = 84, 24
LATENCY_TOP, LATENCY_BOTTOM = 108, 410
RATE_TOP, RATE_BOTTOM = 458, 576
INK, MUTED, GRID = "#1b1f24", "#59636e", "#d8dee4"
BANDS = ("#f2f6fb", "#fdf1ee", "#eef8f0", "#fdf1ee", "#eef8f0")
DOT, LINE, RATE, SWAP = "#1f6feb", "#0a3069", "#8c959f", "#bc4c00"


@dataclass
class Phase:
    """A part of the picture. Times are seconds from its begin."""

    title: str
    note: str
    seconds: float
    points: Sequence[Tuple[float, float]]  # arrival, latency in ms
    rates: Sequence[Tuple[float, float]]  # begin of a slice, neighbours' kernels per second
    slice_s: float
    p99_ms: float
    mark: str = ""  # what was done at its begin


@dataclass
class Canvas:
    parts: List[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.parts.append(text)

    def text(self, x: float, y: float, words: str, size: int = 13, color: str = INK, anchor: str = "start",
             bold: bool = False, turn: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        rotate = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}{rotate}>'
                 f"{escape(words)}</text>")

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1, dash: str = "") -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
                 f'stroke-width="{width}"{dashes}/>')

    def box(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')


def _milliseconds(value: float) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def draw(path: str, title: str, subtitle: str, phases: Sequence[Phase]) -> None:
    latencies = [latency for phase in phases for _, latency in phase.points] or [1.0]
    low = math.floor(math.log10(max(0.1, min(latencies))))
    high = max(low + 1, math.ceil(math.log10(max(latencies))))
    total = sum(phase.seconds for phase in phases)
    top_rate = max([rate for phase in phases for _, rate in phase.rates] + [1.0]) * 1.1

    def y_latency(value: float) -> float:
        part = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return LATENCY_BOTTOM - part * (LATENCY_BOTTOM - LATENCY_TOP)

    def y_rate(value: float) -> float:
        return RATE_BOTTOM - value / top_rate * (RATE_BOTTOM - RATE_TOP)

    def x_at(seconds: float) -> float:
        return LEFT + seconds / total * (WIDTH - LEFT - RIGHT)

    canvas = Canvas()
    canvas.add(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
               'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">')
    canvas.box(0, 0, WIDTH, HEIGHT, "#ffffff")
    canvas.text(LEFT, 28, title, 18, bold=True)
    canvas.text(LEFT, 48, subtitle, 12, MUTED)

    begin = 0.0
    for index, phase in enumerate(phases):
        x0, x1 = x_at(begin), x_at(begin + phase.seconds)
        for top, bottom in ((LATENCY_TOP, LATENCY_BOTTOM), (RATE_TOP, RATE_BOTTOM)):
            canvas.box(x0, top, x1 - x0, bottom - top, BANDS[index % len(BANDS)])
        canvas.text((x0 + x1) / 2, 78, phase.title, 13, anchor="middle", bold=True)
        canvas.text((x0 + x1) / 2, 96, phase.note, 11, MUTED, "middle")
        begin += phase.seconds

    for exponent in range(low, high + 1):
        y = y_latency(10.0**exponent)
        canvas.line(LEFT, y, WIDTH - RIGHT, y, GRID)
        canvas.text(LEFT - 8, y + 4, _milliseconds(10.0**exponent), 12, MUTED, "end")
        for factor in range(2, 10) if exponent < high else ():
            canvas.line(LEFT - 4, y_latency(factor * 10.0**exponent), LEFT, y_latency(factor * 10.0**exponent), GRID)
    canvas.text(20, (LATENCY_TOP + LATENCY_BOTTOM) / 2, "request latency (log scale)", 12, MUTED, "middle", turn=True)
    for part in (0.0, 0.5, 1.0):
        value = top_rate / 1.1 * part
        canvas.line(LEFT, y_rate(value), WIDTH - RIGHT, y_rate(value), GRID)
        canvas.text(LEFT - 8, y_rate(value) + 4, f"{value:.0f} /s", 12, MUTED, "end")
    canvas.text(20, (RATE_TOP + RATE_BOTTOM) / 2, "neighbours' kernels", 12, MUTED, "middle", turn=True)

    begin = 0.0
    for index, phase in enumerate(phases):
        x0, x1 = x_at(begin), x_at(begin + phase.seconds)
        for at, value in phase.rates:
            y = y_rate(value)
            canvas.box(x_at(begin + at), y, max(0.5, x_at(phase.slice_s) - x_at(0) - 0.4), RATE_BOTTOM - y, RATE)
        for at, latency in phase.points:
            canvas.add(f'<circle cx="{x_at(begin + at):.1f}" cy="{y_latency(latency):.1f}" r="2.6" fill="{DOT}" '
                       'fill-opacity="0.65"/>')
        if not math.isnan(phase.p99_ms):
            y = y_latency(phase.p99_ms)
            canvas.line(x0 + 2, y, x1 - 2, y, LINE, 1.4, "6 3")
            # Above the line, or below it if the line is at the top.
            canvas.text(x1 - 4, y - 5 if y > LATENCY_TOP + 18 else y + 14, f"p99 {_milliseconds(float(f'{phase.p99_ms:.3g}'))}", 11, LINE, "end")
        if index > 0:
            canvas.line(x0, LATENCY_TOP, x0, RATE_BOTTOM, SWAP if phase.mark else MUTED, 1.6 if phase.mark else 0.8,
                        "" if phase.mark else "2 3")
        if phase.mark:
            canvas.text(x0 + 5, LATENCY_BOTTOM + 18, phase.mark, 12, SWAP)
        begin += phase.seconds

    step = next((step for step in (1, 2, 5, 10, 20, 50) if total / step <= 16), 100)
    for tick in range(0, int(total) + 1, step):
        canvas.line(x_at(tick), RATE_BOTTOM, x_at(tick), RATE_BOTTOM + 5, MUTED)
        canvas.text(x_at(tick), RATE_BOTTOM + 20, f"{tick}", 12, MUTED, "middle")
    canvas.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16,
                "time in seconds (dotted line: the tenants are restarted; solid line: xschedctl changes a running one)", 12, MUTED, "middle")
    canvas.add("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(canvas.parts) + "\n")
