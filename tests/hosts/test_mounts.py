"""Hosts with a restricted view of the file system, in mount namespaces of their own, which need root."""

import subprocess
import unittest

import host
from host import client_library, hosts


NAMESPACE = ["unshare", "--mount", "--propagation", "private"]


@unittest.skipIf(subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode,
                 "no mount namespace to be had: not root, or in a chroot whose / is no mount point")
class Mounts(host.HostTest):
    plain = [hosts / "first_and_then", host.LAUNCHES, host.MICROS, "plain"]

    def inside(self, script):
        """Runs `script` in a namespace, then the program in the same process."""
        return [*NAMESPACE, "sh", "-ec", script + '\nexec "$@"', "sh"]

    def test_all_read_only(self):
        """There is no home folder either. HIP needs a folder for temporary files and gets one; the software GPU keeps its
        /dev/shm."""
        scratch = self.node.dir / "scratch"
        scratch.mkdir()
        self.check_scheduled(*self.plain, traced=False, before=self.inside(
            f"mount -t tmpfs hosts '{scratch}'\nmount -o remount,bind,ro /\nunset HOME\nexport TMPDIR='{scratch}'\n"
            "! touch /tmp/x 2>/dev/null"))

    def test_no_proc(self):
        self.check_scheduled(*self.plain, before=self.inside("umount -l /proc\n! test -e /proc/self"))

    def test_library_on_a_noexec_mount(self):
        place = self.node.dir / "noexec"
        place.mkdir()
        self.check_unscheduled(*self.plain, cause="doctor", before=self.inside(
            f"mount -t tmpfs -o noexec hosts '{place}'\ncp '{client_library}' '{place}'"),
            environment={"XSCHEDD_CLIENT_LIB": place / client_library.name})


if __name__ == "__main__":
    unittest.main()
