"""The results in words: a line while it runs, a table, and the page docs/compatibility.md. Thread rule: pure functions."""

import dataclasses
import datetime
import pathlib
import subprocess

import rows

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/compatibility.md"
BEGIN, END = "<!-- written by ./dev compat: begin -->", "<!-- written by ./dev compat: end -->"


@dataclasses.dataclass
class Result:
    root: str
    row: rows.Row
    outcomes: list
    wrong: list
    seconds: float


def version(root, beginning):
    """The installed version of the first package whose name begins so."""
    path = subprocess.run([HERE / "root", "path", root], capture_output=True, text=True, check=True).stdout.strip()
    for text in (pathlib.Path(path) / "etc/xschedd-compat-packages").read_text().splitlines():
        name, number = text.split("\t")
        if name.split(":")[0].rstrip("0123456789-") == beginning.rstrip("0123456789-") and not name.endswith("-dev"):
            return number
    return "?"


def cells(result):
    row = result.row
    done = result.outcomes
    calls = next((text.split()[0] for text in reversed(done[0].lines) if text.endswith(" failed")), "–") if done else "–"
    dispatches = sum(done[0].dispatches.values()) if done else 0
    last = done[2] if len(done) == 3 else None
    return (result.root, row.name, version(result.root, row.packages), row.isa.get(result.root, rows.ISA[result.root]),
            calls, str(dispatches), str(last.submitted) if last else "–",
            f"{last.held_ns / 1e6:.0f} ms, {last.actions} changes" if last else "–",
            "different: see below" if result.wrong else "as without it; fails there too" if row.fails else "equal")


def line(result):
    root, name, number, isa, calls, dispatches, submitted, held, outcome = cells(result)
    mark = "FAIL" if result.wrong else "PASS"
    return (f"{mark}  {root} {name:12} {number:22} {isa}  {calls:>5} calls {dispatches:>6} dispatches "
            f"{submitted:>6} seen  held {held}  {result.seconds:.0f} s")


def table(results):
    head = ("root", "program", "package version", "ISA", "calls", "dispatches", "seen by the daemon", "held", "outcome")
    body = [head, ("---",) * len(head), *(cells(result) for result in results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def write(results, seed):
    """Puts the table into the page, between its two marks."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    wrong = "".join(f"- {result.root} {result.row.name}: {sentence}\n" for result in results for sentence in result.wrong)
    PAGE.write_text(f"{before}{BEGIN}\n{today}, `./dev compat --seed {seed}`:\n\n{table(results)}\n\n{wrong}{END}{after}")
