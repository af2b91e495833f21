"""The package as it is installed: a wheel is built from a copy of it by PEP 517, without network, installed in a temporary
virtual environment, and used from there.

usage: wheel_test.py PACKAGE_DIR. Exit code 77: a needed module is not installed.
"""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

EXPECTED = {"xschedd/__init__.py", "xschedd/__main__.py", "xschedd/_control.py", "xschedd/_hints.py", "xschedd/_library.py",
            "xschedd/_stream.py", "xschedd/py.typed"}


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    for module in ("setuptools", "wheel", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: all: {module} is not installed")
            return 77
    with tempfile.TemporaryDirectory(prefix="xschedd-wheel-") as name:
        folder = pathlib.Path(name)
        source = folder / "source"  # the build writes beside the sources
        shutil.copytree(sys.argv[1], source)
        venv.EnvBuilder(system_site_packages=True, with_pip=True).create(folder / "venv")
        python = folder / "venv/bin/python"
        run(python, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
            "-w", folder, source)
        wheel = next(folder.glob("xschedd-*-py3-none-any.whl"))
        inside = {entry for entry in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in entry}
        if inside != EXPECTED:
            sys.exit(f"the wheel has {inside}")
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
        said = run(python, "-c", "import xschedd; print(xschedd.__file__, xschedd.__version__, xschedd.hint(priority=1))",
                   cwd=folder)
        print(wheel.name, said.strip())
        return 0 if str(folder / "venv") in said else 1


if __name__ == "__main__":
    sys.exit(main())
