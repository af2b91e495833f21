"""The target of faults: a software GPU with two devices, a daemon under a service manager, and 8 launching clients.

Device 0 has two bursty important clients and four steady ones below them, which are held now and then. Device 1 has one that
is never idle and one below it, the sentinel: its gate must be shut whenever the policy is in effect (except for the
starvation guard's turns), so it shows how long the policy was not in effect. Clients live across many points; one that a
fault kills is replaced. Thread rule: one thread (the service manager has its own).
"""

import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import subprocess
import time

from tenants import LEASE_MS, PATIENCE_S, SABOTAGE_PATIENCE_S, TENANTS, Tenant, Watch  # before harness, whose path it adds
import harness
from diary import KINDS, boards
from lawful import LINGER_NS, MS, Held
from service_manager import ServiceManager

WORTH_A_LOOK_NS = 20 * MS  # shorter calls, less their noise, cannot be failures: only the longest is noted
DEVICE_LIMIT_NS = 5000 * MS
SAVED_NS = 250 * MS
CONFIG = """[daemon]
lease_ms = {lease_ms}
[policy]
name = "priority"
guard_ms_per_s = 50
"""
# A sanitizer that gets no memory itself, where a fault takes it, has found nothing.
SANITIZER = re.compile(r"ERROR: \w+Sanitizer(?! failed to allocate|: allocator is out of memory)|WARNING: ThreadSanitizer|runtime error:|terminate called|Assertion .* failed")
PCI_ADDRESS = "0000:05:00.0"  # of the software GPU's first device


