"""The booted root of `booted`, seen from outside: running commands, talking to programs, listing files, and running the
steps of a test."""

import os
import pathlib
import subprocess
import sys
import time

LIMIT_S = 300.0
ENVIRONMENT = {"HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
               "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}}
ENTER = ["nsenter", "-t", os.environ["XSCHEDD_LEADER"], "-a"]
ROOT = pathlib.Path(os.environ["XSCHEDD_ROOT"])


class Failed(Exception):
    """A step failed; the text says what it found."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def run(*command, status=0):
    """What the command printed on both streams; fails unless the exit status is `status` (None: any)."""
    done = subprocess.run([*ENTER, *map(str, command)], env=ENVIRONMENT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    expect(status is None or done.returncode == status, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


def property_of(unit, name):
    return run("systemctl", "show", "--property", name, "--value", unit)


def wait_for(condition, what):
    """Waits for the condition; the limit only keeps a failure from hanging."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise Failed(f"did not happen: {what}")


class Program:
    """A program in the root that answers each line with one line."""

    def __init__(self, *command, **environment):
        self.process = subprocess.Popen([*ENTER, *map(str, command)], env={**ENVIRONMENT, **environment}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def hear(self):
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=LIMIT_S)

    def runs(self):
        return self.process.poll() is None


# Where apt, dpkg and systemd write for any package.
EXCLUDED = ("var/lib/apt", "var/lib/dpkg", "var/cache", "var/log", "var/tmp", "tmp", "opt/test", "proc", "sys", "dev", "run", "root",
             "var/lib/systemd", "usr/lib/python3", "etc/ld.so.cache")


def files():
    """Every path of the root outside EXCLUDED and every one named after xschedd, with the lines of the account files."""
    found = {str(path.relative_to(ROOT)) for top in ROOT.iterdir() if not top.is_symlink() and top.name not in EXCLUDED
             for path in [top, *top.rglob("*")]}
    kept = {path for path in found if not path.startswith(tuple(part + "/" for part in EXCLUDED)) and path not in EXCLUDED}
    named = {line for line in run("sh", "-c", "find / -xdev -iname '*xschedd*' -not -path '/opt/test/*' -not -path '/proc/*'"
                                  " -not -path '/var/cache/*'; find /run -name '*xsched*'; getent group | grep xsched",
                                  status=None).splitlines()}
    return kept | named | {line for file in ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow")
                           for line in (ROOT / file).read_text().splitlines()}


def run_steps(test):
    """The methods in `test.STEPS`, in order, until one fails; the last line is `N passed, N failed`. The exit code."""
    passed = 0
    for step in test.STEPS:
        name = step.__name__.replace("_", " ")
        try:
            said = step(test)
        except Exception as failure:  # also an error in the test itself
            print(f"FAIL  {name}: {failure if isinstance(failure, Failed) else repr(failure)}", flush=True)
            print(run("journalctl", "--no-pager", "-n", "40", status=None), file=sys.stderr)
            print(f"{passed} passed, 1 failed", flush=True)
            return 1
        print(f"ok    {name}" + (f": {said}" if said else ""), flush=True)
        passed += 1
    print(f"{passed} passed, 0 failed", flush=True)
    return 0
