"""Runs third-party programs with and without xschedd: `./dev strangers FOLDER` (docs/contributing/testing.md).

    strangers.py FOLDER [--only GLOB]... [--table FILE] [--jobs N]

FOLDER: a checkout or a build of ROCm's hip-tests, rocm-examples or the like. Every source file with a main() and HIP is
compiled by hipcc, and every program is run; each test of a Catch2 program runs by itself. Nothing is written to
FOLDER.

Each runs on the software GPU: natively, twice; tracked and held, under the differential suite's scheduler; and held while its
daemon is killed. What it prints and its exit status must be the same. Times and rates, and numbers that differ between the
two native runs, are left out of the comparison. Third-party kernels compute nothing there, they only take time: so most
programs report wrong results, also natively, and the test compares that they print the same.

Prints a line for each, and a table; last a line `N passed, N failed, N skipped`. Exit status 0: none failed. Thread rule: one
thread a process; a process for each program.
"""

import argparse
import collections
import concurrent.futures
import difflib
import fnmatch
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "differential"), str(here.parent / "e2e")]

import evidence  # noqa: E402
import harness  # noqa: E402
import hostile  # noqa: E402

DEADLINE_S = 120.0
COMPILE_S = 300.0
LIMIT_BYTES = 1 << 22  # of a program's output
NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TIME = re.compile(r"\s*\d+(?:\.\d+)?\s*(?:[nuµm]?s|secs?|(?:milli|micro|nano)?seconds?|[KMGT]i?B/s|[KMGT]?FLOPS?)\b", re.I)
MODES = ("held", "killed")

Row = collections.namedtuple("Row", "name native held killed was_held passed text")


# ---- programs and tests ------------------------------------------------------------------------------------------------
def is_program(path):
    if not os.access(path, os.X_OK) or not path.is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and path.suffix != ".so" and ".so." not in path.name


def is_source(path):
    if path.suffix not in (".hip", ".cpp", ".cc"):
        return False
    text = path.read_text(errors="replace")
    return re.search(r"\bint\s+main\s*\(", text) is not None and "hip/hip_runtime" in text


def compiled(path, folder, into):
    """The program of a source file, or the first error. Headers of a checkout are beside the source or in a folder Common."""
    program = into / str(path.relative_to(folder.parent)).replace("/", "_")
    if program.exists() and program.stat().st_mtime > path.stat().st_mtime:
        return program, ""
    includes = {path.parent, *(part for name in ("Common", "common", "include") for part in folder.rglob(name))}
    command = ["hipcc", "--offload-arch=gfx90a", "-std=c++17", "-w", *(f"-I{one}" for one in sorted(includes)), str(path), "-o",
               str(program), "-lpthread"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"hipcc took longer than {COMPILE_S:.0f} s"
    errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:]
    why = errors[0].replace(f"{folder}/", "") if errors else f"hipcc: {done.returncode}"
    return (program, "") if done.returncode == 0 else (None, why)


