#!/usr/bin/env python3
"""The command line itself: selectors, --dry-run, mistyped words, exit statuses in each document, and output on a terminal:
colour, width, the pager. Usage: see ctl_world.py
"""

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

ROOT = pathlib.Path(__file__).resolve().parents[3]
SELECTORS = {"--pid", "--uid", "--group", "--cgroup", "--exe", "--all"}
BY_SELECTOR = ("ps", "top", "set", "hold", "release", "explain", "events")
CHANGING = (["set"], ["hold"], ["release"], ["policy", "set"], ["reload"], ["disable"], ["enable"], ["run"])
COLOUR = re.compile(r"\x1b\[\d+m")


class Words(WithFolder):
    def options(self, *command):
        return help_text.options(self.ctl(*command, "--help").stdout)

    def test_the_same_selectors_everywhere(self):
        for command in BY_SELECTOR:
            self.assertLessEqual(SELECTORS, self.options(command), command)

    def test_every_command_that_changes_something_has_a_dry_run(self):
        for command in CHANGING:
            self.assertIn("--dry-run", self.options(*command), command)

    def test_a_mistyped_word(self):
        self.fails(2, "pss", says=['no command "pss"', "did you mean ps?"])
        self.fails(2, "realese", "--all", says=["did you mean release?"])
        self.fails(2, "policy", "sett", says=['no command "policy sett"', "did you mean set?"])
        self.fails(2, "--jsno", "ps", says=['no option "--jsno"', "did you mean --json?"])
        self.fails(2, "set", "--priorty", "5", "--all", says=['no option "--priorty" of set', "did you mean --priority?"])
        self.fails(2, "zebra", says=['no command "zebra"; See xschedctl --help'])
        self.fails(2, "\x1b[31m", says=['"?[31m"'])

    def test_the_exit_statuses_are_the_same_in_each_document(self):
        code = dict(re.findall(r"^  (k\w+) = (\d+),", (ROOT / "tools/xschedctl/exit_code.h").read_text(), re.MULTILINE))
        table = dict(re.findall(r"^  (\d+) +(\S.*)$", self.ctl("--help").stdout.split("Exit status:")[1], re.MULTILINE))
        self.assertEqual(sorted(map(int, code.values())), sorted(map(int, table)))
        page = (ROOT / "docs/man/xschedctl.1").read_text().replace("\\-", "-").split(".Sh EXIT STATUS")[1].split(".Sh")[0]
        entries = re.split(r"^\.It (\d+)$", page.split("\n.El")[0], flags=re.MULTILINE)[1:]
        said = {number: " ".join(re.sub(r"^\.(Cm|Pp|Xr)? ?", "", line) for line in text.strip().splitlines())
                for number, text in zip(entries[::2], entries[1::2])}

        def plain(text):
            return re.sub(r"[^a-z0-9-]+", " ", text.lower()).strip()
        self.assertEqual({number: plain(text) for number, text in said.items()},
                         {number: plain(text) for number, text in table.items()})
        markdown = (ROOT / "docs/reference/xschedctl.md").read_text().split("## Exit status")[1]
        rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", markdown, re.MULTILINE))
        self.assertEqual(set(rows), set(table))
        for number, text in rows.items():
            self.assertTrue(plain(text).startswith(plain(table[number]).split(" or a value")[0]), (number, text))

    def test_a_session_of_each_command_is_recorded(self):
        # The newest record is in docs/results, or else in the archive.
        made = [*sorted(ROOT.glob("docs/archive/*/sessions.md")), *ROOT.glob("docs/results/sessions.md")]
        recorded = made[-1].read_text()
        for name in help_text.subcommands(self.ctl("--help").stdout):
            self.assertRegex(recorded, rf"(?m)^\$ xschedctl {name}\b", "record the sessions again: tools/sessions/record")

    def test_run_shows_what_it_would_start(self):
        done = self.ctl("run", "--dry-run", "--shim", "/dev/null", "--priority", "5", "--deadline", "33ms", "--", "false", "\x1b[31m")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("would run: false ?[31m\n", "  LD_PRELOAD=/dev/null\n", "  XSCHEDD_PRIORITY=5\n",
                     "  XSCHEDD_DEADLINE_US=33000\n", f"  XSCHEDD_RUNTIME_DIR={self.folder}\n", "nothing was started",
                     "unscheduled until there is a daemon"):
            self.assertIn(part, done.stdout)
        self.fails(127, "run", "--shim", "/dev/null", "--", "/nowhere/at/all", says=["check its name"], warns=True)
        self.fails(126, "run", "--shim", "/dev/null", "--", self.file("plain", "text"), says=["may execute"], warns=True)
        self.fails(2, "run", "--dry-run", "--priority", "500", "--", "true", says=["-100 to 100"])

    def test_version_shows_the_layout_of_shared_memory(self):
        self.assertRegex(self.ctl("version").stdout, r"^xschedctl \S+ \(ABI \d+, layout [0-9a-f]{16}\)\n$")


