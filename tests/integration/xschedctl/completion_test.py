#!/usr/bin/env python3
"""xschedctl's completions, called as a shell calls them: exactly the commands and options that --help lists are offered, in
their places, and values by their kind. bash: the function itself; zsh: an interactive shell on a terminal, if it is
installed. No daemon.

usage: completion_test.py XSCHEDCTL XSCHEDD
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import help_text

CTL, DAEMON = (os.path.abspath(path) for path in sys.argv[1:3])
DEADLINE_S = 120


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def help_of(*command):
    said = run(CTL, *command, "--help").stdout
    return help_text.options(said), help_text.subcommands(said)


def commands(*path):
    found = [path]
    for name in help_of(*path)[1]:
        found += commands(*path, name)
    return found


def policies():
    return set(re.findall(r'"(\w+)"', help_text.option_text(run(DAEMON, "--help").stdout, "--policy")))


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="xschedd-completion-")
        cls.addClassCleanup(cls.folder.cleanup)
        root = pathlib.Path(cls.folder.name)
        cls.script = root / "xschedctl"
        cls.script.write_text(run(CTL, "completion", "bash").stdout)
        (root / "a-file").touch()
        (root / "a-folder").mkdir()
        (root / "bin").mkdir()
        cls.pretended = root / "bin/xschedctl"
        cls.pretended.write_text("#!/bin/sh\necho '4711 user'\necho '4712 user'\n")
        cls.pretended.chmod(0o755)

    def offered(self, *words):
        """The words that are offered for the last of `words`."""
        program = ('source "$1"; shift; COMP_WORDS=(xschedctl "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; '
                   '_xschedctl; printf "%s\\n" "${COMPREPLY[@]}"')
        environment = {**os.environ, "PATH": f"{self.pretended.parent}:{os.environ['PATH']}"}
        done = run("bash", "--norc", "-c", program, "bash", self.script, *words, cwd=self.folder.name, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return set(filter(None, done.stdout.splitlines()))

    def test_commands_and_options(self):
        everywhere, top = help_of()
        self.assertEqual(self.offered(""), set(top))
        self.assertEqual(self.offered("-"), everywhere)
        for command in commands()[1:]:
            options, inner = help_of(*command)
            self.assertEqual(self.offered(*command, "-"), options | everywhere, command)
            if inner:
                self.assertEqual(self.offered(*command, ""), set(inner), command)

    def test_a_part_of_a_word(self):
        self.assertEqual(self.offered("re"), {"release", "reload"})
        self.assertEqual(self.offered("--json", "policy", "s"), {"set"})
        self.assertEqual(self.offered("set", "--pri"), {"--priority"})

    def test_values(self):
        self.assertEqual(self.offered("policy", "set", ""), policies())
        self.assertEqual(self.offered("set", "--reset", ""), {"priority", "weight", "latency", "all"})
        self.assertEqual(self.offered("set", "--reset", "=", "w"), {"weight"})
        self.assertEqual(self.offered("set", "--reset", "="), {"priority", "weight", "latency", "all"})
        self.assertEqual(self.offered("completion", ""), {"bash", "zsh"})
        self.assertEqual(self.offered("run", "--shim", "a-"), {"a-file", "a-folder"})
        self.assertEqual(self.offered("doctor", "--root", "a-"), {"a-folder"})
        self.assertEqual(self.offered("ps", "--runtime-dir", "a-"), {"a-folder"})
        self.assertEqual(self.offered("--runtime-dir", "a-"), {"a-folder"})
        self.assertIn("root", self.offered("ps", "--uid", "ro"))
        self.assertEqual(self.offered("set", "--pid", ""), {"4711", "4712"})
        self.assertEqual(self.offered("explain", ""), {"4711", "4712"})
        self.assertEqual(self.offered("set", "--priority", ""), set(), "numbers are not completed")

    def test_a_value_is_not_taken_for_a_command(self):
        self.assertIn("--weight", self.offered("set", "--group", "ps", "-"))
        self.assertNotIn("--devices", self.offered("set", "--group", "ps", "-"))
        self.assertEqual(self.offered("--runtime-dir", "ps", "policy", "g"), {"get"})

    def test_the_command_of_run(self):
        self.assertIn("bash", self.offered("run", "--priority", "5", "--", "bas"))

    def test_shellcheck(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not installed")
        done = run("shellcheck", self.script)
        self.assertEqual(done.returncode, 0, done.stdout)


@unittest.skipIf(shutil.which("zsh") is None, "zsh is not installed")
class Zsh(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xschedd-completion-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "_xschedctl").write_text(run(CTL, "completion", "zsh").stdout)
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(root)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "ZDOTDIR": str(root), "PS1": "", "HOME": str(root)})
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, self.terminal)
        self.seen = ""
        self.send("unsetopt zle_bracketed_paste prompt_sp; setopt no_beep; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D\n"
                  "show() { print -r -- \"BUF<$BUFFER>\"; BUFFER= }; zle -N show; bindkey '^O' show; bindkey '^I' complete-word\n"
                  "print -r -- RE''ADY\n")
        self.read_until(r"READY")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, pattern):
        end = time.monotonic() + DEADLINE_S
        while True:
            match = re.search(pattern, self.seen, re.DOTALL)
            if match:
                self.seen = self.seen[match.end():]
                return match
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no output matches: {pattern}; {self.seen!r}")
            self.seen += os.read(self.terminal, 4096).decode(errors="replace")

    def completed(self, line):
        """The line after Tab is pressed behind it."""
        self.send(line + "\t\x0f")
        return self.read_until(r"BUF<(.*?)>").group(1).rstrip()

    def test_tab_completes_a_line(self):
        for part, whole in (("--run", "--runtime-dir="), ("rele", "release"), ("policy se", "policy set"),
                            ("policy set --gua", "policy set --guard="), ("policy set la", "policy set laxity"),
                            ("set --reset=we", "set --reset=weight"), ("ps --dev", "ps --devices"), ("ps --js", "ps --json"),
                            ("--json explain --dur", "--json explain --duration="), ("completion zs", "completion zsh")):
            self.assertEqual(self.completed("xschedctl " + part), "xschedctl " + whole)


class ZshFunctions(unittest.TestCase):
    def test_commands_and_options(self):
        script = run(CTL, "completion", "zsh").stdout
        everywhere, _ = help_of()
        for command in commands():
            body = re.search(rf"^_{'_'.join(('xschedctl', *command)).replace('-', '_')}\(\) \{{\n(.*?)^\}}", script, re.MULTILINE | re.DOTALL).group(1)
            options, inner = help_of(*command)
            wanted = options | (everywhere - {"-h", "--help", "--version"})
            self.assertEqual(set(re.findall(r"^    '\*?(--?[a-z-]+)", body, re.MULTILINE)), wanted, command)
            self.assertEqual(re.findall(r"^        '([a-z-]+):", body, re.MULTILINE), inner, command)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
