"""Reports the results: a line for each run, a table, and the page docs/reference/compatibility.md. Thread rule: pure
functions."""

import dataclasses
import datetime
import pathlib
import subprocess

import acceptance
import rows

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/reference/compatibility.md"
BEGIN, END = "<!-- written by ./dev compat: {}: begin -->", "<!-- written by ./dev compat: {}: end -->"


@dataclasses.dataclass
class Result:
    root: str
    row: rows.Row
    outcomes: list
    wrong: list
    seconds: float


def version(root, prefix):
    """The installed version of the first package whose name begins with `prefix`, whatever version its name contains."""
    path = subprocess.run([HERE / "root", "path", root], capture_output=True, text=True, check=True).stdout.strip()
    for text in (pathlib.Path(path) / "etc/xschedd-compat-packages").read_text().splitlines():
        name, number = text.split("\t")
        if name.split(":")[0].rstrip("0123456789-") == prefix.rstrip("0123456789-") and not name.endswith("-dev"):
            return number
    return "?"


HEAD = ("root", "program", "package version", "ISA", "calls", "dispatches", "seen by the daemon", "held", "outcome", "date")


def cells(result):
    row = result.row
    done = result.outcomes
    calls = next((text.split()[0] for text in reversed(done[0].lines) if text.endswith(" failed")), "–") if done else "–"
    dispatches = sum(done[0].dispatches.values()) if done else 0
    last = done[2] if len(done) == 3 else None
    outcome = "equal"
    if result.wrong:
        outcome = "**different**: " + "; ".join(result.wrong).replace("|", "/").replace("\n", " ")
    elif row.fails:
        outcome = f"equal; ends with {done[0].status} in all three, as results are compared there"
    return (result.root, row.name, version(result.root, row.packages), row.isa.get(result.root, rows.ISA[result.root]),
            calls, str(dispatches), str(last.submitted) if last else "–",
            f"{last.held_ns / 1e6:.0f} ms, {last.actions} changes" if last else "–", outcome,
            datetime.datetime.now(datetime.timezone.utc).date().isoformat())


def line(result):
    root, name, number, isa, calls, dispatches, submitted, held, _, _ = cells(result)
    mark = "FAIL" if result.wrong else "PASS"
    return (f"{mark}  {root} {name:18} {number:22} {isa}  {calls:>5} calls {dispatches:>6} dispatches "
            f"{submitted:>6} seen  held {held}  {result.seconds:.0f} s")


def table(head, order, lines):
    """The lines whose first cells are in `order`, in that order; others, of rows that there are no more, are left out."""
    lines = sorted((one for one in lines if one[:2] in order), key=lambda one: order.index(one[:2]))
    return "\n".join("| " + " | ".join(one) + " |" for one in (head, ("---",) * len(head), *lines))


def programs(lines):
    return table(HEAD, [(root, row.name) for root in rows.ALL for row in rows.ROWS if root in row.roots], lines)


ACCEPTED = ("root", "section", "verdict", "what it says", "date")


def accepted(results):
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return [(result.root, name, verdict, result.lines[name].replace("|", "/"), today) for result in results
            for name, verdict in result.verdicts.items() if name in acceptance.MUST_BE_YES]


def verdicts(lines):
    return table(ACCEPTED, [(root, name) for root in rows.ALL for name in acceptance.MUST_BE_YES], lines)


def replace(text, what, lines, to_table):
    """`text` with the lines in its table `what`, in place of those that have the same first two cells."""
    before, rest = text.split(BEGIN.format(what))
    old, after = rest.split(END.format(what))
    known = {}
    for one in (*(tuple(cell.strip() for cell in entry.strip("|").split(" | ")) for entry in old.splitlines()), *lines):
        known[one[:2]] = one
    return f"{before}{BEGIN.format(what)}\n{to_table(known.values())}\n{END.format(what)}{after}"


def write(results, acceptances):
    """Puts the results into the page's tables."""
    text = replace(PAGE.read_text(), "programs", [cells(result) for result in results], programs)
    PAGE.write_text(replace(text, "acceptance", accepted(acceptances), verdicts))
