"""Today's daemon takes over from one of the first release: the saved state that that release wrote (v1/state.proto, and the file
format frozen here), its names in the descriptor store, and the memory of one of its clients (frozen_client.cc).

Usage: upgrade_test.py, with XSCHEDD_BUILD and PROTOC in the environment. Thread rule: one test, one thread.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "fault"), str(HERE.parent / "e2e")]
import harness  # noqa: E402
from harness import wait_for  # noqa: E402
from service_manager import ServiceManager  # noqa: E402

# The file of the first release: header (magic, format, starts), then two slots of this capacity, each with a header (sequence,
# length, CRC-32 of both and the content, 0).
CAPACITY = 8 << 20
HEADER, SLOT = struct.Struct("<8sII"), struct.Struct("<QQII")
MAGIC, FORMAT = b"XSDSTATE", 1
CHANNEL, OLD_ID, NEXT_ID = 7, 41, 100
NEWER = r"^\s*(1[12]: \d+|13 \{\n[^}]*\})$"  # fields that the first release did not have


def proto(how, data):
    """Saved state to text and back, by the first release's messages."""
    return subprocess.run([os.environ["PROTOC"], f"--proto_path={HERE / 'v1'}", f"--{how}=xschedd.state.SavedState", "state.proto"],
                          input=data, capture_output=True, check=True).stdout


def newest(file):
    """The content of a saved state of any release: the first two numbers of a slot have the same place in all."""
    slots = []
    for index in (0, 1):
        sequence, length, _, _ = SLOT.unpack_from(file, HEADER.size + index * ((len(file) - HEADER.size) // 2))
        begin = HEADER.size + index * ((len(file) - HEADER.size) // 2) + SLOT.size
        slots.append((sequence, file[begin:begin + length]))
    return max(slots)[1]


def written(content):
    """A memfd as the first release wrote it."""
    fd = os.memfd_create("xschedd-state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, HEADER.size + 2 * (SLOT.size + CAPACITY))
    os.pwrite(fd, HEADER.pack(MAGIC, FORMAT, 0), 0)
    total = zlib.crc32(content, zlib.crc32(struct.pack("<QQ", 1, len(content))))
    os.pwrite(fd, SLOT.pack(1, len(content), total, 0) + content, HEADER.size)
    return fd


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="xschedd-upgrade-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        config = self.folder / "config.toml"
        config.write_text("[policy]\nguard_ms_per_s = 0\n")
        self.manager = ServiceManager(self.folder, [harness.daemon_path, "--software-gpu", "--runtime-dir", self.folder, "--config", config,
                                                    "--log-level", "debug"],
                                      log=f"{self.folder}/log", restart_s=0.02, watchdog=False)
        self.addCleanup(self.manager.close)
        self.manager.start()

    def ctl(self, *words):
        done = subprocess.run([harness.ctl_path, "--runtime-dir", self.folder, *map(str, words)], capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}\n{self.manager.log_text()[-3000:]}")
        return done.stdout

    def clients(self):
        return {int(client["pid"]): client for client in json.loads(self.ctl("--json", "ps"))["clients"]}

    def frozen(self, priority):
        client = subprocess.Popen([harness.BUILD / "tests/abi/frozen_client", self.folder, str(priority)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=harness.dies_with_this_process())
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        self.assertEqual(client.stdout.readline().strip(), "connected 1")
        wait_for(lambda: client.pid in self.clients() and self.clients()[client.pid]["devices"], "it is attached")
        return client

    def gate(self, client):
        client.stdin.write("gate\n")
        client.stdin.flush()
        return client.stdout.readline().strip()

    def old_state(self, now, pid):
        """What the first release would have saved about the process that today's daemon has saved as `now`."""
        file_policy = re.search(r"^file_policy \{\n(.*?)^\}", now, re.M | re.S).group(1)
        policy = re.sub(r'name: ".*?"', 'name: "share"', re.sub(r" window_us: \d+", " window_us: 1234", file_policy))
        policy = re.sub(NEWER, "", policy, flags=re.M)
        file_policy = re.sub(NEWER, "", file_policy, flags=re.M)
        process = next(block for block in re.findall(r"^clients \{\n(.*?)^\}", now, re.M | re.S) if f"  pid: {pid}\n" in block)
        kept = [line for line in process.splitlines() if re.match(r"  (pid|start_ticks|pidfd_inode|uid|gid|layout_hash):", line)]
        device = 'slot: 3 pci_address: "0000:c1:00.0" name: "frozen" vendor: "amd" compute_units: 304'
        return f"""daemon_version: "0.1.0" next_client: {NEXT_ID} restarts: 3
            policy {{ {policy} }} file_policy {{ {file_policy} }}
            clients {{ {' '.join(kept)} id: {OLD_ID} admin_priority: 77 admin_weight: 250 hold: true hint: -10 owner_priority: -20
                       runtime: "HIP 5.2" route: "symbols" version: "0.1.0" channel: {CHANNEL} abi_version: 1 connected_ns: 1
                       devices {{ {device} }} }}"""

    def test_from_the_first_release(self):
        low = self.frozen(-10)
        self.assertEqual(self.gate(low), "open")
        self.ctl("set", "--pid", low.pid, "--priority", 3)  # so that it is saved
        with self.manager._changed:
            ready = self.manager.ready + 1
            self.manager.kill(signal.SIGKILL)
            store = dict.fromkeys(name for name, _ in self.manager._store)
            self.assertEqual(len(store), 2, store)  # the state and the client's memory
            state = next(fd for name, fd in self.manager._store if name == "state")
            now = proto("decode", newest(os.pread(state, os.fstat(state).st_size, 0))).decode()
            old = written(proto("encode", self.old_state(now, low.pid).encode()))
            memory = [fd for name, fd in self.manager._store if name != "state"]
            self.manager._store = [("state", old), *((f"channel-{CHANNEL}", fd) for fd in memory)]
        self.manager.wait_ready(ready)

        client = self.clients()[low.pid]
        shown = {name: client[name] for name in ("id", "priority_effective", "priority_source", "weight", "hold", "runtime")}
        self.assertEqual(shown, {"id": OLD_ID, "priority_effective": 77, "priority_source": "admin", "weight": 250, "hold": True,
                                 "runtime": "HIP 5.2"}, self.manager.log_text())
        policy = json.loads(self.ctl("--json", "policy", "get"))
        self.assertEqual((policy["name"], policy["window_us"]), ("share", 1234))
        # Through its old memory: it has not connected again.
        wait_for(lambda: self.gate(low) == "held", "the hold is in force")
        self.ctl("release", "--pid", low.pid)
        wait_for(lambda: self.gate(low) != "held", "it is released")
        later = self.frozen(0)
        self.assertEqual(self.clients()[later.pid]["id"], NEXT_ID)
        self.assertNotIn("is not used", self.manager.log_text())


if __name__ == "__main__":
    unittest.main()
