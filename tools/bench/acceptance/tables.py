"""A report's tables as text and as pictures. Pure.

Thread rule: any thread.
"""

import html
from typing import List

from benchlib.picture import MUTED, Canvas
from frame import Row, Table

WIDTH, LEFT, BAR, STEP = 600, 190, 12, 16
COLOURS = ("#8c959f", "#bc4c00", "#1f6feb")  # alone, natively, under xschedd


def figure(value: float) -> str:
    return f"{value:d}" if isinstance(value, int) else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def markdown(table: Table) -> List[str]:
    lines = ["", f"**{table.title}**", "", "| | " + " | ".join(table.columns) + " | |", "|---" * (len(table.columns) + 2) + "|"]
    return lines + ["| " + " | ".join([row.name, *map(figure, row.values), row.note.replace("|", "\\|")]) + " |"
                    for row in table.rows]


def picture(table: Table, row: Row) -> str:
    """A bar for each drawn column, from the same zero to the row's largest."""
    drawn = [(name, max(0.0, row.values[table.columns.index(name)])) for name in table.drawn]
    most = max([value for _, value in drawn], default=0) or 1
    canvas = Canvas([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{STEP * len(drawn)}" role="img" '
                     'font-family="sans-serif">'])
    for number, (name, value) in enumerate(drawn):
        colour = COLOURS[(number + len(COLOURS) - len(drawn)) % len(COLOURS)]
        canvas.text(0, STEP * number + BAR - 1, name, 11, MUTED)
        canvas.box(LEFT, STEP * number, (WIDTH - LEFT - 60) * value / most, BAR, colour)
        canvas.text(LEFT + (WIDTH - LEFT - 60) * value / most + 4, STEP * number + BAR - 1, figure(value), 11)
    canvas.add("</svg>")
    return "".join(canvas.parts)


def page(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    body = []
    for row in table.rows:
        cells = "".join(f'<td align="right">{figure(value)}</td>' for value in row.values)
        body.append(f"<tr><td>{html.escape(row.name)}</td>{cells}<td>{html.escape(row.note)}</td></tr>")
        if table.drawn:
            body.append(f'<tr><td></td><td colspan="{len(table.columns) + 1}">{picture(table, row)}</td></tr>')
    return f"<h3>{html.escape(table.title)}</h3><table><tr><th></th>{head}<th></th></tr>{''.join(body)}</table>"
