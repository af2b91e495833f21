"""Turns gcov's counts into conditions of the source: which way each was taken.

gcov counts the arcs that leave a block of the program. Every call that may throw has two, so most arcs are the compiler's:
an arc for an exception is left out here, and so is the arc beside it, which then decides nothing. gcov's JSON marks these
arcs; its text output, which gcovr 5.2 reads, marks them only on lines that were reached, so that there every call on an
unreached line counts as a branch not taken.
Lines without a condition in the source are not counted either: there the compiler destroys partly built objects after an
exception, tests pointers before deleting, or compares member by member. Only lines with a condition count (CONDITION).
If the same source is compiled several times (inline functions, template instances), it counts once: taken if taken in any.
"""

import collections
import json
import pathlib
import re
import subprocess
from typing import Dict, Iterable, List, NamedTuple, Set, Tuple

CONDITION = re.compile(r"\b(if|for|while|do|switch)\b|&&|\|\||\?")
GOES_ON = re.compile(r"(&&|\|\||\?|:)$")  # the condition continues on the next line

Place = Tuple[int, int, int, int, int]  # line, the function's start (line, column), how many arcs there, which of them


class Source(NamedTuple):
    lines: Dict[int, int]  # how often each line was reached
    arcs: Dict[Place, int]  # how often each arc was taken

    def taken(self) -> int:
        return sum(1 for count in self.arcs.values() if count > 0)

    def missing(self) -> List[int]:
        return sorted({place[0] for place, count in self.arcs.items() if count == 0})


def conditional(branches: List[dict]) -> List[int]:
    """Counts of the arcs that are not for exceptions. gcov lists a block's arcs consecutively."""
    kept: List[int] = []
    index = 0
    while index < len(branches):
        pair = branches[index:index + 2]
        if len(pair) == 2 and pair[0]["throw"] != pair[1]["throw"]:
            index += 2
            continue
        if not branches[index]["throw"]:
            kept.append(branches[index]["count"])
        index += 1
    return kept


def with_condition(path: pathlib.Path) -> Set[int]:
    """Numbers of the lines that have a condition."""
    found: Set[int] = set()
    goes_on = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0].rstrip()
        if goes_on or CONDITION.search(code):
            found.add(number)
        goes_on = GOES_ON.search(code) is not None
    return found


def read(notes: Iterable[pathlib.Path], build: pathlib.Path, root: pathlib.Path) -> Dict[str, Source]:
    """For each source in these object files' notes (*.gcno), by its path below `root`."""
    conditions: Dict[pathlib.Path, Set[int]] = {}
    found: Dict[str, Source] = collections.defaultdict(lambda: Source({}, {}))
    for note in notes:
        said = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", str(note)], cwd=build, check=True,
                              capture_output=True, text=True).stdout
        for document in said.splitlines():
            for one in json.loads(document)["files"]:
                path = (build / one["file"]).resolve()
                if root not in path.parents or build in path.parents:
                    continue
                if path not in conditions:
                    conditions[path] = with_condition(path)
                add(one, conditions[path], found[str(path.relative_to(root))])
    return found


def add(one: dict, conditions: Set[int], source: Source) -> None:
    starts = {function["name"]: (function["start_line"], function["start_column"]) for function in one["functions"]}
    for line in one["lines"]:
        number = line["line_number"]
        source.lines[number] = source.lines.get(number, 0) + line["count"]
        counts = conditional(line["branches"]) if number in conditions else []
        start = starts.get(line.get("function_name", ""), (0, 0))
        for index, count in enumerate(counts):
            place = (number, *start, len(counts), index)
            source.arcs[place] = source.arcs.get(place, 0) + count
