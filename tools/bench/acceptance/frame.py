"""The parts of a report: sections with a verdict in one line, skips with their reasons, and the time that is left.

Thread rule: pure, except for Budget, which reads the clock, and `load` and `write_whole`, which use files.
"""

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass, field
from typing import Callable, Dict, List, Optional

import schema

SCHEMA = "xschedctl/acceptance/1"
YES, PARTLY, NO, UNKNOWN = "yes", "partly", "no", "unknown"
NO_TIME = "no time was left; give more --minutes"
REPORT_IT = "please report it, with the bundle"
QUESTIONS = {"sound": "Is it sound here?", "harmless": "Does it do no harm?", "works": "Does it do what it says?",
             "worth": "Is it worth it here?"}


@dataclass
class Finding:
    level: str  # ok, warning, error
    what: str
    fix: str = ""  # what to do; empty: nothing


@dataclass
class Skipped:
    what: str
    why: str


@dataclass
class Row:
    name: str
    values: List[float]  # one for each column, finite
    note: str = ""


@dataclass
class Table:
    title: str
    columns: List[str]  # each with its unit
    rows: List[Row]
    drawn: List[str] = field(default_factory=list)  # columns that become bars


@dataclass
class Section:
    name: str  # of QUESTIONS
    verdict: str
    line: str
    findings: List[Finding] = field(default_factory=list)
    skipped: List[Skipped] = field(default_factory=list)
    seconds: float = 0.0
    tables: List[Table] = field(default_factory=list)


class Budget:
    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._end = clock() + minutes * 60

    def left_s(self) -> float:
        return max(0.0, self._end - self._clock())


def judge(name: str, findings: List[Finding], skipped: List[Skipped], all_well: str) -> Section:
    """The verdict: no with an error, partly with a warning, unknown without findings. Its line is the first bad finding."""
    for level, verdict in (("error", NO), ("warning", PARTLY)):
        bad = [finding for finding in findings if finding.level == level]
        if bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            remedy = f"; {bad[0].fix}" if bad[0].fix else ""
            return Section(name, verdict, bad[0].what + remedy + more, findings, skipped)
    if not findings:
        return Section(name, UNKNOWN, "nothing could be checked", findings, skipped)
    return Section(name, YES, all_well, findings, skipped)


def not_reached(name: str) -> Section:
    return Section(name, UNKNOWN, "no time was left", [], [Skipped(QUESTIONS[name], "no time was left; --continue does it")])


def failed(name: str, why: str) -> Section:
    """A section that raised an error; the others continue."""
    return Section(name, UNKNOWN, f"it could not be finished: {why}", [], [Skipped(QUESTIONS[name], why)])


def host_label(name: str, is_shown: bool) -> str:
    return name if is_shown else hashlib.sha256(name.encode()).hexdigest()[:8]


def document(header: Dict[str, object], sections: List[Section]) -> Dict[str, object]:
    return {"schema": SCHEMA, **header, "sections": [asdict(section) for section in sections]}


def sections_of(results: Dict[str, object]) -> List[Section]:
    return [Section(one["name"], one["verdict"], one["line"], [Finding(**finding) for finding in one["findings"]],
                    [Skipped(**skipped) for skipped in one["skipped"]], one["seconds"],
                    [Table(**{**table, "rows": [Row(**row) for row in table["rows"]]}) for table in one["tables"]])
            for one in results["sections"]]


def load(folder: str) -> Dict[str, object]:
    """Raises a ValueError with one line that says why it is not a report."""
    path = os.path.join(folder, "results.json")
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; name a folder that acceptance has written") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}; begin a new report") from error
    wrong = schema.problems(schema.read(), results)
    if wrong:
        raise ValueError(f"{path} is not of {SCHEMA}: {wrong[0]}; begin a new report")
    return results


def write_whole(path: str, text: str) -> None:
    """Replaces the file as a whole: a kill leaves the old or the new one."""
    temporary = path + ".new"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def find(sections: List[Section], name: str) -> Optional[Section]:
    return next((section for section in sections if section.name == name), None)
