"""`./dev fault --selftest`: tests that the harness finds errors. Each sabotage is outside the product: a tenant that
misbehaves, a library preloaded into the daemon, a daemon with another policy. With each, a short run must fail for the reason
that was introduced. Thread rule: one thread.
"""

import contextlib
import copy
import io
import json

from faults import FAULTS

# The sabotage; the options of its run; the faults that reveal it; a word that the failure must contain.
CASES = [
    ("a client computes something else", {"tenant": "wrong"}, ["client_stop"], "wrong result"),
    ("a client crashes", {"tenant": "crash"}, ["client_stop"], "client ended by itself"),
    ("calls take long for no reason", {"tenant": "held"}, ["client_stop"], "held beyond policy"),
    ("leases end far too late: a stopped daemon still holds clients", {"lease_ms": 10_000}, ["stop"],
     "held while the daemon was down"),
    ("every connection leaks a descriptor", {"preload": "fault_leak.so"}, ["client_kill"], "descriptors"),
    ("the policy is not restored", {"arguments": ["--policy", "fifo"]}, ["kill"], "policy not restored"),
    ("the daemon ends by itself now and then", {"ends": True}, ["client_stop"], "ended by itself"),
]


def run(options, run_points):
    missed = []
    for title, how, faults, word in CASES:
        said = io.StringIO()
        case = copy.copy(options)
        case.only, case.points, case.point, case.selftest = faults, 6, None, False
        case.how = {**how, "word": word}  # a run ends when it has found that
        assert set(faults) <= set(FAULTS)
        with contextlib.redirect_stdout(said):
            code = run_points(case)
        failures = [line for line in said.getvalue().splitlines() if line.startswith("FAILURE:")]
        found = code != 0 and any(word in line for line in failures)
        print(f"{'found ' if found else 'MISSED'}  {title}: {failures[0][:200] if failures else 'nothing was reported'}", flush=True)
        if not found:
            missed.append(title)
            print("\n".join(failures[:5]))
    print(json.dumps({"selftest": len(CASES), "missed": missed}), flush=True)
    return 1 if missed else 0
