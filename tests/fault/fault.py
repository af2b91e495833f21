"""The fault harness: `./dev fault` (docs/contributing/fault.md).

8 launching clients with checked results, a daemon under a service manager, and at each point one fault chosen by the seed.
Prints a line for each point where something failed, a histogram of blackouts, and as its last line a JSON summary. Exit
code 1 if anything failed. Thread rule: one thread; signals and namespaces are this process's own.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report  # noqa: E402
from world import World, own_mounts  # noqa: E402: before harness, whose path it adds
from faults import FAULTS, choose  # noqa: E402
import harness  # noqa: E402: by world, from tests/e2e

QUIET = ["client_kill", "client_stop", "client_fork", "client_held", "half_record", "emfile", "clock", "wedge"]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev fault", description=__doc__.split("\n\n")[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100, help="how many faults (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice (default 1)")
    parser.add_argument("--only", action="append", choices=sorted(FAULTS), help="only this fault; may be repeated")
    parser.add_argument("--each", action="store_true", help="first each fault once, in an order by the seed")
    parser.add_argument("--point", type=int, help="only the point of this number, --points times")
    parser.add_argument("--daemon", type=pathlib.Path, default=harness.daemon_path,
                        help="another daemon, such as one with a sanitizer")
    parser.add_argument("--other", type=pathlib.Path, metavar="BUILD",
                        help="the build folder of another release: upgrades go to its daemon and back, every second client has its shim")
    parser.add_argument("--store-order", choices=("sent", "systemd"), default="sent",
                        help="the order of stored descriptors: as sent, or random, as systemd promises none")
    parser.add_argument("--limit-ms", type=int, default=200,
                        help="a call that is held longer than this beyond the policy is a failure (200); more for a busy machine")
    parser.add_argument("--no-watchdog", action="store_true", help="no WATCHDOG_USEC for the daemon")
    parser.add_argument("--churn", type=int, nargs="?", const=100_000, metavar="N",
                        help="instead: N connect / work / kill -9 cycles (100000)")
    parser.add_argument("--churn-hip", type=int, default=500, metavar="N", help="of these, with real HIP clients (500)")
    parser.add_argument("--selftest", action="store_true", help="instead: run with sabotage, which must be found each time")
    parser.add_argument("--verbose", action="store_true", help="a line for each point")
    options = parser.parse_args(arguments)
    options.daemon = options.daemon.resolve()
    options.other = options.other and options.other.resolve()
    options.before = []
    options.how = {}  # sabotage.py
    return options


def one_point(world, number, name, numbers):
    """Inflicts one fault; returns the seconds that it took."""
    began = time.monotonic()
    world.point = {"point": number, "fault": name}
    world.starved = 0
    world.await_all(missing=1)
    time.sleep(numbers.uniform(0, 0.03))  # at any moment of the clients' work
    failures = len(world.failures)
    inflict(world, name, numbers)
    if world.options.verbose or len(world.failures) > failures:
        print(f"point {number}: {name} {world.point.get('details', '')} {time.monotonic() - began:.2f} s", flush=True)
    return time.monotonic() - began


def inflict(world, name, numbers):
    """One fault, after which everything must continue. A fault that could not be made counts as a failure but does not end
    the run."""
    try:
        world.point["details"] = FAULTS[name][0](world, numbers)
    except (AssertionError, OSError, ValueError) as error:
        world.fail(f"{type(error).__name__}: {error}")
    world.recover()


def quiet_end(world, numbers):
    """One daemon under faults that do not end it; nothing may leak."""
    world.expected_ends += 1
    world.manager.restart()
    world.point = {"point": "end", "fault": "leaks"}
    world.recover()
    for name in QUIET:
        inflict(world, name, numbers)
    world.await_all()
    settle(world)
    before = world.process_facts()
    for i in range(max(8, min(40, world.options.points // 10))):
        inflict(world, QUIET[i % len(QUIET)], numbers)
    world.await_all()
    settle(world)
    after = world.process_facts()
    for name, spare in (("descriptors", 0), ("threads", 6)):  # gRPC's pool of threads comes and goes with the load
        if after[name] > before[name] + spare:
            world.fail(f"leaked: {name} {before[name]} before, {after[name]} after with the same clients")
    return before, after


def settle(world):
    """Waits until the figures are stable."""
    last = None
    for _ in range(50):
        world.wait(world._sees_exactly, "xschedctl ps shows the live clients")
        facts = world.process_facts()
        if last and all(facts[name] == last[name] for name in ("descriptors", "threads")):
            return
        last = facts
        time.sleep(0.1)


def run(options):
    own_mounts()
    began = time.monotonic()
    counts, took = {}, []
    firsts = random.Random(options.seed).sample(sorted(FAULTS), len(FAULTS)) if options.each else []
    world = World(options)
    before = after = None
    try:
        world.populate()
        for number in range(options.points):
            index = number if options.point is None else options.point
            numbers = random.Random(f"{options.seed}/{index}")
            name = firsts.pop() if firsts else choose(numbers, options.only)
            counts[name] = counts.get(name, 0) + 1
            took.append(one_point(world, index, name, numbers))
            if options.how and any(options.how["word"] in failure["failure"] for failure in world.failures):
                return 1
            if len(world.failures) > 20:
                print("too many failures: stopped", flush=True)
                return 1
            if options.how.get("ends"):
                world.manager.kill(9)
        before, after = quiet_end(world, random.Random(f"{options.seed}/end"))
        world.point = {"point": "end", "fault": "none"}
        world.end()
        world.judge_calls()
    except KeyboardInterrupt:
        world.fail("interrupted")
    finally:
        log = world.manager.log_text()
        if world.failures and not options.how:
            kept = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"xschedd-fault-{os.getpid()}.log"
            kept.write_text(log)
            print(f"the daemon's log: {kept}", flush=True)
        world.close()
    summary = report.summary(world, options, counts, took, before, after, time.monotonic() - began)
    report.print_blackouts(world.blackouts)
    print(json.dumps(summary), flush=True)
    return 1 if world.failures else 0


def main():
    options = parse(sys.argv[1:])
    if options.selftest:
        import sabotage
        return sabotage.run(options, run)
    if options.churn is not None:
        import churn
        return churn.run(options)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
