"""The Python package under every installed Python from 3.9 on, without the shim and with it preloaded. Its sources are
always parsed with the grammar of 3.9, and checked by mypy if that is installed. Prints which versions it found.

usage: versions_test.py PACKAGE_DIR SHIM
"""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

PACKAGE, SHIM = pathlib.Path(sys.argv[1]), sys.argv[2]
HERE = pathlib.Path(__file__).resolve().parent


def pythons():
    """Installed Pythons by version, each once."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(9, 20)] + ["/usr/bin/python3"]
    candidates += sorted((pathlib.Path.home() / ".pyenv/versions").glob("3.*/bin/python3"))
    found = {}
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", "import sys, os; print(sys.version.split()[0], os.path.realpath(sys.executable))"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            version, path = done.stdout.split(maxsplit=1)
            if tuple(map(int, version.split(".")[:2])) >= (3, 9):
                found.setdefault(path.strip(), version)
    return sorted(found.items(), key=lambda entry: [int(part) for part in re.findall(r"\d+", entry[1])])


class Versions(unittest.TestCase):
    def test_each(self):
        found = pythons()
        self.assertTrue(found)
        skipped = set()
        for path, version in found:
            for mode in ("without", "with"):
                environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
                environment.pop("LD_PRELOAD", None)
                if mode == "with":
                    environment["LD_PRELOAD"] = SHIM
                done = subprocess.run([path, "-W", "error", HERE.parent / "run.py", HERE / "test_package.py", mode], env=environment,
                                      capture_output=True, text=True, check=False)
                self.assertIn(done.returncode, (0, 77), f"{path} {mode} the shim:\n{done.stderr}")
                skipped |= {line for line in done.stdout.splitlines() if line.startswith("skipped: ")}
                print(f"python {version}, {mode} the shim: {done.stderr.strip().splitlines()[-3]}")
        if skipped:
            self.skipTest("; ".join(sorted(skipped)))

    def test_grammar(self):
        sources = sorted(PACKAGE.glob("xschedd/*.py"))
        self.assertTrue(sources)
        for source in sources:
            ast.parse(source.read_text(), str(source), feature_version=(3, 9))

    def test_types(self):
        mypy = "/usr/bin/mypy" if os.access("/usr/bin/mypy", os.X_OK) else shutil.which("mypy")
        if mypy is None:
            self.skipTest("mypy is not installed")
        done = subprocess.run([mypy, "--cache-dir", os.devnull], cwd=PACKAGE, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
