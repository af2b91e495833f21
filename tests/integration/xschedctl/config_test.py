#!/usr/bin/env python3
"""xschedctl config check and show; reload, disable and enable, and their dry runs. Usage: see ctl_world.py"""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import unittest

import ctl_world
from ctl_world import WithDaemon, WithFolder

SHIPPED = pathlib.Path(__file__).resolve().parents[3] / "daemon/xschedd.toml"


def settings(shown):
    return {one["key"]: one for one in shown["settings"]}


class Check(WithFolder):
    BAD = ("lease_ms = 5\n[daemon]\nlease_ms = 1\nspin = 3\n[policy]\nname = \"best\"\n"
           "[[rule]]\nuid = 1\npriority = 101\n[[rule]]\ngid = 5\n")

    def test_all_errors_with_place_and_remedy(self):
        bad = self.file("bad.toml", self.BAD)
        done = self.ctl("config", "check", bad)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        lines = done.stdout.splitlines()
        self.assertEqual([re.match(r".*/bad\.toml:(\d+):\d+: error: .+; .+", line).group(1) for line in lines],
                         ["1", "3", "4", "6", "9", "10"])
        self.assertIn("give a number from 20 to 10000", lines[1])
        self.assertIn("a [[rule]] that sets nothing; give it a priority", lines[5])
        answer = self.json("config", "check", bad, status=1)
        self.assertEqual([error["line"] for error in answer["errors"]], [1, 3, 4, 6, 9, 10])

    def test_it_agrees_with_the_daemon(self):
        for name, text in (("bad", self.BAD), ("syntax", "[policy\n"), ("good", "[policy]\nturn_ms = 5\n"),
                           ("shipped", SHIPPED.read_text())):
            path = self.file(name + ".toml", text)
            daemon = subprocess.run([ctl_world.DAEMON, "--check-config", "--config", path], capture_output=True,
                                    text=True, check=False, timeout=ctl_world.LIMIT_S)
            ours = self.ctl("config", "check", path)
            self.assertEqual(ours.returncode == 0, daemon.returncode == 0, name)
            if daemon.returncode:
                first = ours.stdout.splitlines()[0].replace(": error:", ":")
                self.assertIn(first, daemon.stderr, name)
            else:
                self.assertEqual(ours.stdout, path + ": good\n")

    def test_files_of_conf_d_are_read_too(self):
        main = self.file("main.toml", "[policy]\nturn_ms = 30\nname = \"share\"\n")
        drop_in = self.file("conf.d/5.toml", "[policy]\nturn_ms = 40\n")
        self.file("conf.d/6.toml.old", "nothing")
        self.assertEqual(self.ctl("config", "check", main).stdout, f"{main}: good\n{drop_in}: good\n")
        answer = self.json("config", "check", main)
        self.assertEqual((answer["file"], answer["drop_ins"]), (main, [drop_in]))
        shown = self.json("config", "show", "--file", main)
        self.assertEqual(shown["drop_ins"], [drop_in])
        turn, name = settings(shown)["policy.turn_ms"], settings(shown)["policy.name"]
        self.assertEqual((turn["value"], turn["file"], turn["line"]), (40, drop_in, 2))
        self.assertEqual((name["value"], name["file"], name["line"]), ("share", main, 3))
        self.file("conf.d/5.toml", "[policy]\nturn_ms = 0\n")
        self.assertIn(f"{drop_in}:2:11: error: ", self.ctl("config", "check", main).stdout)
        self.assertEqual(self.json("config", "check", main, status=1)["errors"][0]["file"], drop_in)
        daemon = subprocess.run([ctl_world.DAEMON, "--config", main, "--runtime-dir", self.folder], capture_output=True,
                                text=True, check=False, timeout=ctl_world.LIMIT_S)
        self.assertEqual(daemon.returncode, 3)
        self.assertIn(f"xschedd: {drop_in}:2:11: ", daemon.stderr)
        os.remove(drop_in)
        os.mkdir(drop_in)
        self.fails(2, "config", "check", main, says=[drop_in, "Is a directory"])

    def test_a_file_that_cannot_be_read(self):
        self.fails(2, "config", "check", "/nowhere/x.toml", says=["/nowhere/x.toml", "No such file", "; "])
        self.fails(2, "config", "check", self.folder, says=["Is a directory"])
        self.fails(2, "config", "show", "--file", "/nowhere/x.toml", says=["/nowhere/x.toml"])
        self.fails(1, "config", "show", "--file", self.file("bad.toml", "a = 1\n"), says=["bad.toml:1:1"])
        self.fails(3, "config", "show", says=["--offline"])

    def test_quoted_text_of_the_file_has_no_control_characters(self):
        done = self.ctl("config", "check", self.file("odd.toml", '"\\u001b[31m" = 1\n'))
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("\x1b", done.stdout)