class Selecting(WithDaemon):
    def test_explain(self):
        high, low = self.held_pair()
        for words, pids in (([low], [low]), (["--pid", low], [low]), (["--group", "ranks"], [high]),
                            (["--all"], [high, low]), (["--uid", os.getuid(), "--pid", low], [low]),
                            (["--exe", "fake_client"], [high, low]), ([low, "--duration", "5s"], [low]), ([high, low], [high, low])):
            done = self.ctl("--json", "explain", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(json.loads(line)["pid"] for line in done.stdout.splitlines()), sorted(pids), words)
        self.fails(5, "explain", "--group", "nobody", says=["no client matches"])
        self.fails(2, "explain", says=["give a pid"])

    def test_the_old_name_of_duration(self):
        _, low = self.held_pair()
        done = self.ctl("explain", low, "--seconds", 5)
        self.assertEqual((done.returncode, done.stderr), (0, "xschedctl: --seconds is the old name of --duration; write --duration 5s\n"))
        self.fails(2, "explain", low, "--seconds", 5, "--duration", "5s", says=["--seconds"])
        self.fails(2, "explain", low, "--duration", "5", says=["as in 25ms"])
        self.assertNotIn("--seconds", self.ctl("explain", "--help").stdout)

    def test_pids_without_an_option(self):
        high, low = self.held_pair()
        for words, pids in ((["set", "--priority", 3, low, high], {high, low}), (["set", low, "--priority", 3], {low}),
                            (["set", "--reset", low], {low}), (["set", low, "--reset", "priority"], {low}),
                            (["hold", low, "--pid", high], {high, low}), (["release", high, low], {high, low})):
            done = self.ctl("--json", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({change["pid"] for change in json.loads(done.stdout)["changes"]}, pids, words)
        done = self.ctl("--json", "ps", low)
        self.assertEqual([client["pid"] for client in json.loads(done.stdout)["clients"]], [low])
        self.assertIn(str(low), self.ctl("doctor", low).stdout)

    def test_events(self):
        high, low = self.held_pair()

        def pids(*words):
            done = self.ctl("--json", "events", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {json.loads(line)["pid"] for line in done.stdout.splitlines()}
        self.assertLessEqual({high, low}, pids())
        for words, wanted in ((["--pid", low], {low}), (["--group", "ranks"], {high}), (["--group", "nobody"], set()),
                              (["--exe", "fake_client"], {high, low}), (["--pid", high, "--pid", low], {high, low})):
            self.assertEqual(pids(*words), wanted, words)

    def test_events_that_follow_show_later_clients(self):
        follower = subprocess.Popen([ctl_world.CTL, "--runtime-dir", self.folder, "--json", "events", "--follow", "--group",
                                     "later"], stdout=subprocess.PIPE, text=True)
        self.children.append(follower)
        self.addCleanup(follower.stdout.close)
        self.client("--group", "sooner")
        # Changes are made until the follower shows one.
        later = self.client("--group", "later")
        changer = subprocess.Popen(["sh", "-c", 'i=0; while i=$((i + 1)); do "$0" --runtime-dir "$1" set --priority '
                                    '$((i % 9)) --all >&-; done', ctl_world.CTL, self.folder])
        self.children.append(changer)
        self.assertEqual({json.loads(follower.stdout.readline())["pid"] for _ in range(3)}, {later})

    def test_top(self):
        high, low = self.held_pair()
        done = self.ctl("top", "--batch", "--frames", 1, "--pid", low)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(low), done.stdout)
        self.assertNotRegex(done.stdout, rf"(?m)^ *{high} ")

    def test_version_of_both(self):
        self.assertRegex(self.ctl("version").stdout, r"\Axschedctl .*\ndaemon    \S+ \(pid \d+, ABI \d+, layout [0-9a-f]{16}, up .* m?s\)\n\Z")


class OnTerminal(WithDaemon):
    def test_colour_only_on_a_terminal_and_never_with_no_color(self):
        self.held_pair()
        for words in (["ps"], ["config", "show"], ["doctor"], ["config", "check", self.config], ["pss"]):
            self.assertRegex(self.on_terminal(*words)[1], COLOUR, words)
            self.assertNotRegex(self.on_terminal(*words, NO_COLOR="1")[1], COLOUR, words)
            self.assertNotRegex(self.on_terminal(*words, TERM="dumb")[1], COLOUR, words)
            piped = self.ctl(*words)
            self.assertNotIn("\x1b", piped.stdout + piped.stderr, words)
        for words in (["ps"], ["doctor"], ["config", "show"]):
            self.assertNotIn("\x1b", self.on_terminal("--json", *words)[1], words)

    def test_tables_fit_the_width(self):
        self.held_pair()
        for words in (["ps"], ["ps", "--devices"], ["config", "show"], ["set", "--priority", "1", "--all", "--dry-run"]):
            for columns in (80, 120, 200):
                # $COLUMNS, because the terminal's size may be set after xschedctl has read it.
                status, said = self.on_terminal(*words, columns=columns, NO_COLOR="1", COLUMNS=str(columns))
                self.assertEqual(status, 0)
                table = [line for line in said.splitlines() if not line.startswith("(")]
                self.assertLessEqual(max(map(len, table)), columns, words)
        doctor = self.on_terminal("doctor", NO_COLOR="1", COLUMNS="100")[1].splitlines()
        # A path is not broken, and its length depends on the build folder.
        self.assertLessEqual(max(len(line) for line in doctor if self.folder not in line and "/lib" not in line), 100)
        self.assertIn("WAITS-FOR", self.on_terminal("ps", NO_COLOR="1", COLUMNS="220")[1])
        self.assertNotIn("SOURCE", self.on_terminal("ps", NO_COLOR="1", COLUMNS="80")[1])
        self.assertIn("WAITS-FOR", self.ctl("ps", COLUMNS="80").stdout)

    def test_long_answers_go_through_a_pager(self):
        mark = self.file("pager", "#!/bin/sh\necho PAGED\ncat\n")
        os.chmod(mark, 0o755)
        # The size of the terminal is set after the program's start, so a shell waits for it first.
        def shown(*words, **more):
            program = self.file("wait", 'while [ "$(stty size | cut -d" " -f1)" = 0 ]; do sleep 0.02; done; exec "$@"\n')
            return self.in_shell(program, *words, **more)
        self.assertIn("PAGED", shown("config", "show", rows=10, PAGER=mark))
        self.assertIn("PAGED", shown("config", "show", rows=10, XSCHEDCTL_PAGER=mark, PAGER="false"))
        for words, rows, more in ((["config", "show"], 100, {"PAGER": mark}), (["--no-pager", "config", "show"], 10, {"PAGER": mark}),
                                  (["config", "show"], 10, {"PAGER": ""}), (["config", "show"], 10, {"PAGER": "cat"}),
                                  (["config", "show"], 10, {"PAGER": "/nowhere/pager"})):
            said = shown(*words, rows=rows, **more)
            self.assertNotIn("PAGED", said, (words, rows, more))
            self.assertIn("policy.turn_ms", said)
        self.assertNotIn("PAGED", self.ctl("config", "show", PAGER=mark).stdout)

    def in_shell(self, program, *words, rows, **more):
        real = ctl_world.CTL
        ctl_world.CTL = "/bin/sh"
        try:
            # on_terminal puts "--runtime-dir FOLDER" in front, which is not for the shell.
            wrapper = self.file("wrapper", f'exec sh {program} {real} --runtime-dir "$@"\n')
            ctl_world.CTL = self.file("start", f'#!/bin/sh\nshift\nexec sh {wrapper} "$@"\n')
            os.chmod(ctl_world.CTL, 0o755)
            return self.on_terminal(*words, rows=rows, **more)[1]
        finally:
            ctl_world.CTL = real


if __name__ == "__main__":
    unittest.main(argv=ctl_world.take(sys.argv))
