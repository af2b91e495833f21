#!/usr/bin/env python3
"""The archive, and then the portable .deb, in a booted Debian of any suite: install, serve, restart, upgrade under live clients,
remove. On Debian 12 also from its own packages to the portable one and back.

Run by `life` in `booted`. The steps are those of tools/package/test/life.py where nothing differs. The last line is
`N passed, N failed`.
"""

import os
import re
import sys

import life
from life import SERVICE, TEST
from machine import Program, expect, files, run, run_steps, wait_for

SUITE = os.environ["XSCHEDD_SUITE"]
HIP = "libamdhip64-5"  # what the demo's tenants are linked with


class Portable(life.Life):
    def install_dependencies(self):
        """What the test itself needs: Python, and HIP where the suite has the tenants' one."""
        run("apt-get", "update", "-q")
        # A suite may have the package without all that it needs.
        self.has_hip = "Conf " + HIP in run("apt-get", "install", "-s", "--no-install-recommends", HIP, status=None)
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", "python3",
            *([HIP, "libstdc++6"] if self.has_hip else []))
        self.before = files()
        libc = run("sh", "-c", "ldd --version | sed -n '1s/.* //p'")
        return f"glibc {libc}, {run('systemctl', '--version').splitlines()[0]}, HIP: {'5' if self.has_hip else 'not here'}"

    def verify(self):
        """An older systemd ignores what it does not know, and says so; it says nothing else."""
        said = re.sub(r"\x1b\[[0-9;]*m", "", run("systemd-analyze", "verify", SERVICE, *life.SOCKETS))
        unknown = re.findall(r"xschedd\S*: Unknown key name '(\w+)' in section 'Service', ignoring", said)
        expect(said.count("xschedd") == len(unknown), said)
        return f"ignored by it: {', '.join(unknown)}" if unknown else "knows every key"

    def self_test(self):
        """Two programs with the shim wait for each other."""
        run("xschedctl", "doctor", "--self-test")

    def tenants_of_the_demo(self):
        """Two real HIP programs on the software GPU under the service: the important one is served, the other held for it."""
        if not self.has_hip:
            return "skipped: no HIP 5 here"
        start = ["sh", "-c", f'exec {TEST}/tenants/softgpu-run -- xschedctl run --priority "$0" -- "$@" 2>&1']
        low = Program(*start, -10, f"{TEST}/tenants/saturating_tenant", "--seconds", 0, "--kernel-us", 1000, "--depth", 16)
        high = Program(*start, 50, f"{TEST}/tenants/request_tenant", "--seconds", 0, "--rate", 20)

        def device(name):
            found = self.client(name)
            return found["devices"][0] if found and found["devices"] else {}
        wait_for(lambda: int(device("request_tenant").get("completed", 0)) > 100, "the important tenant's kernels complete")
        wait_for(lambda: int(device("saturating_tenant").get("held_ns", 0)) > 0, "the other is held for it")
        for tenant in (low, high):
            expect(tenant.runs(), f"a tenant ended: {tenant.hear()}")
        run("pkill", "-f", f"^{TEST}/tenants/")
        for tenant in (low, high):
            tenant.process.communicate()
        wait_for(lambda: not self.client("_tenant"), "the tenants are gone")

    # ---- the archive
    def archive_installs(self):
        self.PREFIX = "/usr/local"
        expect("xschedd is installed" in run(f"{TEST}/archive/install"), "it does not say so")

    def archive_upgrades(self):
        run("sh", "-c", "echo '# of the administrator' >>/etc/xschedd/xschedd.toml")
        said = self.survive(lambda: run(f"{TEST}/archive/install") and "")
        run("grep", "-q", "of the administrator", "/etc/xschedd/xschedd.toml")
        return said

    def archive_uninstalls(self):
        run("/usr/local/lib/xschedd/install", "--uninstall")
        self.all_inactive()
        self.end_clients()
        self.all_gone()

    # ---- the .deb
    def deb_installs(self):
        self.PREFIX = "/usr"
        run("sh", "-c", f"dpkg -i {TEST}/deb/*.deb")

    def deb_upgrades(self):
        return self.survive(lambda: run("sh", "-c", f"dpkg -i {TEST}/upgrade/*.deb") and "")

    def deb_is_removed(self):
        run("dpkg", "--remove", "xschedd-portable")
        self.all_inactive()
        run("test", "-e", "/etc/xschedd/xschedd.toml")
        self.end_clients()

    def deb_is_purged(self):
        run("dpkg", "--purge", "xschedd-portable")
        self.all_gone()

    # ---- Debian's own packages
    def native_installs(self):
        run("sh", "-c", f"apt-get install -y -q --no-install-recommends {TEST}/native/*.deb")
        self.start_program()

    def moves(self, packages):
        """A running program goes on, and is a client of the other package's daemon, which knows no setting of the old one."""
        # The administrator's settings stay, also where the packages are of different releases.
        run("sh", "-c", f"apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-confold {packages}")
        wait_for(lambda: self.client("preloaded.py"), "the program is a client again")
        expect(self.client("preloaded.py")["priority_effective"] == 20, "its hint is lost")
        expect(self.program.ask("launch").split()[0] == "0", "the program cannot launch")

    def native_becomes_portable(self):
        self.moves(f"{TEST}/deb/*.deb")
        states = run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Package} ", "*xschedd*", status=None)
        expect("ii xschedd-portable" in states and "ii xschedd " not in states, states)

    def portable_becomes_native(self):
        self.moves(f"{TEST}/native/*.deb")
        states = run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Package} ", "*xschedd*", status=None)
        expect("ii xschedd-portable" not in states and "ii xschedd " in states, states)

    def all_is_purged(self):
        run("dpkg", "--purge", "xschedd", "xschedd-client", "xschedd-portable")
        self.end_clients()
        run("apt-get", "autoremove", "-y", "-q", "--purge")

    LIFE = (life.Life.serve, verify, life.Life.doctor, self_test, life.Life.acceptance, life.Life.start_program, tenants_of_the_demo,
            life.Life.restart, life.Life.crash, life.Life.watchdog, life.Life.reload)
    STEPS = (install_dependencies, archive_installs, *LIFE, archive_upgrades, life.Life.socket_activation, life.Life.metrics, life.Life.nri,
             archive_uninstalls, deb_installs, *LIFE, deb_upgrades, deb_is_removed, deb_is_purged)
    if SUITE == "bookworm":
        STEPS += (native_installs, native_becomes_portable, portable_becomes_native, all_is_purged)


if __name__ == "__main__":
    sys.exit(run_steps(Portable()))
