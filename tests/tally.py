"""Adds up Meson's logs: `tally.py [--ci] FOLDER...` prints each skip with its reason, which comparisons of times were repeated,
and as its last line `N passed, N failed, N skipped`.

Exit code 1: a test failed, none passed, or more than one comparison, and more than one in ten, was repeated. With --ci
also if a test was skipped for a reason that allowed_skips does not name.

It reads these lines of a test's output: `skipped: NAME: REASON` (run.py, as_user.h), and `outside its limits: VALUE` and
`measured: N retries` (e2e/harness.py).
"""

import collections
import fnmatch
import glob
import json
import pathlib
import re
import sys

ALLOWED = pathlib.Path(__file__).with_name("allowed_skips")


def allowed():
    """Pairs of patterns: for a test that is skipped, and for the reason."""
    lines = [line.strip() for line in ALLOWED.read_text(encoding="utf-8").splitlines()]
    return [tuple(line.split(": ", 1)) for line in lines if line and not line.startswith("#")]


def records(folders):
    for folder in folders:
        for path in glob.glob(folder + "/meson-logs/testlog*.json"):
            with open(path, encoding="utf-8", errors="replace") as log:
                yield from (json.loads(line) for line in log if line.strip())


def lines_of(record, begin):
    return [line[len(begin):] for line in record.get("stdout", "").splitlines() if line.startswith(begin)]


def main(words):
    is_ci = words[:1] == ["--ci"]
    count, skips, retries = collections.Counter(), [], []
    for record in records(words[is_ci:]):
        count[record["result"]] += 1
        # "PROJECT:SUITE / TEST"; from Meson 1.8 on "SUITE - PROJECT:TEST".
        name = re.split(" / | - [^:]*:", record["name"], maxsplit=1)[-1]
        said = lines_of(record, "skipped: ")
        if record["result"] == "SKIP" and not said:
            said = ["all: no reason was given"]
        skips += [(name, *line.partition(": ")[::2]) for line in said]
        retries += [int(line.split()[0]) for line in lines_of(record, "measured: ")]
        for value in lines_of(record, "outside its limits: "):
            print(f"repeated: {name}: {value}")

    passed = count.pop("OK", 0) + count.pop("EXPECTEDFAIL", 0)
    skipped = count.pop("SKIP", 0) + count.pop("IGNORED", 0)
    failed = sum(count.values())
    patterns = allowed()
    for test, what, reason in skips:
        known = any(fnmatch.fnmatchcase(f"{test} {what}", one) and fnmatch.fnmatchcase(reason, why) for one, why in patterns)
        print(f"skipped: {test}: {what}: {reason}" + ("" if known else f" (not in tests/{ALLOWED.name})"))
        if is_ci and not known:
            failed += 1
    again = sum(number > 0 for number in retries)
    if retries:
        print(f"comparisons of times: {len(retries)}, of which repeated: {again}")
    if again > 1 and 10 * again > len(retries):
        print("that is more than one in ten: counted as a failure")
        failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
