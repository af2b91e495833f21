"""Limits of device memory, from a claim, a rule and an administrator to what a client finds on its board, and from what the
client counts to ps, explain, events, the log, metrics and the claim's report. The clients write their ledgers themselves.

usage: memory_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import json
import os
import subprocess
import unittest
from typing import Any, Dict, List

import metrics_world
from metrics_world import GPU, OTHER_GPU, WithMetrics, wait_for
from rights_world import ALICE, Client, needs_root

GIB = 1 << 30
DOCS_LIMIT = "~ by its shim's own account"


class Memory(WithMetrics):
    CONFIG = WithMetrics.CONFIG + '[[rule]]\nexe = "scripted_client"\nmemory = "6G"\n'

    def say(self, *words: str) -> str:
        done = self.ctl(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *words: str) -> Dict[str, Any]:
        return json.loads(self.say("--json", *words))

    def tenant(self, claim: str = "", device: str = GPU, **options: Any) -> Client:
        client = self.client(where=os.path.join(self.folder, "claims", claim) if claim else None, **options)
        self.assertTrue(client.is_welcome, client.first)
        client.tell(f"device {device}")
        wait_for(lambda: self.shown(client)["devices"], "its device")
        return client

    def shown(self, client: Client) -> Dict[str, Any]:
        return next((one for one in self.json("ps")["clients"] if one["pid"] == client.pid), {"devices": []})

    def limit(self, client: Client) -> int:
        return int(client.tell("limit"))

    def becomes(self, client: Client, limit: int) -> None:
        wait_for(lambda: self.limit(client) == limit, f"a limit of {limit} on its board")

    def events(self) -> List[Dict[str, Any]]:
        return [event for event in map(json.loads, self.say("--json", "events").splitlines()) if event.get("kind") == "memory"]

    def test_the_clients_of_a_claim_share_its_limit_on_each_device(self) -> None:
        self.say("claim", "put", "job", "--socket", "--memory", "24G", "--label", "job=17")
        self.assertEqual(self.json("claim", "list")["claims"][0]["memory_limit_bytes"], 24 * GIB)
        one, two = self.tenant("job"), self.tenant("job")
        elsewhere = self.tenant("job", OTHER_GPU)
        for client in (one, two, elsewhere):
            self.becomes(client, 24 * GIB)
        one.tell(f"memory {20 * GIB}")
        self.becomes(two, 4 * GIB)
        self.assertEqual((self.limit(one), self.limit(elsewhere)), (24 * GIB, 24 * GIB))
        shown = self.shown(two)
        self.assertEqual(shown["memory_limit"], {"bytes": 24 * GIB, "source": "claim", "is_shared": True, "not_applied": ""})
        self.assertEqual(shown["devices"][0]["memory_limit_bytes"], 4 * GIB)
        self.assertEqual(self.shown(one)["devices"][0]["memory_counted_bytes"], 20 * GIB)

        two.tell(f"memory {3 * GIB}")
        two.tell("refused 2")
        event = wait_for(self.events, "an event")[0]
        self.assertEqual((event["pid"], event["device"], event["claim"]), (two.pid, GPU, "job"))
        self.assertIn("2 allocations of device memory were refused: it has 3.00 GiB here, and may have 4.00 GiB: by claim "
                      '"job" of job 17, 24.0 GiB for all its clients together, of which the others have 20.0 GiB', event["reason"])
        for part in (f"memory refused pid={two.pid} ", "count=2 ", 'remedy="put the claim again with a larger --memory'):
            self.logged(part)
        two.tell("refused 5")
        table = self.say("ps")
        for part in ("MEMORY", "MEM-LIMIT", "~20.0 GiB", "~3.00 GiB", "\n" + DOCS_LIMIT):
            self.assertIn(part, table)
        explained = self.say("explain", str(two.pid))
        self.assertIn(f"{GPU}: it has 3.00 GiB here, and may have 4.00 GiB: by claim", explained)
        self.assertIn("; 7 allocations refused since it connected\n", explained)
        self.assertIn("what to do:\n  put the claim again with a larger --memory", explained)

        report = wait_for(lambda: next((one for one in self.json("claim", "report")["claims"]
                                        if one["memory_peak_bytes"] == 23 * GIB), None), "the peak")
        self.assertEqual(report["memory_refused"], 7)
        self.assertIn("23.0 GiB", self.say("claim", "report"))
        elsewhere.tell(f"memory {1 * GIB}")
        seen = self.scrape()
        self.assertEqual(seen.one("xschedd_claim_memory_bytes", claim="job"), 23 * GIB)
        self.assertEqual(seen.one("xschedd_claim_memory_limit_bytes", claim="job"), 24 * GIB)
        self.assertEqual(seen.one("xschedd_claim_memory_refusals_total", claim="job"), 7)
        self.assertEqual(seen.one("xschedd_client_memory_bytes", device=GPU), 23 * GIB)
        self.assertEqual(seen.one("xschedd_client_memory_bytes", device=OTHER_GPU), 1 * GIB)
        self.assertEqual(seen.one("xschedd_client_memory_limit_bytes", device=GPU), 4 * GIB)
        self.assertEqual(seen.one("xschedd_client_memory_refusals_total", device=GPU), 7)
        self.assertEqual({event["pid"] for event in self.events()}, {two.pid})

        one.end()
        self.becomes(two, 24 * GIB)
        self.say("claim", "put", "job", "--socket", "--memory", "32G")
        self.assertEqual(self.limit(two), 32 * GIB)  # when the call returns
        self.say("claim", "rm", "job")
        self.assertEqual(self.limit(two), 6 * GIB)  # the rule's
        report = self.json("claim", "report")["claims"][0]
        self.assertEqual((report["memory_peak_bytes"], report["memory_refused"]), (23 * GIB, 7))

    def test_a_rule_an_administrator_and_back(self) -> None:
        client = self.tenant()
        self.becomes(client, 6 * GIB)
        self.assertEqual(self.shown(client)["memory_limit"]["source"], "rule")
        settings = {setting["key"]: setting["value"] for setting in self.json("config", "show")["settings"]}
        self.assertEqual(settings["rule.0"]["memory"], "6G")
        pid = str(client.pid)
        would = self.json("set", "--memory", "2G", "--pid", pid, "--dry-run")["changes"][0]
        self.assertEqual((would["memory_limit_before"], would["memory_limit_after"]), (6 * GIB, 2 * GIB))
        self.assertEqual(self.limit(client), 6 * GIB)
        for word, limit in (("2G", 2 * GIB), ("none", 0), ("512M", GIB // 2)):
            self.say("set", "--memory", word, "--pid", pid)
            self.assertEqual(self.limit(client), limit)
        self.assertEqual(self.shown(client)["memory_limit"]["source"], "admin")
        self.say("set", "--reset", "--pid", pid)
        self.assertEqual(self.limit(client), 6 * GIB)
        self.assertEqual([event["reason"].split(":")[0] for event in self.events()],
                         ["memory limit 2G", "memory limit none", "memory limit 512M", "memory limit 6G"])
        for words, says in ((["--memory", "24"], "give 1M to 1024T"), (["--memory", "24GB"], "is not a size of memory"),
                            (["--memory", "1G", "--reset", "memory"], "--reset contradicts")):
            done = self.ctl("set", *words, "--pid", pid)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(says, done.stderr)
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(self.CONFIG.replace("6G", "7G"))
        self.say("reload")
        self.assertEqual(self.limit(client), 7 * GIB)
        self.say("disable")
        self.assertEqual(self.limit(client), 0)
        self.say("enable")
        self.assertEqual(self.limit(client), 7 * GIB)

    def test_what_no_honest_client_writes(self) -> None:
        self.say("claim", "put", "job", "--socket", "--memory", "24G")
        liar, member, stranger = self.tenant("job"), self.tenant("job"), self.tenant()
        for number in (2**64 - 1, 2**63, 2**50 + 1):
            liar.tell(f"memory {number}")
            liar.tell(f"refused {number}")
            self.becomes(member, 1)  # nothing is left, and 0 would be no limit
            self.say("ps", "--all")
            seen = self.scrape()
            self.assertEqual(seen.one("xschedd_claim_memory_bytes", claim="job"), 2**50)
            liar.tell("memory 0")
            self.becomes(member, 24 * GIB)
        self.assertEqual(self.limit(stranger), 6 * GIB)
        self.assertEqual(self.shown(stranger)["devices"][0]["memory_counted_bytes"], 0)

    @needs_root
    def test_a_user_limits_no_running_client(self) -> None:
        client = self.tenant(uid=ALICE)
        self.becomes(client, 6 * GIB)
        for words in (["--memory", "1G"], ["--memory", "none"], ["--reset", "memory"]):
            done: "subprocess.CompletedProcess[str]" = self.ctl("set", *words, "--pid", str(client.pid), uid=ALICE)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("only an administrator may limit the memory of a running client", done.stderr)
        done = self.ctl("set", "--reset", "--pid", str(client.pid), uid=ALICE)  # of what it may set
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.limit(client), 6 * GIB)


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    metrics_world.main()