class Show(WithDaemon):
    CONFIG = "[policy]\nturn_ms = 30\nlinger_us = 200\n\n[[rule]]\nexe = \"train\"\npriority = -20\n"

    def test_each_value_has_its_source(self):
        shown = settings(self.json("config", "show"))
        turn, linger, lease = shown["policy.turn_ms"], shown["policy.linger_us"], shown["daemon.lease_ms"]
        self.assertEqual((turn["value"], turn["default"], turn["unit"], turn["differs"]), (30, 100, "ms", True))
        self.assertEqual((turn["source"], turn["line"]), ("file", 2))
        self.assertEqual((linger["source"], linger["differs"]), ("file", False))
        self.assertEqual((lease["source"], lease["line"]), ("default", None))
        self.assertEqual(shown["rule.0"]["value"], {"exe": "train", "priority": -20})
        self.assertEqual(shown["rule.0"]["line"], 5)
        self.json("policy", "set", "share", "--turn", "40ms")
        shown = settings(self.json("config", "show"))
        self.assertEqual((shown["policy.turn_ms"]["value"], shown["policy.turn_ms"]["source"]), (40, "administrator"))
        self.assertEqual((shown["policy.name"]["value"], shown["policy.name"]["source"]), ("share", "administrator"))
        self.json("reload")
        self.assertEqual(settings(self.json("config", "show"))["policy.turn_ms"]["source"], "file")

    def test_every_key_of_the_configuration_is_shown(self):
        table, keys = "", set()
        for line in SHIPPED.read_text().splitlines():
            if line.startswith("["):
                table = line.strip("[]") + "."
            match = re.match(r"(?:# )?([a-z_]+) = \S", line)
            if match and not line.startswith("# [") and table != "rule.":
                keys.add(table + match.group(1))
            if line.startswith("# [["):
                break
        self.assertIn("policy.max_concurrent", keys)
        self.assertLessEqual(keys, set(settings(self.json("config", "show"))))

    def test_the_text(self):
        text = self.ctl("config", "show", "--changed").stdout
        self.assertRegex(text, r"policy\.turn_ms +30 ms +100 ms +yes +xschedd\.toml, line 2\n")
        self.assertRegex(text, r'rule\.0 +exe="train" priority=-20 +- +yes +xschedd\.toml, line 5; by what a user chooses: .*\n')
        self.assertNotIn("linger_us", text)
        self.assertIn(f"(3 of {len(self.json('config', 'show')['settings'])} settings differ", text)
        self.assertIn(f"which reads {self.config})", text)

    def test_offline_shows_the_file(self):
        self.json("policy", "set", "--turn", "40ms")
        shown = self.json("config", "show", "--file", self.config)
        self.assertFalse(shown["in_force"])
        self.assertEqual(settings(shown)["policy.turn_ms"]["value"], 30)

    def test_the_daemons_option_overrides_the_file(self):
        self.daemon.kill()
        self.daemon.wait()
        self.start_daemon("--policy", "fifo")
        name = settings(self.json("config", "show"))["policy.name"]
        self.assertEqual((name["value"], name["source"], name["differs"]), ("fifo", "option", True))

    def test_a_dry_run_of_reload_shows_its_changes(self):
        self.assertEqual(self.json("reload", "--dry-run")["changes"], [])
        self.assertIn("would change nothing", self.ctl("reload", "--dry-run").stdout)
        self.file("xschedd.toml", "[policy]\nturn_ms = 35\n")
        would = self.json("reload", "--dry-run")
        self.assertEqual({one["key"]: (one["before"], one["after"]) for one in would["changes"]},
                         {"policy.turn_ms": (30, 35), "rule.0": ({"exe": "train", "priority": -20}, None)})
        self.assertEqual(settings(self.json("config", "show"))["policy.turn_ms"]["value"], 30)
        text = self.ctl("reload", "--dry-run").stdout
        self.assertRegex(text, r"policy\.turn_ms +30 ms +35 ms\n")
        self.assertIn("nothing was changed", text)
        self.assertEqual(len(self.json("reload")["changes"]), 2)
        self.assertEqual(settings(self.json("config", "show"))["policy.turn_ms"]["value"], 35)
        self.file("xschedd.toml", "[policy]\nturn_ms = 0\n")
        self.fails(6, "reload", "--dry-run", says=["xschedd.toml:2:11", "would keep the old configuration"])
        self.fails(6, "reload", says=["the old configuration stays"])

    def test_reload_reads_files_of_conf_d(self):
        drop_in = self.file("conf.d/5.toml", "[policy]\nturn_ms = 45\n[[rule]]\nexe = \"x\"\nweight = 2\n")
        would = self.json("reload", "--dry-run")
        self.assertEqual({one["key"]: one["after"] for one in would["changes"]},
                         {"policy.turn_ms": 45, "rule.1": {"exe": "x", "weight": 2}})
        self.json("reload")
        shown = self.json("config", "show")
        self.assertEqual((shown["file"], shown["drop_ins"]), (self.config, [drop_in]))
        self.assertEqual([settings(shown)[key]["file"] for key in ("policy.turn_ms", "rule.0", "rule.1")],
                         [drop_in, self.config, drop_in])
        self.assertRegex(self.ctl("config", "show").stdout, r"policy\.turn_ms +45 ms +100 ms +yes +conf\.d/5\.toml, line 2\n")
        self.file("conf.d/6.toml", "[policy\n")
        self.fails(6, "reload", says=["conf.d/6.toml:1:", "the old configuration stays"])
        self.assertEqual(settings(self.json("config", "show"))["policy.turn_ms"]["value"], 45)
        os.remove(os.path.join(self.folder, "conf.d/6.toml"))
        os.remove(drop_in)
        self.json("reload")
        self.assertEqual(settings(self.json("config", "show"))["policy.turn_ms"]["value"], 30)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to become another user")
    def test_it_is_for_administrators(self):
        os.chmod(self.folder, 0o711)  # so that other users reach the sockets
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", ctl_world.CTL,
                               "--runtime-dir", self.folder, "config", "show"], capture_output=True, text=True, check=False,
                              timeout=ctl_world.LIMIT_S, env=ctl_world.environment())
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("GetConfig is for administrators", done.stderr)

    def test_dry_runs_of_disable_and_enable_count_clients(self):
        self.client()
        self.assertEqual(self.json("disable", "--dry-run"), {
            "schema": "xschedctl/disable/1", "dry_run": True, "clients": 1, "was_disabled": False})
        self.client()  # still admitted
        self.assertIn("until xschedctl enable", self.ctl("disable").stdout)
        self.assertIn("was disabled already", self.ctl("disable").stdout)
        self.assertTrue(self.json("enable", "--dry-run")["dry_run"])
        self.assertTrue(self.json("disable")["was_disabled"])
        self.assertIn("in force again", self.ctl("enable").stdout)
        self.assertTrue(self.json("enable")["was_enabled"])
        self.client()

    def test_drain_is_the_old_name_of_disable(self):
        said = self.ctl("drain")
        self.assertIn("disabled: all gates are open", said.stdout)
        self.assertEqual(said.stderr, "xschedctl: drain is the old name of disable; xschedctl enable ends it\n")
        self.assertTrue(self.json("disable")["was_disabled"])
        self.assertNotIn("drain", self.ctl("--help").stdout)


