"""Draws a page from a Grafana dashboard's JSON and Prometheus's answers to its queries: each panel at its gridPos with title,
unit, lines or value, and legend. Supports only what this project's dashboards use of Grafana's format. Thread rule: any.
"""

import html
import json
import math
import re

CELL, GAP, WIDTH = 30, 8, 1560
COLOURS = ["#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff", "#ffa6b0", "#96d98d", "#ffee52", "#ca95e5"]
NAMED = {"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44", "text": "#d8d9da"}
STYLE = ("body{margin:0;background:#111217;color:#ccccdc;font:12px 'DejaVu Sans',sans-serif;position:relative}"
         ".panel{position:absolute;box-sizing:border-box;background:#181b1f;border:1px solid #2c3235;border-radius:2px;padding:4px 8px;"
         "overflow:hidden}.panel.row{background:none;border:0;font-size:16px;font-weight:bold}.title{font-weight:bold;white-space:nowrap}"
         ".value{text-align:center;font-weight:bold;white-space:nowrap}"
         "table{position:absolute;left:8px;right:8px;bottom:3px;width:calc(100% - 16px);border-collapse:collapse;font-size:11px}"
         "td,th{padding:0 4px;text-align:right;font-weight:normal;line-height:14px;white-space:nowrap}td:first-child{text-align:left}"
         "th{color:#8e8e99}.none{position:absolute;inset:0;display:flex;align-items:center;justify-content:center;color:#8e8e99}"
         "svg{position:absolute;left:0;top:24px}text{fill:#8e8e99;font-size:10px}"
         "h1{position:absolute;margin:0;left:8px;top:8px;font-size:20px}.note{position:absolute;left:8px;top:38px;line-height:17px}")


def scaled(value, steps, digits=3):
    """`value` in the largest of `steps` ((factor, suffix), ascending) that it reaches."""
    factor, suffix = next(((f, s) for f, s in reversed(steps) if abs(value) >= f), steps[0])
    return f"{value / factor:.{digits}g}{suffix}"


def shown(value, unit):
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if unit == "percentunit":
        return f"{100 * value:.3g}%"
    if value == 0:
        return {"ops": "0 ops/s", "bytes": "0 B", "s": "0 s"}.get(unit, "0")
    if unit == "s":
        return scaled(value, [(1e-6, " µs"), (1e-3, " ms"), (1, " s"), (60, " mins"), (3600, " hours"), (86400, " days")])
    if unit == "bytes":
        return scaled(value, [(1, " B"), (2**10, " KiB"), (2**20, " MiB"), (2**30, " GiB")])
    return scaled(value, [(1, ""), (1e3, " K"), (1e6, " Mil")]) + (" ops/s" if unit == "ops" else "")


class Series:
    """One line: `points` are (seconds, number); `field` is the panel's field configuration with its overrides applied."""

    def __init__(self, name, points, field):
        self.name, self.points, self.field = name, points, field
        self.right = field.get("custom", {}).get("axisPlacement") == "right"
        self.bottom = {}  # what it is stacked on, by time

    def numbers(self):
        return [number for _, number in self.points if not math.isnan(number)]


def series_of(panel, results):
    """`results`: Prometheus's answer for each target (a matrix or a vector)."""
    found = []
    config = panel["fieldConfig"]
    for target, answer in zip(panel["targets"], results):
        for one in answer:
            name = re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda label: one["metric"].get(label.group(1), ""), target["legendFormat"])
            field = json.loads(json.dumps(config["defaults"]))
            for override in config["overrides"]:
                if re.search(override["matcher"]["options"].strip("/"), name):
                    for change in override["properties"]:
                        *path, last = change["id"].split(".")
                        place = field
                        for part in path:
                            place = place.setdefault(part, {})
                        place[last] = change["value"]
            values = one["values"] if "values" in one else [one["value"]]
            found.append(Series(name, [(float(time), float(number)) for time, number in values], field))
    return found