def tests_of(program):
    """The names of a Catch2 program's tests; none: it is not one. Runs on a software GPU, because without a device HIP 5.2 crashes
    before main() in a program with a variable in managed memory."""
    node = harness.Node()
    try:
        process = node.start(program, "--list-test-names-only", shim=False, trace=False, environment={"SOFTGPU_DEVICES": "1"})
        try:
            names = [line.strip() for line in process.communicate(timeout=20)[0].splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
            return []
    finally:
        node.close()
    is_catch2 = any("Unit_" in name for name in names) and all(re.fullmatch(r"[\w ./:<>,-]+", name) for name in names)
    return names if is_catch2 else []


def selected(test):
    """The arguments which make a Catch2 program run this test only (a comma would be an "or"), up to its 99th failed check, because
    some check millions of numbers."""
    return [test.replace(",", "\\,"), "--abortx", "99"]


# ---- running -------------------------------------------------------------------------------------------------------------
class KillWhenHeld:
    """Holds the program, and kills the daemon once one of its threads waits at the gate; no other daemon is started."""

    def __init__(self, node):
        self.node = node
        self.program = evidence.Watched(node, [])
        self.is_over = False
        self.pid = None

    def act(self):
        if self.is_over:
            return 0.1
        for pid in self.program.look():
            self.node.ctl("hold", "--pid", pid, check=False)
        if self.program.was_held:
            self.node.stop_daemon(signal.SIGKILL)
            self.is_over = True
        return 0.005


def run(words, cwd, mode, seed):
    """One run: (exit status, lines of output and of errors, whether it was held)."""
    node = harness.Node()
    try:
        scheduler = None
        if mode != "native":
            node.start_daemon()
            numbers = random.Random(f"{seed} {words}")
            scheduler = hostile.Scheduler(node, numbers, 1) if mode == "held" else KillWhenHeld(node)
        out, err = node.dir / "out", node.dir / "err"
        environment = {"XSCHEDD_LOG": "info", "SOFTGPU_DEVICES": "1"}
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            process = node.start(*words, shim=mode != "native", trace=False, environment=environment, stdout=out_file,
                                 stderr=err_file, cwd=cwd)
        if scheduler:
            scheduler.pid = process.pid
        end = time.monotonic() + DEADLINE_S
        while process.poll() is None and time.monotonic() < end:
            pause = scheduler.act() if scheduler else 0.01
            time.sleep(min(pause, 0.05))
        status = process.poll()
        if status is None:
            process.kill()
            process.wait()
        expected = "restarts" if mode == "killed" else "hostile"
        errors = [line for line in text_of(err) if mode == "native" or not evidence.is_expected(expected, line)]
        return "hung" if status is None else status, text_of(out), errors, bool(scheduler and scheduler.program.was_held)
    finally:
        node.close()


def text_of(path):
    with open(path, "rb") as file:
        return [TIME.sub(" # s", line) for line in file.read(LIMIT_BYTES).decode(errors="replace").splitlines()]


def skipped(name, why):
    return Row(name, why.replace("|", "/")[:160], "-", "-", "-", None, "")


def compare(name, words, cwd, seed):
    first = run(words, cwd, "native", seed)
    if first[0] == "hung":
        return skipped(name, "does not end natively")
    second = run(words, cwd, "native", seed)
    fixed = [set(first[part]) & set(second[part]) for part in (1, 2)]

    def shown(result):
        return [[line if line in fixed[part - 1] else NUMBER.sub("#", line) for line in result[part]] for part in (1, 2)]

    reference = shown(first)
    if first[0] != second[0] or reference != shown(second):
        return skipped(name, "two native runs differ")
    cells, text, was_held = [], [], False
    for mode in MODES:
        result = run(words, cwd, mode, seed)
        was_held = was_held or result[3]
        lines = [] if result[0] == first[0] else [f"exit status {first[0]} natively, {result[0]} {mode}"]
        for what, before, after in zip(("output", "errors"), reference, shown(result)):
            if before != after:
                lines += [f"{what}: {line}" for line in list(difflib.unified_diff(before[:999], after[:999], lineterm="", n=1))[2:40]]
                lines += [f"{what}: {len(before)} lines natively, {len(after)} lines"]
        cells.append("differs" if lines else "same")
        text += [f"  {mode}: {line}" for line in lines]
    return Row(name, f"exit {first[0]}", *cells, "yes" if was_held else "no", not text, "\n".join(text))


def table(rows):
    lines = ["| program | natively | tracked and held | daemon killed | was held |", "|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {row.name} | {row.native} | {row.held} | {row.killed} | {row.was_held} |" for row in rows])


def work(name, path, test, folder, into, seed):
    """One row: compiles the program if necessary, and runs it in its folder."""
    program = path
    if is_source(path):
        program, why = compiled(path, folder, into)
        if program is None:
            return skipped(name, "not compiled: " + why)
    return compare(name, [program, *selected(test)] if test else [program], path.parent, seed)


def found(folder, patterns):
    """[(name, path of program or source, its test or nothing)]."""
    def is_wanted(name):
        return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    tasks = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts):
        name = str(path.relative_to(folder))
        if not is_source(path) and not is_program(path):
            continue
        for test in (tests_of(path) if is_program(path) else []) or [""]:
            full = f"{name}: {test}" if test else name
            if is_wanted(full):
                tasks.append((full, path, test))
    return tasks


def main():
    parser = argparse.ArgumentParser(prog="./dev strangers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="a checkout or a build of third-party HIP programs")
    parser.add_argument("--only", action="append", metavar="GLOB", help="only these; may be repeated")
    parser.add_argument("--table", type=pathlib.Path, help="also write the table to this file")
    parser.add_argument("--seed", type=int, default=1, help="what decides the holds (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side (%(default)s)")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if not folder.is_dir():
        parser.error(f"{folder} is no folder")
    into = harness.BUILD / "strangers"
    into.mkdir(exist_ok=True)
    rows = []
    with concurrent.futures.ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
        futures = [pool.submit(work, *task, folder, into, arguments.seed) for task in found(folder, arguments.only)]
        for future in futures:
            row = future.result()
            rows.append(row)
            print(f"{row.name}: {row.native}; held: {row.held}, daemon killed: {row.killed}", flush=True)
            if row.text:
                print(row.text, flush=True)
    print(table(rows))
    if arguments.table:
        arguments.table.write_text(f"`./dev strangers {folder.name}`, {time.strftime('%Y-%m-%d')}:\n\n{table(rows)}\n", encoding="utf-8")
    count = collections.Counter(row.passed for row in rows)
    print(f"{count[True]} passed, {count[False]} failed, {count[None]} skipped", flush=True)
    return 1 if count[False] or not count[True] else 0


if __name__ == "__main__":
    sys.exit(main())