class World(harness.Node):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.patience_s = SABOTAGE_PATIENCE_S if options.how else PATIENCE_S
        self.born = 0
        self.tenants = []
        self.leaving = []  # killed by this harness, with diaries not yet read to the end
        self.downs = []  # (start, end) in which the daemon was stopped; the manager knows when it was dead
        self.claims = []  # (device, priority, start, end): of helpers that write no diary
        self.failures = []
        self.point = None
        self.expected_ends = 0
        self.starved = 0  # pid of the daemon that this point leaves without memory; it may still end shortly after
        self.deaths_of_memory = 0
        self.blackouts = {}  # kind of fault -> [ms]
        self.longest = {"raw_ms": 0.0, "less_noise_ms": 0.0, "beyond_policy_ms": 0.0, "while_down_ms": 0.0,
                        "waits_for_device_ms": 0.0}
        self.held_calls = 0  # long calls that were lawfully held, at least in part
        self.descriptors = {}  # (daemon pid, clients) -> the fewest seen, by kind
        self.kept_boards = 0
        self.new_boards = 0  # of tenants that could not keep theirs
        self.most_rss_kib = 0
        self.release = None  # folder of the copy that an upgrade made
        self._make_folders()
        libraries = ["fault_clock.so"] + ([options.how["preload"]] if "preload" in options.how else [])
        before = ["env", "LD_PRELOAD=" + ":".join(f"{harness.BUILD}/tests/fault/{name}" for name in libraries),
                  f"FAULT_CLOCK_FILE={self.clock}"]
        before += options.before
        self.command = [options.daemon, "--software-gpu", "--runtime-dir", self.runtime_dir, "--config", self.config,
                        "--log-level", "info"]
        self.manager = ServiceManager(self.runtime_dir, self.command, self.log_folder / "daemon.log",
                                      before=before, environment={"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=1"},
                                      order=options.store_order, watchdog=not options.no_watchdog)

    def _make_folders(self):
        self.config.write_text(CONFIG.format(lease_ms=self.options.how.get("lease_ms", LEASE_MS)))
        self.clock = self.dir / "clock"
        self.clock.write_bytes(bytes(8))
        self.log_folder = self.dir / "log"
        self.log_folder.mkdir()
        self.has_own_disk = own_mounts() and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=32m", "xschedd-fault", self.log_folder], capture_output=True).returncode == 0

    # ---- clients --------------------------------------------------------------------------------------------------
    def populate(self):
        self.manager.start()
        for kind, priority in TENANTS:
            self.tenants.append(Tenant(self, kind, priority))
        self.await_all()
        self.manager.command += self.options.how.get("arguments", [])  # of the next daemon

    def replace(self, tenant):
        """Starts another tenant of its kind, without waiting for it."""
        self.tenants.remove(tenant)
        self.leaving.append(tenant)
        fresh = Tenant(self, tenant.kind, tenant.priority)
        self.tenants.append(fresh)
        return fresh

    def kill(self, tenant):
        tenant.process.kill()
        tenant.process.wait()
        tenant.died_ns = time.monotonic_ns()
        if tenant.stopped_since:
            tenant.stops.append((tenant.stopped_since, tenant.died_ns))
        self.replace(tenant)

    def ready(self, *kinds):
        """The tenants of these kinds that launch."""
        return [tenant for tenant in self.tenants if tenant.look_ready() and tenant.kind in kinds]

    def await_ready(self, *kinds):
        """Waits for at least one of them: after a kill, another of its kind may still be starting."""
        found = []

        def is_any():
            while self._crashed():
                pass
            found[:] = self.ready(*kinds)
            return found

        if not self.wait(is_any, f"a client launches that is {' or '.join(kinds)}", 60.0):
            raise AssertionError("no tenant of these kinds launches")
        return found

    sentinel = property(lambda self: next((t for t in self.tenants if t.kind == "beside" and t.look_ready()), None))

    def await_all(self, missing=0):
        """Waits until all tenants except `missing` launch."""
        self.wait(lambda: sum(not tenant.look_ready() for tenant in self.tenants) <= missing or self._crashed(),
                  "the clients begin to launch", 60.0)

    # ---- failures -------------------------------------------------------------------------------------------------
    def fail(self, what):
        what = what if len(what) < 1500 else what[:500] + " ... " + what[-900:]
        entry = {"seed": self.options.seed, **(self.point or {}), "failure": what}
        self.failures.append(entry)
        print("FAILURE:", json.dumps(entry), flush=True)

    def wait(self, condition, what, patience_s=None):
        """Waits for a condition, and returns whether it became true; if not, that is a failure. `what`: the condition in words, or
        a function that returns them."""
        patience_s = patience_s or self.patience_s
        end = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {patience_s:.0f} s: {what() if callable(what) else what}")
                return False
            time.sleep(0.004)
        return True

    def _crashed(self):
        """Reports each client that ended without being killed once, and replaces it."""
        for tenant in [tenant for tenant in self.tenants if tenant.process.poll() is not None]:
            said = tenant.errors.read_text(errors="replace").strip().splitlines()
            what = "wrong result" if any(line.startswith("wrong:") for line in said) else "client ended by itself"
            self.fail(f"{what}: {tenant.name} exit code {tenant.process.returncode}: {' | '.join(said[-3:])}")
            tenant.died_ns = time.monotonic_ns()
            self.replace(tenant)
            return True
        return False

    # ---- the daemon -----------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def daemon_down(self, kind, keeps_memory=lambda tenant: True):
        """A context that ends a daemon and starts another: measures how long the policy was not in effect. The block may append
        to its list the moment from which to count, if that is not its beginning. `keeps_memory`: whether a tenant must keep
        its board, if descriptors are stored."""
        self.wait(lambda: self.sentinel and self.ready("always"), "the sentinel and the client above it launch", 60.0)
        sentinel = self.sentinel
        if sentinel and not self.until(sentinel.is_held, self.patience_s):
            self.fail("policy not in force: the gate of a client that must be held is open")
            sentinel = None
        inodes = self.board_inodes()
        start = [time.monotonic_ns()]

        def since():
            """The time after which a lease is a new one; None while that is not known."""
            if kind == "stop":
                return start[1] if len(start) > 1 else None
            return self.manager.ended_ns if self.manager.ended_ns > start[0] else None

        watch = Watch(sentinel, since, self.patience_s) if sentinel else None
        yield start
        if kind == "stop":
            self.downs.append((start[0], start[1]))
        restored = watch.result() if watch else None
        if restored:
            self.blackouts.setdefault(kind, []).append((restored - start[-1]) / MS)
        elif watch:
            self.fail("policy not restored: the gate of a client that must be held stays open")
        if kind != "stop" and self.manager.stored():
            self.compare_boards(inodes, keeps_memory)

    def until(self, condition, patience_s):
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.002)
        return False

    def board_inodes(self):
        """Of the clients that the saved state names: a new one is saved some milliseconds after it has connected."""
        until = time.monotonic_ns() - SAVED_NS
        return {t.pid: max((b.lease_until_ns, b.inode) for b in boards(t.pid))[1]
                for t in self.tenants if t.is_ready and t.ready_ns < until and boards(t.pid)}

    def compare_boards(self, before, keeps_memory):
        for tenant in self.tenants:
            if tenant.pid not in before or tenant.process.poll() is not None:
                continue
            now = boards(tenant.pid)
            newest = max(((b.lease_until_ns, b.inode) for b in now), default=(0, 0))[1]
            if newest == before[tenant.pid]:
                self.kept_boards += 1
            elif not keeps_memory(tenant):
                self.new_boards += 1
            else:
                self.fail(f"memory not kept: {tenant.name} has another board")

    def process_facts(self):
        """The daemon's descriptors, threads, and anonymous memory in KiB."""
        pid = self.manager.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        number = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE).group(1))  # noqa: E731
        return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "threads": number("Threads"),
                "rss_kib": number("VmRSS"), "rss_anon_kib": number("RssAnon")}

    def seen_clients(self):
        """The pids in `xschedctl ps`; None if the daemon did not answer."""
        result = self.ctl("--json", "ps", check=False)
        if result.returncode != 0:
            return None
        return sorted(int(client["pid"]) for client in json.loads(result.stdout)["clients"])

    # ---- after each fault -----------------------------------------------------------------------------------------
    def recover(self):
        """Checks that everything continues unchanged: the invariants of docs/contributing/fault.md."""
        before = {tenant.name: tenant.diary.rounds for tenant in self.tenants}
        while self._crashed():
            pass
        self.look_at_ends()
        self.wait(self.manager.is_ready, "a daemon runs", 30.0)
        workers = [t for t in self.tenants if t.kind != "beside"]
        self.wait(lambda: all(t.diary.rounds > before.get(t.name, 0) or not t.look_ready() or t.process.poll() is not None
                              for t in workers), "every client goes on: " + self.laggards(workers, before))
        self.wait(self._sees_exactly, f"xschedctl ps shows the live clients, it shows {self.seen_clients()}")
        self.wait(self._descriptors_as_before, self._many_descriptors, 10.0)
        while self._crashed():
            pass
        self.look_at_ends()  # of this point, also if noticed only now
        self.judge_calls()
        self.read_log()

    def look_at_ends(self):
        """Fails if a daemon ended without being asked to, except one that this point left without memory."""
        for pid, status, _, _ in self.manager.ends[self.expected_ends:]:
            if pid == self.starved:
                self.deaths_of_memory += 1
            else:
                self.fail(f"the daemon {pid} ended by itself, wait status {status}: {self.manager.log_text()[-800:]}")
        self.expected_ends = max(self.expected_ends, len(self.manager.ends))

    def laggards(self, workers, before):
        return ", ".join(t.name for t in workers if t.diary.rounds == before.get(t.name, 0))

    def _sees_exactly(self):
        seen = self.seen_clients()
        if seen is None:
            return False
        must = {tenant.pid for tenant in self.tenants if tenant.look_ready()}
        may = {tenant.pid for tenant in self.tenants}
        self.last_seen = seen
        return must <= set(seen) <= may and len(seen) == len(set(seen))

    def _descriptors_by_kind(self):
        folder = f"/proc/{self.manager.pid}/fd"
        kinds = collections.Counter()
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):  # closed meanwhile
                kinds[re.sub(r"[0-9]+", "N", os.readlink(f"{folder}/{name}"))] += 1
        return kinds

    def _many_descriptors(self):
        count = len(self.last_seen)
        before, now = self.descriptors.get((self.manager.pid, count), collections.Counter()), self._descriptors_by_kind()
        return (f"the daemon has as many descriptors as before, {before.total()} with {count} clients: "
                + ", ".join(f"{now[kind]} {kind} ({now[kind] - before[kind]:+})" for kind in sorted(before | now)))

    def _descriptors_as_before(self):
        with contextlib.suppress(OSError, AttributeError):
            self.most_rss_kib = max(self.most_rss_kib, self.process_facts()["rss_kib"])
            now = self._descriptors_by_kind()
            if now["anon_inode:[pidfd]"] != len(self.last_seen):
                # Clients came or went, or a new daemon has not adopted all. To ask is a connection more, which the daemon takes a
                # moment to close.
                self._sees_exactly()
                return False
            least = self.descriptors.setdefault((self.manager.pid, len(self.last_seen)), now)
            if now.total() < least.total():
                self.descriptors[self.manager.pid, len(self.last_seen)] = now
            return now.total() <= least.total()
        return False

    def judge_calls(self):
        """Judges every long call since the last time by what may have held it."""
        tenants = self.tenants + self.leaving
        calls = {tenant.name: tenant.diary.new_calls() for tenant in tenants}
        now = time.monotonic_ns()  # after the calls, so that the other records cover them
        old = now - 20_000 * MS
        downs = self.downs + self.manager.gaps(now)
        for tenant in tenants:
            tenant.claims = [span for span in tenant.claims if span[1] > old] + tenant.spans()
        for tenant in tenants:
            for call in calls[tenant.name]:
                self._note_longest(call)
                if call[1] - call[0] - call[2] < WORTH_A_LOOK_NS:
                    continue
                claims = [span for other in tenants
                          if other.device == tenant.device and other.priority > tenant.priority
                          for span in other.claims if span[0] < call[1] and span[1] > call[0] - LINGER_NS]
                claims += [(start, end or now) for device, priority, start, end in self.claims
                           if device == tenant.device and priority > tenant.priority]
                stops = tenant.stops + ([(tenant.stopped_since, now)] if tenant.stopped_since else [])
                self._judge(tenant, Held((*call[:3], KINDS[call[3]]), claims, tenant.holds, stops, downs, LEASE_MS * MS))
        for tenant in [tenant for tenant in self.leaving if tenant.died_ns < old]:
            tenant.diary.close()
            self.leaving.remove(tenant)
        self.downs = [down for down in self.downs if down[1] > old]
        self.claims = [claim for claim in self.claims if not claim[3] or claim[3] > old]

    def _note_longest(self, call):
        took = call[1] - call[0]
        self.longest["raw_ms"] = max(self.longest["raw_ms"], took / MS)
        self.longest["less_noise_ms"] = max(self.longest["less_noise_ms"], (took - call[2]) / MS)

    def _judge(self, tenant, held):
        self.held_calls += held.lawful > 0
        if held.kind in ("synchronize", "event"):
            # These calls are never gated: they wait for the software GPU, whose queues are threads of this machine.
            self.longest["waits_for_device_ms"] = max(self.longest["waits_for_device_ms"], held.excess / MS)
            if held.excess > DEVICE_LIMIT_NS:
                self.fail(f"the device does not finish: {tenant.name} {held.kind} took {held.took / MS:.0f} ms, noise "
                          f"{held.noise / MS:.0f}")
            return
        for name, value in (("beyond_policy_ms", held.excess), ("while_down_ms", held.while_down)):
            self.longest[name] = max(self.longest[name], value / MS)
        if max(held.excess, held.while_down) > self.options.limit_ms * MS:
            when = "while the daemon was down" if held.while_down > self.options.limit_ms * MS else "beyond policy"
            self.fail(f"held {when}: {tenant.name} (priority {tenant.priority}) {held.kind} took {held.took / MS:.0f} ms, of it lawful "
                      f"{held.lawful / MS:.0f}, noise {held.noise / MS:.0f}, beyond policy {held.excess / MS:.0f}, "
                      f"without a daemon {held.while_down / MS:.0f}")

    def read_log(self):
        text = self.manager.log_text()
        found = SANITIZER.search(text, getattr(self, "_log_read", 0))
        self._log_read = len(text)
        if found:
            self.fail("the daemon's log: " + text[found.start():found.start() + 3000])

    def end(self):
        """Ends the clients normally: each reports that its results were right."""
        for tenant in self.tenants:
            tenant.say("quit")
        for tenant in self.tenants:
            try:
                out, _ = tenant.process.communicate(timeout=harness.DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.fail(f"{tenant.name} does not end")
                continue
            if tenant.process.returncode != 0 or "right:" not in out:
                self.fail(f"{tenant.name}: exit code {tenant.process.returncode}: {tenant.errors.read_text()[-400:]}")

    def close(self):
        with contextlib.suppress(Exception):
            self.manager.close()
        if self.has_own_disk:
            subprocess.run(["umount", "-l", self.log_folder], capture_output=True)
        super().close()


def own_mounts():
    """This process and its children get a mount namespace of their own. Returns whether they could."""
    if os.geteuid() != 0:
        return False
    if getattr(own_mounts, "done", False):
        return True
    libc = ctypes.CDLL(None, use_errno=True)
    own_mounts.done = libc.unshare(0x00020000) == 0 and subprocess.run(["mount", "--make-rprivate", "/"]).returncode == 0
    return own_mounts.done