def ticks(top, unit):
    if top <= 0:
        return [0, 1]
    if unit == "bytes" and top > 2**20:
        return [tick * 2**20 for tick in ticks(top / 2**20, "")]
    step = 10 ** math.floor(math.log10(top / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= 4)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def legend(lines, max_rows):
    rows = "".join(f"<tr><td><span style='color:{colour}'>━</span> {html.escape(line.name)}</td>"
                   f"<td>{shown(sum(line.numbers()) / max(1, len(line.numbers())), line.field['unit'])}</td>"
                   f"<td>{shown(max(line.numbers(), default=math.nan), line.field['unit'])}</td></tr>" for colour, line in lines[:max_rows])
    more = f"<tr><td>and {len(lines) - max_rows} more, by scrolling</td></tr>" if len(lines) > max_rows else ""
    return f"<table><tr><td></td><th>mean</th><th>max</th></tr>{rows}{more}</table>"


def time_axis(span, at_x, height):
    start, end = span
    step = next((s for s in (5, 10, 20, 30, 60, 300) if (end - start) / s <= 7), 600)
    return "".join(f"<text x={at_x(start + i * step):.1f} y={height + 13} text-anchor=middle>{i * step} s</text>"
                   for i in range(int((end - start) / step) + 1))


def graph(panel, lines, size, span):
    if not lines:
        return "<div class=none>No data</div>"
    width, height = size
    max_rows = 7
    height -= 24 + 20 + 14 * (min(len(lines), max_rows) + 1 + (len(lines) > max_rows)) + 6
    left, right = 58, 58 if any(line.right for line in lines) else 12
    custom = panel["fieldConfig"]["defaults"]["custom"]
    if custom["stacking"]["mode"] == "normal":
        floor = {}
        for line in lines:
            line.bottom = dict(floor)
            for time, number in line.points:
                floor[time] = floor.get(time, 0) + (0 if math.isnan(number) else number)
    at_x = lambda time: left + (width - left - right) * (time - span[0]) / (span[1] - span[0])  # noqa: E731
    drawn, coloured = "", [(COLOURS[i % len(COLOURS)], line) for i, line in enumerate(lines)]
    for side in (False, True):
        mine = [(colour, line) for colour, line in coloured if line.right == side]
        if not mine:
            continue
        numbers = [number + line.bottom.get(time, 0) for _, line in mine for time, number in line.points if math.isfinite(number)]
        if custom.get("scaleDistribution", {}).get("type") == "log" and max(numbers, default=0) > 0:
            drawable = lambda number: math.isfinite(number) and number > 0  # noqa: E731
            low, high = (math.log10(find(filter(drawable, numbers))) for find in (min, max))
            scale = [10.0**power for power in range(math.floor(low), math.ceil(high) + 1)]
            part_of = lambda number, low=math.floor(low), high=math.ceil(high): (  # noqa: E731
                (math.log10(number) - low) / (high - low or 1) if number > 0 else 0)
        else:
            drawable = math.isfinite
            scale = ticks(max(numbers, default=0), mine[0][1].field["unit"])
            part_of = lambda number, top=scale[-1]: number / top  # noqa: E731
        at_y = lambda number, part_of=part_of: 6 + (height - 6) * (1 - part_of(number))  # noqa: E731
        for tick in scale:
            drawn += f"<line x1={left} x2={width - right} y1={at_y(tick):.1f} y2={at_y(tick):.1f} stroke='#2c3235'/>" if not side else ""
            drawn += (f"<text x={width - right + 4 if side else left - 5} y={at_y(tick) + 3:.1f} text-anchor={'start' if side else 'end'}>"
                      f"{shown(tick, mine[0][1].field['unit'])}</text>")
        for colour, line in mine:
            part = []
            for time, number in [*line.points, (math.inf, math.nan)]:
                if drawable(number) and (not part or time - part[-1][0] < 2.5):
                    part.append((time, at_x(time), at_y(number + line.bottom.get(time, 0)), at_y(line.bottom.get(time, 0))))
                    continue
                if part:
                    top = " ".join(f"{x:.1f},{y:.1f}" for _, x, y, _ in part)
                    under = " ".join(f"{x:.1f},{y:.1f}" for _, x, _, y in reversed(part))
                    drawn += (f"<polygon points='{top} {under}' fill='{colour}' opacity='{custom['fillOpacity'] / 100}'/>"
                              f"<polyline points='{top}' fill=none stroke='{colour}' stroke-width=1.3 />")
                part = [(time, at_x(time), at_y(number), at_y(0))] if drawable(number) else []
    return f"<svg width={width} height={height + 18}>{drawn}{time_axis(span, at_x, height)}</svg>{legend(coloured, max_rows)}"


def heatmap(panel, lines, size, span):
    """The buckets of a histogram are cumulative, so each is drawn without the one before it."""
    bounds = sorted(lines, key=lambda line: float(line.name))
    rows, before = [], {}
    for line in bounds:
        now = dict(line.points)
        rows.append((line.name, {time: max(0, number - before.get(time, 0)) for time, number in now.items()}))
        before = now
    while rows and not any(rows[-1][1].values()):
        rows.pop()
    while len(rows) > 1 and not any(rows[0][1].values()):
        rows.pop(0)
    if not rows:
        return "<div class=none>No data</div>"
    width, height = size[0], size[1] - 24 - 24
    left, top = 58, max(max(row.values()) for _, row in rows)
    tall = height / len(rows)
    at_x = lambda time: left + (width - left - 12) * (time - span[0]) / (span[1] - span[0])  # noqa: E731
    drawn = ""
    for i, (name, row) in enumerate(rows):
        y = height - (i + 1) * tall
        drawn += f"<text x={left - 5} y={y + tall / 2 + 4:.1f} text-anchor=end>{shown(float(name), panel['options']['yAxis']['unit'])}</text>"
        for time, number in row.items():
            if number > 0:
                drawn += (f"<rect x={at_x(time - 1):.1f} y={y:.1f} width={at_x(1) - at_x(0) + .3:.1f} height={tall - 1:.1f} "
                          f"fill='#ff9830' opacity={.15 + .85 * number / top:.2f} />")
    return f"<svg width={width} height={height + 18}>{drawn}{time_axis(span, at_x, height)}</svg>"


def stat(panel, lines, size, span):
    if not lines:
        return "<div class=none>No data</div>"
    field, options = panel["fieldConfig"]["defaults"], panel["options"]
    drawn, big = "", min(30, (size[1] - 40) / len(lines))
    for line in lines:
        value = next((number for _, number in reversed(line.points) if not math.isnan(number)), math.nan)
        steps = field.get("thresholds", {}).get("steps", [])
        colour = next((step["color"] for step in reversed(steps) if step["value"] is None or value >= step["value"]), "text")
        text = line.name if options["textMode"] == "name" else shown(value, field["unit"])
        for mapping in field.get("mappings", []):
            named = mapping["options"].get(f"{value:g}")
            text, colour = (named["text"], named["color"]) if named else (text, colour)
        if options["colorMode"] == "none":
            colour = "text"
        small = f"<div style='font-size:11px;font-weight:normal'>{html.escape(line.name)}</div>" \
            if options["textMode"] == "auto" and len(lines) > 1 else ""
        drawn += f"<div class=value style='font-size:{big:.0f}px;color:{NAMED[colour]}'>{small}{html.escape(text)}</div>"
        if options["graphMode"] == "area" and len(line.points) > 1:
            top = max(line.numbers(), default=0) or 1
            points = " ".join(f"{(time - span[0]) / (span[1] - span[0]) * size[0]:.1f},{30 - 28 * number / top:.1f}"
                              for time, number in line.points if math.isfinite(number))
            drawn += (f"<svg style='top:auto;bottom:0' width={size[0]} height=32><polyline points='{points}' fill=none "
                      f"stroke='{NAMED[colour]}' stroke-width=1.2 /></svg>")
    return f"<div style='margin-top:8px'>{drawn}</div>"


def page(dashboard, results, span, notes):
    """`results`: by panel id, a list with the answer for each target. Returns the page and its height."""
    head = 46 + 17 * len(notes)
    drawn, bottom = "", 0
    unit = WIDTH / 24
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        x, y, width, height = place["x"] * unit, head + place["y"] * (CELL + GAP), place["w"] * unit - GAP, place["h"] * (CELL + GAP) - GAP
        bottom = max(bottom, y + height)
        inside = ""
        if panel["type"] != "row":
            draw = {"timeseries": graph, "heatmap": heatmap, "stat": stat}[panel["type"]]
            inside = draw(panel, series_of(panel, results[panel["id"]]), (width, height), span)
        drawn += (f"<div class='panel {panel['type']}' style='left:{x + GAP / 2:.0f}px;top:{y}px;width:{width:.0f}px;height:{height}px'>"
                  f"<div class=title>{html.escape(panel['title'])}</div>{inside}</div>")
    said = "<br>".join(map(html.escape, notes))
    return (f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><body style='width:{WIDTH}px;height:{bottom + GAP}px'>"
            f"<h1>{html.escape(dashboard['title'])}</h1><div class=note>{said}</div>{drawn}</body>", bottom + GAP)
