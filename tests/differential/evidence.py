"""The evidence that a run took place in its mode, so that a shim that does nothing cannot pass: from the daemon, except in the
mode without one. Thread rule: the driver's one thread."""

import json
import re

# The shim's lines with XSCHEDD_LOG=info. Any other line counts as the program's standard error.
CONNECTED = re.compile(r"xschedd: scheduled as client \d+ at priority -?\d+")
NO_DAEMON = re.compile(r"xschedd: this process runs unscheduled: no daemon at \S+: .*")
WITHOUT_FOR_NOW = re.compile(r"xschedd: this process runs unscheduled(?: for now)?: .*")
HINT_NOT_USED = re.compile(r"xschedd: priority hint -?\d+ not used: an administrator set -?\d+")
EXPECTED_WORDS = {"reference": (), "no-daemon": (NO_DAEMON,), "untracked": (CONNECTED,), "hostile": (CONNECTED, HINT_NOT_USED),
                  "restarts": (CONNECTED, WITHOUT_FOR_NOW, HINT_NOT_USED)}


def is_expected(mode, line):
    return any(words.fullmatch(line) for words in EXPECTED_WORDS[mode])


class Watched:
    """What `xschedctl ps` has shown about the program's processes: all clients except the competitors."""

    def __init__(self, node, competitors):
        self.node = node
        self.competitors = {competitor.pid for competitor in competitors}
        self.has_session = self.was_held = self.has_window = False
        self.used_gpu = False

    def look(self):
        """Returns the program's clients by pid; none without a daemon."""
        answer = self.node.ctl("--json", "ps", check=False)
        clients = json.loads(answer.stdout)["clients"] if answer.returncode == 0 else []
        own = {int(client["pid"]): client for client in clients if int(client["pid"]) not in self.competitors}
        for client in own.values():
            self.has_session = True
            for device in client["devices"]:
                self.was_held = self.was_held or device["state"] == "held"
                self.has_window = self.has_window or int(device["window_us"]) > 0
                self.used_gpu = self.used_gpu or int(device["submitted"]) > 0
        return own

    def look_back(self, pid):
        """Explains a client that has ended: a short program can end between two calls of look, and the daemon remembers it."""
        answer = self.node.ctl("--json", "explain", str(pid), "--duration", "0", check=False)
        for device in json.loads(answer.stdout)["devices"] if answer.returncode == 0 else []:
            self.was_held = self.was_held or int(device["held_ns"]) > 0
            self.used_gpu = self.used_gpu or int(device["gpu_ns"]) > 0

    def missing(self):
        seen = {"a session": self.has_session, "a hold": self.was_held, "a window": self.has_window,
                "a launch while tracked": self.used_gpu}
        return [what for what, is_seen in seen.items() if not is_seen]


def missing_untracked(node):
    """For a program that was alone: it had a session with a device, and was never tracked."""
    lines = node.ctl("--json", "events").stdout.splitlines()
    kinds = {json.loads(line)["kind"] for line in lines}
    return ([f"an event '{kind}'" for kind in ("connected", "device", "gone") if kind not in kinds] +
            [f"no event '{kind}'" for kind in ("tracked", "held", "lost") if kind in kinds])


def missing_without_daemon(words):
    return [] if any(NO_DAEMON.fullmatch(line) for line in words) else ["the shim's word that there is no daemon"]
