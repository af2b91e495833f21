"""Checks what `meson install` installs, and where: the service starts an installed file, and the parts find each other.

usage: install_test.py MESON BUILD_DIR SOURCE_ROOT
"""

import configparser
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MESON, BUILD, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="xschedd-install-")
        subprocess.run([MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder.name], check=True,
                       stdout=subprocess.DEVNULL)
        cls.root = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def one(self, pattern):
        found = sorted(self.root.rglob(pattern))
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        return found[0]

    def test_the_service_starts_an_installed_program(self):
        if not list(self.root.rglob("xschedd.service")):
            self.skipTest("built without systemd")
        unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
        unit.optionxform = str
        unit.read(self.one("xschedd.service"))
        started = self.root / unit["Service"]["ExecStart"].lstrip("/")
        self.assertTrue(started.is_file(), f"ExecStart={started} is not there")
        document = self.root / unit["Unit"]["Documentation"].removeprefix("file:").lstrip("/")
        self.assertTrue(document.is_file(), f"Documentation={document} is not there")

    def test_each_runbook_of_the_alerts_is_installed(self):
        links = re.findall(r"runbook_url: file://(/\S+)#", self.one("prometheus-alerts.yml").read_text())
        self.assertTrue(links)
        for link in links:
            self.assertTrue((self.root / link.lstrip("/")).is_file(), f"runbook_url {link} is not there")

    def test_the_shim_is_beside_its_library(self):
        self.assertEqual(self.one("libxschedd-shim.so").parent, self.one("libxschedd-client.so").parent)

    def test_acceptance_finds_its_parts(self):
        program = self.one("share/xschedd/bench/acceptance/acceptance")
        self.assertTrue((self.one("bin/xschedctl").parent / "../share/xschedd/bench/acceptance/acceptance").samefile(program))
        said = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        for module in ("frame", "sound", "schema"):
            said = subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path[:0] = {[str(program.parent), str(program.parents[1])]!r}; "
                                   f"import {module}; {module == 'schema'} and schema.read()"], capture_output=True, text=True, check=False)
            self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_each_file_is_in_one_package(self):
        """As dh_install would package the files, with the prefix of the packages."""
        patterns = {}
        for file in (ROOT / "tools/package/debian").glob("*.install"):
            patterns.update({line: file.stem for line in file.read_text().split()})
        prefix = self.one("bin/xschedctl").parents[1].relative_to(self.root)
        for path in self.root.rglob("*"):
            if path.is_dir():
                continue
            name = path.relative_to(self.root)
            if name.is_relative_to(prefix):
                name = "usr" / name.relative_to(prefix)
            name = re.sub(r"^usr/lib(/[^/]+)?/(?=xschedd/)", "usr/lib/x86_64-linux-gnu/", str(name))
            name = re.sub(r"^usr/lib/systemd/", "lib/systemd/", re.sub(r"^usr/etc/", "etc/", name))
            owners = [package for pattern, package in patterns.items()
                      if any(one.match(pattern) for one in (pathlib.PurePath(name), *pathlib.PurePath(name).parents))]
            with self.subTest(name):
                self.assertEqual(len(owners), 1, owners)

    def test_the_daemon_reads_the_installed_configuration(self):
        configuration = self.one("xschedd.toml")
        said = subprocess.run([self.one("sbin/xschedd"), "--help"], check=True, capture_output=True, text=True).stdout
        self.assertIn("/" + str(configuration.relative_to(self.root)), said)
        self.assertEqual(list((configuration.parent / "conf.d").iterdir()), [])
        subprocess.run([self.one("sbin/xschedd"), "--check-config", "--config", configuration], check=True,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
