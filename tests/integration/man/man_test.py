"""Compares the manual pages with what they describe: each option, command, exit status, configuration key and environment
variable is in its page, and the page has no others. Also checks the pages with mandoc and man, if these are installed.

usage: man_test.py XSCHEDCTL XSCHEDD XSCHEDD_NRI SOURCE_ROOT MESON BUILD_ROOT
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CTL, DAEMON, NRI, ROOT, MESON, BUILD = *sys.argv[1:4], pathlib.Path(sys.argv[4]), *sys.argv[5:7]
PAGES = ROOT / "docs/man"
CTL_PAGES = sorted(path.name for path in PAGES.glob("xschedctl*.1"))
sys.path.append(str(ROOT / "tests/integration/xschedctl"))
import help_text  # noqa: E402


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def page(name):
    return (PAGES / name).read_text().replace("\\-", "-")


def sections(text, macro):
    """The parts of a page by heading."""
    parts = re.split(rf"^\.{macro} (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def documented(text):
    """The options that have an entry of their own: `.It Fl -name Ar VALUE`, `.It Fl n , Fl -name`."""
    found = set()
    for line in re.findall(r"^\.It (Fl .*)$", text, re.MULTILINE):
        found |= {"-" + name for name in re.findall(r"\bFl (-?[a-z][a-z-]*)", line)}
    return found


def entries(text):
    return re.findall(r"^\.It (\d+)$", text, re.MULTILINE)


def help_of(program, *command):
    """The options and subcommands that --help lists."""
    said = run(program, *command, "--help").stdout
    return help_text.options(said), help_text.subcommands(said), said


def commands(*path):
    """Every command that does something, by its words."""
    found = []
    for name in help_of(CTL, *path)[1]:
        below = commands(*path, name)
        found += below or [(*path, name)]
    return found


class Pages(unittest.TestCase):
    def test_xschedctl(self):
        text = page("xschedctl.1")
        top = sections(text, "Sh")
        everywhere = documented(top["OPTIONS"])
        selectors = documented(top["SELECTORS"])
        self.assertEqual(everywhere, help_of(CTL)[0])
        described = {}
        for name in CTL_PAGES:
            described.update(sections(sections(page(name), "Sh")["COMMANDS"], "Ss"))
        self.assertEqual(set(described), {" ".join(command) for command in commands()})
        for command in commands():
            wanted = help_of(CTL, *command)[0] - {"-h", "--help"}
            said = documented(described[" ".join(command)])
            if "--exe" in wanted:  # takes selectors, which have a section of their own
                self.assertLessEqual(selectors, wanted, command)
                wanted -= selectors
            self.assertEqual(said, wanted, f"xschedctl {' '.join(command)}")

    def test_exit_statuses_of_xschedctl(self):
        listed = re.findall(r"^  (\d+) ", help_of(CTL)[2].split("Exit status:")[1], re.MULTILINE)
        self.assertEqual(entries(sections(page("xschedctl.1"), "Sh")["EXIT STATUS"]), listed)

    def test_xschedd(self):
        top = sections(page("xschedd.8"), "Sh")
        self.assertEqual(documented(top["OPTIONS"]), help_of(DAEMON)[0])
        source = (ROOT / "daemon/main.cc").read_text().split("#include")[0]
        self.assertEqual(entries(top["EXIT STATUS"]), re.findall(r"^//   (\d)  ", source, re.MULTILINE))

    def test_xschedd_nri(self):
        top = sections(page("xschedd-nri.8"), "Sh")
        self.assertEqual(documented(top["OPTIONS"]), help_of(NRI)[0])
        keys = set(re.findall(r"^\.It Li (\w+)$", top["CONFIGURATION"], re.MULTILINE))
        known = self.known_keys("wrong = 1\n", NRI) | self.known_keys("[default]\nwrong = 1\n", NRI)
        self.assertEqual(keys | {"default", "namespace"}, known)

    def known_keys(self, text, program=DAEMON):
        """The keys that the program lists when it reports an unknown one."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            said = run(program, "--check-config", "--config", file.name).stderr
        match = re.search(r"known are (.*)$", said, re.MULTILINE)
        self.assertIsNotNone(match, said)
        return set(match.group(1).split(", "))

    def test_configuration(self):
        described = sections(sections(page("xschedd.toml.5"), "Sh")["DESCRIPTION"], "Ss")
        tables = {heading.strip("[]"): heading for heading in described if heading.startswith("[")}
        top = self.known_keys("no_such_key = 1\n")
        keys = {heading: {key for line in re.findall(r"^\.It (Ic .*)$", text, re.MULTILINE)
                          for key in re.findall(r"\bIc (\w+)", line)} for heading, text in described.items()}
        self.assertEqual(keys.pop("The top of the file") | set(tables), top)
        for name, heading in tables.items():
            self.assertEqual(keys[heading], self.known_keys(f"{heading}\nno_such_key = 1\n"), heading)

    def test_defaults_are_those_of_the_installed_file(self):
        described = sections(sections(page("xschedd.toml.5"), "Sh")["DESCRIPTION"], "Ss")
        installed = sections(re.sub(r"^(\[\w+\])$", r".Table \1", (ROOT / "daemon/xschedd.toml").read_text(),
                                    flags=re.MULTILINE), "Table")
        for heading in ("[daemon]", "[policy]", "[quota]"):
            for key, value in re.findall(r"^(\w+) = (.*)$", installed[heading], re.MULTILINE):
                with self.subTest(key):
                    said = re.search(rf"^\.It Ic {key} Pq .*, (.*)$", described[heading], re.MULTILINE)
                    self.assertIsNotNone(said)
                    self.assertEqual(said.group(1).replace("Qq ", "").strip('"'), value.strip('"'))

    def test_environment_of_the_shim(self):
        said = set(re.findall(r"^\.It Ev (\w+)$", sections(page("xschedd-shim.7"), "Sh")["ENVIRONMENT"], re.MULTILINE))
        read = {"XSCHEDD_RUNTIME_DIR"}  # common/runtime_dir.h
        for source in (ROOT / "client-shim").rglob("*.cc"):
            read |= set(re.findall(r'(?:getenv|EnvironmentVariable|GetNumber)\("(XSCHEDD_\w+)"', source.read_text()))
        self.assertEqual(said, read)

    def test_environment_of_xschedctl(self):
        said = set(re.findall(r"\bEv (XSCHEDD_\w+)", "".join(page(name) for name in CTL_PAGES)))
        read = {"XSCHEDD_RUNTIME_DIR", "XSCHEDD_SHIM"}  # common/runtime_dir.h, tools/xschedctl/preload.h
        read |= set(re.findall(r'\{"(XSCHEDD_\w+)"', (ROOT / "tools/xschedctl/command_run.cc").read_text()))
        self.assertEqual(said, read)

    def test_pages_and_completions_are_installed_once(self):
        places = json.loads(run(MESON, "introspect", BUILD, "--installed").stdout).values()
        for end in ("/man8/xschedd.8", "/man8/xschedd-nri.8", *(f"/man1/{name}" for name in CTL_PAGES), "/man5/xschedd.toml.5", "/man7/xschedd-shim.7",
                    "/bash-completion/completions/xschedctl", "/zsh/site-functions/_xschedctl", "/include/xschedd.h"):
            self.assertEqual(sum(place.endswith(end) for place in places), 1, end)

    def test_the_pages_are_well_formed(self):
        checkers = {"mandoc": ["-Tlint", "-W", "warning"], "man": ["--warnings", "-E", "UTF-8", "-l"]}
        present = {name: words for name, words in checkers.items() if shutil.which(name)}
        if not present:
            self.skipTest("neither mandoc nor man is installed")
        for name, words in present.items():
            for path in sorted(PAGES.glob("*.[1-9]")):
                done = run(name, *words, path)
                complaints = [line for line in (done.stderr + (done.stdout if name == "mandoc" else "")).splitlines()
                              if "makewhatis" not in line]
                self.assertEqual((done.returncode, complaints), (0, []), f"{name} {path}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
