"""A report's pages, report.md and report.html, and the comparison of two. Pure.

Thread rule: any thread.
"""

import html
from typing import Dict, List

import tables
from frame import QUESTIONS, Section, find, sections_of

STAND_IN = "Made on the software GPU, a stand-in: nothing here says anything about a GPU."
MARKS = {"yes": "✔", "partly": "◐", "no": "✘", "unknown": "?"}
COLOURS = {"yes": "#2a7d3c", "partly": "#b57a00", "no": "#b3261e", "unknown": "#777777"}


def title(results: Dict[str, object]) -> str:
    return f"xschedd acceptance: {results['host']}, {results['date']}"


def notes(results: Dict[str, object]) -> List[str]:
    """Notes that a reader needs before the first verdict."""
    return ([STAND_IN] if results["stand_in"] else []) + (
        [f"A GPU was in use at the start: {results['in_use']}."] if results["in_use"] else [])


def markdown(results: Dict[str, object]) -> str:
    lines = ["# " + title(results), ""]
    for note in notes(results):
        lines += [f"**{note}**", ""]
    lines += ["| | verdict | |", "|---|---|---|"]
    sections = sections_of(results)
    lines += [f"| {QUESTIONS[one.name]} | {one.verdict} | {_cell(one.line)} |" for one in sections]
    for one in sections:
        lines += ["", f"## {QUESTIONS[one.name]}", "", f"**{one.verdict}**: {one.line} ({one.seconds:.1f} s)", ""]
        lines += [f"- {finding.level}: {finding.what}" + (f"; {finding.fix}" if finding.fix else "")
                  for finding in one.findings]
        lines += [f"- skipped: {skipped.what}: {skipped.why}" for skipped in one.skipped]
        lines += [line for table in one.tables for line in tables.markdown(table)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def picture(section: Section) -> str:
    """One bar with the numbers of findings by level, and of skips."""
    counts = [(sum(finding.level == level for finding in section.findings), COLOURS[colour], level)
              for level, colour in (("ok", "yes"), ("warning", "partly"), ("error", "no"))]
    counts.append((len(section.skipped), COLOURS["unknown"], "skipped"))
    total = sum(count for count, _, _ in counts) or 1
    parts, left = [], 0.0
    for count, colour, label in counts:
        if count:
            width = 600 * count / total
            parts.append(f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="18" fill="{colour}">'
                         f"<title>{count} {label}</title></rect>")
            left += width
    return f'<svg width="600" height="18" role="img">{"".join(parts)}</svg>'


def page(results: Dict[str, object]) -> str:
    """The whole page in one file, which loads no other."""
    body = [f"<h1>{html.escape(title(results))}</h1>"]
    body += [f"<p><strong>{html.escape(note)}</strong></p>" for note in notes(results)]
    for one in sections_of(results):
        body.append(f'<h2 style="color:{COLOURS[one.verdict]}">{MARKS[one.verdict]} {html.escape(QUESTIONS[one.name])} '
                    f"{one.verdict}</h2><p>{html.escape(one.line)}</p>{picture(one)}<ul>")
        body += [f"<li>{finding.level}: {html.escape(finding.what)}" +
                 (f"; <em>{html.escape(finding.fix)}</em>" if finding.fix else "") + "</li>" for finding in one.findings]
        body += [f"<li>skipped: {html.escape(skipped.what)}: {html.escape(skipped.why)}</li>" for skipped in one.skipped]
        body += ["</ul>", *map(tables.page, one.tables)]
    return ('<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>' + html.escape(title(results)) +
            "</title><style>body{font:15px sans-serif;max-width:60em;margin:2em auto}</style>\n" + "\n".join(body) +
            "\n</html>\n")


def summary(results: Dict[str, object]) -> List[str]:
    return notes(results) + [f"{one.name}: {one.verdict}: {one.line}" for one in sections_of(results)]


def comparison(before: Dict[str, object], after: Dict[str, object]) -> List[str]:
    """A line for each section, and below it the findings of only one report."""
    lines = [STAND_IN] if before["stand_in"] or after["stand_in"] else []
    first, second = sections_of(before), sections_of(after)
    for name in QUESTIONS:
        one, other = find(first, name), find(second, name)
        verdicts = [section.verdict if section else "absent" for section in (one, other)]
        lines.append(f"{name}: {verdicts[0]}" + (f" -> {verdicts[1]}" if verdicts[0] != verdicts[1] else ", as before"))
        said = [[f"{finding.level}: {finding.what}" for finding in section.findings] if section else []
                for section in (one, other)]
        lines += [f"  - {text}" for text in said[0] if text not in said[1]]
        lines += [f"  + {text}" for text in said[1] if text not in said[0]]
    return lines
