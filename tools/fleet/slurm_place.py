"""Where the tests of Slurm run: the parts in which Debian 12 with xschedd's packages and Debian sid with a Slurm of its own,
for which docs/how-to/slurm.md has the plugin compiled, differ. `controller` is who runs slurmctld.

Thread rule: main thread.
"""

from machine import ROOT, run

INSTALL = "apt-get install -y -q --no-install-recommends"


class Packages:
    """Debian 12: xschedd's packages for its Slurm."""

    folder = "/usr/lib/x86_64-linux-gnu/xschedd"
    controller = "root"
    plugstack = "/etc/slurm/plugstack.conf.d/xschedd.conf"

    def install(self):
        run("sh", "-c", f"{INSTALL} slurmd slurmctld slurm-client munge /opt/test/packages/*.deb")

    def remove(self):
        run("apt-get", "remove", "-y", "-q", "xschedd-slurm")

    def install_again(self):
        run("sh", "-c", f"{INSTALL} /opt/test/packages/xschedd-slurm_*.deb")

    def purge(self):
        run("apt-get", "purge", "-y", "-q", "xschedd-slurm")


class Portable:
    """Sid: what `./dev dist` makes, and cgroups of version 2 alone."""

    folder = "/usr/lib/xschedd"
    controller = "slurm"
    plugstack = "/etc/slurm/plugstack.conf"
    line = "optional libxschedd-spank.so path=/usr/bin"

    def install(self):
        # slurmd waits for its configuration, for longer than there is patience here.
        policy = ROOT / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        run("sh", "-c", f"{INSTALL} slurmd slurmctld slurm-client munge gcc libc6-dev libslurm-dev")
        policy.unlink()
        run("sh", "-c", f"{INSTALL} /opt/test/packages/*.deb")
        # It refuses a machine with both versions of cgroups, of which this root has one.
        (ROOT / "etc/slurm/cgroup.conf").write_text("CgroupPlugin=disabled\n")
        run("sh", "-ec", "cd /opt/test && gcc -shared -fPIC -O2 -Wall -Werror -D_GNU_SOURCE -o libxschedd-spank.so /usr/share/xschedd/slurm/*.c"
                         " && install libxschedd-spank.so /usr/lib/x86_64-linux-gnu/slurm-wlm")
        self.install_again()

    def remove(self):
        run("sed", "-i", f"\\|{self.line}|d", self.plugstack)

    def install_again(self):
        with (ROOT / self.plugstack[1:]).open("a") as file:
            file.write(self.line + "\n")

    def purge(self):
        self.remove()
        run("apt-get", "purge", "-y", "-q", "xschedd-portable")


PLACES = {"bookworm": Packages, "sid": Portable}