class Persist(WithDaemon):
    """policy set --persist"""
    CONFIG = "[policy]\nturn_ms = 30\n"

    def setUp(self):
        super().setUp()
        self.kept = os.path.join(self.folder, "conf.d/50-policy.toml")

    def one(self, key):
        return settings(self.json("config", "show"))[key]

    def restart(self, *words):
        self.daemon.kill()
        self.daemon.wait()
        self.start_daemon(*words)

    def changed_nothing(self, value=30, text=None):
        self.assertEqual(self.one("policy.turn_ms")["value"], value)
        if text is None:
            self.assertFalse(os.path.exists(os.path.dirname(self.kept)))
        else:
            self.assertEqual(os.listdir(os.path.dirname(self.kept)), [os.path.basename(self.kept)])
            self.assertEqual(pathlib.Path(self.kept).read_text(), text)

    def test_it_is_in_force_and_stays(self):
        self.assertIsNone(self.json("policy", "set", "--linger", "300us")["file"])
        self.assertEqual(self.json("policy", "set", "share", "--turn", "40ms", "--persist")["file"], self.kept)
        self.assertEqual(stat.S_IMODE(os.stat(self.kept).st_mode), 0o644)
        turn = self.one("policy.turn_ms")
        self.assertEqual((turn["value"], turn["source"], turn["file"]), (40, "file", self.kept))
        self.assertEqual(self.one("policy.linger_us")["source"], "administrator")
        self.assertIn(f"written to {self.kept}\n", self.ctl("policy", "set", "--time-slices", "off", "--persist").stdout)
        self.assertRegex(self.ctl("config", "show").stdout, r'policy\.name +"share".*conf\.d/50-policy\.toml, line \d')
        self.restart()
        self.assertEqual([self.one(key)["value"] for key in ("policy.turn_ms", "policy.name", "device.time_slices")],
                         [40, "share", "off"])
        self.assertEqual(self.json("reload", "--dry-run")["changes"], [])
        # A setting without --persist overrides it until the next reload.
        self.json("policy", "set", "--turn", "50ms")
        self.assertEqual((self.one("policy.turn_ms")["value"], self.one("policy.turn_ms")["source"]), (50, "administrator"))
        self.json("reload")
        self.assertEqual((self.one("policy.turn_ms")["value"], self.one("policy.turn_ms")["file"]), (40, self.kept))

    def test_other_changes_of_the_files_wait_for_a_reload(self):
        self.file("xschedd.toml", "[policy]\nturn_ms = 30\nlinger_us = 999\n[daemon]\nlease_ms = 200\n")
        self.json("policy", "set", "--turn", "40ms", "--persist")
        self.assertEqual((self.one("policy.linger_us")["value"], self.one("policy.linger_us")["source"]), (200, "default"))
        self.assertEqual(self.one("daemon.lease_ms")["value"], 100)

    def test_a_dry_run_writes_nothing(self):
        self.assertIsNone(self.json("policy", "set", "--turn", "40ms", "--persist", "--dry-run")["file"])
        self.changed_nothing()

    def test_a_refused_setting_changes_nothing(self):
        self.fails(2, "policy", "set", "best", "--persist")
        self.changed_nothing()
        later = self.file("conf.d/60-site.toml", "[policy]\nturn_ms = 60\n")
        self.fails(6, "policy", "set", "--turn", "40ms", "--persist",
                   says=["policy.turn_ms would be 60 after a restart", later + ":2; ", "nothing was changed"])
        self.assertEqual(os.listdir(os.path.dirname(later)), ["60-site.toml"])
        self.assertEqual(self.one("policy.turn_ms")["value"], 30)
        os.remove(later)
        self.json("policy", "set", "--turn", "40ms", "--persist")
        before = pathlib.Path(self.kept).read_text()
        self.file("xschedd.toml", "[policy\n")
        self.fails(6, "policy", "set", "--turn", "45ms", "--persist", says=["xschedd.toml:1:", "nothing was changed"])
        self.changed_nothing(40, before)
        self.file("xschedd.toml", "")
        self.file("conf.d/50-policy.toml", "[[rule]]\nuid = 1\nweight = 2\n")
        self.fails(6, "policy", "set", "--turn", "45ms", "--persist", says=["contains more than the policy"])
        self.changed_nothing(40, "[[rule]]\nuid = 1\nweight = 2\n")

    def test_an_option_of_the_daemon_overrides_it(self):
        self.restart("--policy", "fifo")
        self.fails(6, "policy", "set", "share", "--persist", says=["started with --policy fifo", "nothing was changed"])
        self.changed_nothing()
        self.json("policy", "set", "--turn", "40ms", "--persist")

    def test_a_folder_that_cannot_be_written(self):
        self.file("conf.d", "no folder")
        self.fails(6, "policy", "set", "--turn", "40ms", "--persist", says=["conf.d: Not a directory; nothing was changed"])
        self.assertEqual(self.one("policy.turn_ms")["value"], 30)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv to have no capabilities")
    def test_without_rights_to_write(self):
        folder = os.path.dirname(self.kept)
        os.mkdir(folder)
        os.chown(folder, 65534, 65534)
        os.chmod(self.folder, 0o755)
        done = subprocess.run(["setpriv", "--bounding-set=-all", ctl_world.CTL, "--runtime-dir", self.folder, "policy", "set",
                               "--turn", "40ms", "--persist"], capture_output=True, text=True, check=False,
                              timeout=ctl_world.LIMIT_S, env=ctl_world.environment())
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertEqual(done.stderr, f"xschedctl: cannot write {self.kept}: Permission denied; nothing was changed; run it as "
                                      "root, or without --persist\n")
        self.assertEqual(os.listdir(folder), [])
        self.assertEqual(self.one("policy.turn_ms")["value"], 30)


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
