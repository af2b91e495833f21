#!/usr/bin/env python3
"""Compares each command's --json answer from a live daemon with the installed schemas (docs/reference/json.md): fields that a
schema does not have fail, and so do missing ones. Usage: see ctl_world.py
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import ctl_world
import help_text
from ctl_world import WithDaemon, WithFolder

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "tools/xschedctl/schema"
# Commands without JSON output, and why.
WITHOUT = {"top": "a picture", "completion": "a script", "cdi": "of CDI's own form", "support-bundle": "an archive",
           "slurm": "lines for a plugin"}


def schema(kind):
    return json.loads((SCHEMAS / f"{kind}-1.json").read_text())


def objects(part):
    """Each schema of an object within `part`."""
    if isinstance(part, dict):
        if "object" in (part.get("type"), *(part["type"] if isinstance(part.get("type"), list) else [])):
            yield part
        for inner in part.values():
            yield from objects(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from objects(inner)


class Schemas(unittest.TestCase):
    def test_every_schema_refuses_unknown_and_missing_fields(self):
        for path in SCHEMAS.glob("*.json"):
            for one in objects(json.loads(path.read_text())):
                with self.subTest(path.name):
                    self.assertIn("additionalProperties", one)
                    if one["additionalProperties"] is False:
                        self.assertEqual(set(one["required"]), set(one["properties"]))

    def test_their_names_and_versions(self):
        for path in SCHEMAS.glob("*.json"):
            kind, version = path.stem.rsplit("-", 1)
            one = json.loads(path.read_text())
            self.assertEqual(one["$id"], f"urn:xschedd:xschedctl/{kind}/{version}")
            self.assertEqual(one["properties"]["schema"], {"const": f"xschedctl/{kind}/{version}"})

    def test_the_page_lists_each(self):
        page = (ROOT / "docs/reference/json.md").read_text()
        self.assertEqual(set(re.findall(r"`xschedctl/([a-z-]+)/1`", page)), {path.stem[:-2] for path in SCHEMAS.glob("*.json")})


@unittest.skipIf(jsonschema is None, "no jsonschema: install python3-jsonschema")
class Answers(WithDaemon):
    CONFIG = "[policy]\nturn_ms = 30\n[[rule]]\nuid = 61234\npriority = 3\n[[ceiling]]\nuid = 61234\npriority = 4\n"

    def check(self, kind, *words, status=0):
        done = self.ctl("--json", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines, words)
        one = schema(kind)
        jsonschema.Draft202012Validator.check_schema(one)
        for line in lines:
            answer = json.loads(line)
            errors = [f"{'/'.join(map(str, error.path))}: {error.message}"
                      for error in jsonschema.Draft202012Validator(one).iter_errors(answer)]
            self.assertEqual(errors, [], words)
        self.seen.setdefault(kind, []).extend(map(json.loads, lines))
        self.used.add(" ".join(word for word in words[:2] if word in self.commands) or words[0])
        return json.loads(lines[-1])

    def setUp(self):
        super().setUp()
        self.seen, self.used = {}, set()
        self.commands = set()
        for name in self.listed():
            self.commands |= {name, *self.listed(name)}

    def listed(self, *path):
        return help_text.subcommands(self.ctl(*path, "--help").stdout)

    def test_each_command(self):
        high, low = self.held_pair()
        self.check("ps", "ps")
        self.check("ps", "ps", "--devices")
        unscheduled = self.check("ps", "ps", "--all")["unscheduled"]
        self.assertFalse({high, low} & {process["pid"] for process in unscheduled["processes"]})
        for change in (["set", "--priority", "-7", "--pid", low], ["set", "--reset", "--pid", low, "--dry-run"],
                       ["hold", "--pid", high], ["release", "--all"]):
            self.check("change", *map(str, change))
        self.check("policy", "policy", "get")
        self.check("policy", "policy", "set", "--turn", "40ms")
        self.check("policy", "policy", "set", "share", "--dry-run")
        self.check("claim-list", "claim", "list")
        put = ["claim", "put", "job-17", "--socket", "--priority", "3", "--label", "job=17"]
        self.check("claim-put", *put, "--dry-run")
        folder = self.check("claim-put", *put, "--ttl", "1h")["claim"]["socket_folder"]
        self.assertEqual(len(self.check("claim-list", "claim", "list")["claims"]), 1)
        client = self.start(ctl_world.CLIENT, "--runtime-dir", folder).pid
        self.wait(lambda: client in self.clients(), "the client is connected")
        self.assertEqual(self.check("ps", "ps", str(client))["clients"][0]["claim"]["labels"], {"job": "17"})
        self.assertEqual(self.check("explain", "explain", str(client))["claim"]["text"], "job 17")
        self.check("claim-rm", "claim", "rm", "job-17", "--dry-run")
        self.assertIsNone(self.check("claim-report", "claim", "report")["claims"][0]["ended_unix_ms"])
        self.check("claim-rm", "claim", "rm", "job-17")
        self.assertIsNotNone(self.check("claim-report", "claim", "report", "job-17")["claims"][0]["ended_unix_ms"])
        self.check("explain", "explain", str(low))
        self.check("explain", "explain", "--all")
        self.check("stats", "stats")
        self.check("metrics", "metrics")
        self.check("version", "version")
        self.check("config-show", "config", "show")
        self.check("config-show", "config", "show", "--changed")
        self.check("config-show", "config", "show", "--file", self.config)
        self.check("config-check", "config", "check", self.config)
        self.check("config-check", "config", "check", self.file("bad.toml", "a = 1\n[policy]\nturn_ms = 0\n"), status=1)
        self.check("reload", "reload", "--dry-run")
        self.check("reload", "reload")
        self.check("trace", "trace", "-o", os.path.join(self.folder, "trace.json"), "--duration", "1s")
        self.check("run", "run", "--dry-run", "--priority", "5", "--shim", "/dev/null", "--", "true")
        status = self.ctl("doctor").returncode
        self.check("doctor", "doctor", status=status)
        self.check("acceptance", "acceptance", "--minutes", "0.0001", "--beside-others", "--output", os.path.join(self.folder, "report"))
        self.check("drain", "drain", "--dry-run")
        for command in ("disable", "enable"):
            self.check(command, command, "--dry-run")
            self.check(command, command)
        self.check("drain", "drain")
        self.check("event", "events")
        kinds = {event["kind"] for event in self.seen["event"]}
        self.assertLessEqual({"connected", "held", "hold", "release", "priority", "policy", "reloaded"}, kinds)
        self.assertEqual(set(self.seen), {path.stem[:-2] for path in SCHEMAS.glob("*.json")})
        top = set(self.listed())
        self.assertEqual({name.split()[0] for name in self.used} - {"drain"}, top - set(WITHOUT))

    def test_an_answer_that_differs_fails(self):
        self.held_pair()
        answer = self.check("ps", "ps")
        validator = jsonschema.Draft202012Validator(schema("ps"))
        for spoil in (lambda a: a.update(new=1), lambda a: a.pop("policy"), lambda a: a["clients"][0].update(new=1),
                      lambda a: a["clients"][0]["devices"][0].pop("held_ns"), lambda a: a.update(schema="xschedctl/ps/2"),
                      lambda a: a["clients"][0].update(pid="4711")):
            spoilt = copy.deepcopy(answer)
            spoil(spoilt)
            self.assertFalse(validator.is_valid(spoilt))


class WithoutDaemon(WithFolder):
    def test_version_has_null_without_a_daemon(self):
        self.assertIsNone(self.json("version", status=3)["daemon"])

    def test_commands_without_json_refuse_the_option(self):
        self.fails(2, "--json", "top", says=["top has no JSON"])
        self.fails(2, "--json", "completion", "bash", says=["completion takes no --json"])
        self.fails(2, "--json", "cdi", "generate", says=["cdi generate takes no --json"])
        self.fails(2, "--json", "run", "--", "true", says=["--dry-run"])


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
