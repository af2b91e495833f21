#!/usr/bin/env python3
"""Containers of podman as clients: what the CDI device gives them, priorities, claims, restarts; acceptance in one; the image and
the manifests for Kubernetes.

Run by `run` in `booted`; the argument is the cgroup below which containers are made. The clients are the packages'
self-test client, in an image with only a C library and busybox. Each step needs the one before it and waits for conditions.
The last line is `N passed, N failed`.
"""

import json
import sys

from machine import Program, expect, run, run_steps, wait_for

SERVICE, SOCKET = "xschedd.service", "xschedd-client.socket"
FOLDER = "/usr/lib/x86_64-linux-gnu/xschedd"
SHIM = f"{FOLDER}/libxschedd-shim.so"
CLIENT = (f"{FOLDER}/self-test/self-test-client", f"{FOLDER}/self-test/libamdhip64.so.self-test", "0000:c1:00.0")
IMAGE = "localhost/small:1"
CDI = ("--device", "xschedd.io/client=any")
CONNECTED = "2"  # XSCHEDD_STATE_CONNECTED of xschedd.h
MANY = 20

# Debian 12's podman refuses a machine with both versions of cgroups, and nspawn mounts those of version 1 read-only. So
# podman gets its own mount namespace, with version 1 mounted again.
SPACE = r"""
mount --make-rprivate /
if [ -d /sys/fs/cgroup/systemd ]; then
  controllers=$(sed -n 's/^[0-9]*:\([a-z_]*\):.*/\1/p' /proc/self/cgroup)
  umount -R /sys/fs/cgroup && mount -t tmpfs cgroups /sys/fs/cgroup
  for each in systemd $controllers; do
    [ "$each" = systemd ] && option=none,name=systemd || option=$each
    mkdir "/sys/fs/cgroup/$each" && mount -t cgroup -o "$option" cgroup "/sys/fs/cgroup/$each"
  done
fi
echo $$; read end
"""
# Without sysctls and limits, which this root may not set.
CONFIGURATION = r"""
mkdir -p /etc/containers /tmp/image/bin /tmp/image/lib64 /tmp/image/lib/x86_64-linux-gnu
echo '{"default":[{"type":"insecureAcceptAnything"}]}' >/etc/containers/policy.json
printf '[containers]\ndefault_sysctls = []\ndefault_ulimits = []\n' >/etc/containers/containers.conf
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' >/etc/containers/storage.conf
cd /tmp/image
cp /bin/busybox bin && for name in sh env ls cat touch sleep; do ln -sf busybox bin/$name; done
cp -L /lib64/ld-linux-x86-64.so.2 lib64 && cp -L /lib/x86_64-linux-gnu/lib{c,m,dl,rt,pthread}.so.* lib/x86_64-linux-gnu
tar -C /tmp/image -cf /tmp/image.tar .
tar -C / -cf /tmp/python.tar --exclude='*xsched*' --exclude=usr/share bin sbin lib lib64 etc usr
mkdir -p /tmp/empty && mkdir -m 1777 /tmp/empty/tmp && tar -C /tmp/empty -rf /tmp/python.tar tmp
mkdir -m 755 /tmp/report
tar -C /tmp --strip-components=1 -xf /opt/test/xschedd-*-linux-x86_64.tar.zst --wildcards '*/tree'
"""
# What docs/how-to/first-day-mi308x.md mounts, and the node's socket; the archive's files, which need no library of the image, and
# the software GPU in place of /dev/kfd and /dev/dri.
GPU = "/opt/test/gpu"
ACCEPTANCE = ("--shm-size=2g", "-v", "/run/xschedd/client:/run/xschedd:ro", "-v", "/tmp/tree/lib/xschedd:/usr/lib/xschedd:ro",
              "-v", "/tmp/tree/share/xschedd:/usr/share/xschedd:ro", "-v", "/tmp/tree/bin/xschedctl:/usr/bin/xschedctl:ro",
              "-v", "/tmp/tree/sbin/xschedd:/usr/sbin/xschedd:ro", "-v", "/tmp/report:/w", "-w", "/w", "-v", f"{GPU}:{GPU}:ro", "-e", f"LD_LIBRARY_PATH={GPU}/libraries")
PYTHON_IMAGE = "localhost/python:1"
MINUTES = 3


class Podman:
    def __init__(self, cgroup):
        self.cgroup = cgroup
        self.space = Program("unshare", "--mount", "sh", "-c", SPACE)
        self.enter = ("nsenter", "-t", self.space.hear(), "-m", "podman", "--cgroup-manager=cgroupfs", "--runtime=crun",
                      "--events-backend=file")

    def ask(self, *words, status=0):
        return run(*self.enter, *words, status=status)

    def words(self, name, *options):
        return ("run", "--rm", "-i", "--name", name, "--network=none", f"--cgroup-parent=/{self.cgroup}", *options, IMAGE)

    def once(self, *command, options=()):
        """What a container of this command printed."""
        return self.ask(*self.words("once", *options), *command)

    def client(self, name, *options):
        """A container that is a client; it has launched once."""
        program = Program(*self.enter, *self.words(name, *options), *CLIENT)
        state = program.ask("attach")
        expect(state == CONNECTED, f"{name} has not connected to the daemon: {state}")
        return program

    def id_of(self, name):
        return self.ask("inspect", "--format", "{{.Id}}", name)

    def cgroup_of(self, name):
        return f"/{self.cgroup}/libpod-{self.id_of(name)}"


class Fleet:
    def __init__(self, cgroup):
        self.cgroup = cgroup
        self.podman = self.high = self.low = None

    def clients(self):
        return json.loads(run("xschedctl", "--json", "ps"))["clients"]

    def of(self, name):
        """The container's client in the output of ps, or None."""
        container = self.podman.id_of(name)
        return next((client for client in self.clients() if container in client["cgroup"]), None)

    def state(self, name):
        client = self.of(name)
        return client["devices"][0]["state"] if client and client["devices"] else ""

    # ---- steps, in this order
    def prepare(self):
        run("apt-get", "update", "-q")
        run("sh", "-c", "apt-get install -y -q --no-install-recommends podman crun busybox-static kubernetes-client python3 zstd"
                        " /opt/test/packages/*.deb")
        run("sed", "-i", "s/^software_gpu = false/software_gpu = true/", "/etc/xschedd/xschedd.toml")
        run("systemctl", "restart", SERVICE)
        run("bash", "-ec", CONFIGURATION)
        self.podman = Podman(self.cgroup)
        for archive, image in (("image", IMAGE), ("python", PYTHON_IMAGE)):
            self.podman.ask("import", "-q", f"/tmp/{archive}.tar", image)
        return self.podman.ask("--version") + ", " + run("crun", "--version").splitlines()[0]

    def a_container_without_the_device_is_untouched(self):
        said = self.podman.once("sh", "-c", f"env; ls /run/xschedd {FOLDER} 2>&1 || true")
        expect("LD_PRELOAD" not in said and "XSCHEDD" not in said, said)
        expect(said.count("No such file or directory") == 2, said)

    def the_device_gives_its_mounts_and_a_variable(self):
        def environment(*options):
            lines = self.podman.once("env", options=options).splitlines()
            return {line for line in lines if not line.startswith("HOSTNAME=")}
        more = environment(*CDI) - environment()
        expect(more == {f"LD_PRELOAD={SHIM}"}, f"variables: {more}")
        said = self.podman.once("sh", "-c", f"ls /run/xschedd; touch /run/xschedd/x {FOLDER}/x 2>&1 || true", options=CDI)
        expect(said.splitlines()[0] == "client.sock" and said.count("Read-only file system") == 2, said)

    def a_container_is_a_client(self):
        """With its pid on the host, its own cgroup, and the priority from its environment, which raises no container."""
        self.high = self.podman.client("high", *CDI, "-e", "XSCHEDD_PRIORITY=20")
        client = self.of("high")
        expect(client, f"no client has the container's cgroup: {self.clients()}")
        expect((client["priority_hint"], client["priority_effective"]) == (20, 0), f"it has raised itself: {client}")
        inside = run("cat", f"/proc/{client['pid']}/cmdline")
        expect("self-test-client" in inside, f"its pid is not the one on the host: {inside}")

    def the_less_important_is_held(self):
        run("xschedctl", "set", self.of("high")["pid"], "--latency", "strict")
        self.low = self.podman.client("low", *CDI, "-e", "XSCHEDD_PRIORITY=-20")
        expect(self.of("low")["priority_effective"] == -20, f"its hint has no effect: {self.of('low')}")
        for program in (self.low, self.high):
            expect(program.ask("work") == "0", "it cannot work")
        wait_for(lambda: self.state("low") == "held", "the less important container is held")

    def priorities_change_live(self):
        run("xschedctl", "set", self.of("low")["pid"], "--priority", 30, "--latency", "strict")
        wait_for(lambda: self.state("high") == "held", "the other one is held")
        for program in (self.low, self.high):
            expect(program.ask("rest") == "0", "it does not rest")

    def a_claim_of_its_cgroup_counts_at_once_and_ends_with_it(self):
        run("xschedctl", "claim", "put", "job-1", "--cgroup", self.podman.cgroup_of("high"), "--priority", 40, "--label", "job=1")
        client = self.of("high")
        expect((client["priority_effective"], client["priority_source"]) == (40, "claim"), f"the claim has no effect: {client}")
        expect(self.high.end() == 0, "the container failed")
        wait_for(lambda: not json.loads(run("xschedctl", "--json", "claim", "list"))["claims"], "the claim ends with its cgroup")

    def a_ceiling_binds_what_a_container_asks_for(self):
        """The container mounts the claim's own socket instead of the CDI device's."""
        run("xschedctl", "claim", "put", "web", "--socket", "--ceiling", 5, "--label", "pod=web")
        web = self.podman.client("web", "-v", "/run/xschedd/claims/web:/run/xschedd:ro", "-v", f"{FOLDER}:{FOLDER}:ro",
                                 "-e", f"LD_PRELOAD={SHIM}", "-e", "XSCHEDD_PRIORITY=90")
        client = self.of("web")
        expect(client["priority_effective"] == 5, f"the claim's ceiling has no effect: {client}")
        expect(web.end() == 0, "the container failed")
        run("xschedctl", "claim", "rm", "web")

    def a_restart_of_the_daemon_strands_no_container(self):
        old = self.of("low")["connected_ms"]
        run("systemctl", "restart", SERVICE)
        wait_for(lambda: self.of("low") is not None, "the client connects again")
        expect(self.low.ask("work") == "0" and self.low.ask("rest") == "0", "it cannot work")
        return f"connected for {old} ms before"

    def nor_does_a_socket_that_is_made_again(self):
        """Folders are mounted, not files, so a running container reconnects and a new program finds the new socket.
        `exec` does not set a CDI device's variables."""
        run("systemctl", "restart", SOCKET)
        run("systemctl", "start", SERVICE)
        wait_for(lambda: self.of("low") is not None, "the client connects again")
        program = Program(*self.podman.enter, "exec", "-i", "-e", f"LD_PRELOAD={SHIM}", "low", *CLIENT)
        state = program.ask("attach")
        expect(state == CONNECTED, f"a new program does not find the socket: {state}")
        expect(program.end() == 0, "it failed")

    def many_come_and_go(self):
        for number in range(MANY):
            expect(self.podman.client(f"many-{number}", *CDI).end() == 0, "a container failed")
        expect(self.low.end() == 0, "the container failed")
        wait_for(lambda: not self.clients(), "no client is left")
        left = self.podman.ask("ps", "--all", "--quiet")
        expect(not left, f"containers are left: {left}")
        return f"{MANY} containers"

    def acceptance_runs_in_a_container(self):
        """In an image with Python and without anything of xschedd."""
        words = ("run", "--rm", "--network=none", f"--cgroup-parent=/{self.cgroup}", *ACCEPTANCE, PYTHON_IMAGE)
        said = self.podman.ask(*words, f"{GPU}/softgpu-run", "--name", "container", "--", "xschedctl", "acceptance", "--minutes", MINUTES,
                               "--output", "/w/acceptance", status=None)
        sections = {section["name"]: section["verdict"] for section in
                    json.loads(run("cat", "/tmp/report/acceptance/results.json", status=None) or '{"sections": []}')["sections"]}
        report = run("cat", "/tmp/report/acceptance/report.md", status=None)
        expect(sections.get("sound") == "yes" and sections.get("harmless") == "yes" and len(sections) == 4, f"{said}\n{report}")
        expect("Made on the software GPU, a stand-in" in run("cat", "/tmp/report/acceptance/report.html"), "the page does not say on what it was made")
        return ", ".join(f"{name} {verdict}" for name, verdict in sections.items())

    def the_image_runs_with_the_rights_of_the_manifests(self):
        """Loaded from the archive: the daemon's version, and the shim for other containers."""
        self.podman.ask("load", "-q", "-i", "/opt/test/xschedd.oci.tar")
        image = self.podman.ask("images", "--noheading", "--format", "{{.Repository}}:{{.Tag}}", "localhost/xschedd").split()
        expect(len(image) == 1, f"images: {image}")
        words = ("run", "--rm", "--network=none", f"--cgroup-parent=/{self.cgroup}", "--read-only", "--cap-drop=all")
        said = self.podman.ask(*words, "--cap-add=SYS_PTRACE", "--cap-add=DAC_READ_SEARCH", *image, "/usr/sbin/xschedd", "--version")
        expect(said.startswith("xschedd "), said)
        run("mkdir", "/tmp/shim")
        for lines in (2, 0):  # the second time there is nothing to do
            put = self.podman.ask(*words, "-v", "/tmp/shim:/host/shim", *image, "/usr/lib/xschedd/install-shim", "/host/shim")
            expect(put.count("is new") == lines, put)
        expect(run("sh", "-c", "LD_PRELOAD=/tmp/shim/libxschedd-shim.so ls /tmp/shim").split() ==
               ["libxschedd-client.so", "libxschedd-shim.so"], "the shim was not installed whole")
        return f"{image[0]}, {said}"

    def kubectl_of_this_release_puts_the_manifests_together(self):
        folders = run("sh", "-c", "cd /opt/test/kubernetes && find . -name kustomization.yaml -printf '%h '").split()
        expect(len(folders) > 3, f"folders: {folders}")
        for folder in folders:
            expect("kind:" in run("kubectl", "kustomize", f"/opt/test/kubernetes/{folder}"), f"{folder} has no object")
        return f"{len(folders)} folders, " + run("kubectl", "version", "--client", "--short")

    STEPS = (prepare, a_container_without_the_device_is_untouched, the_device_gives_its_mounts_and_a_variable,
             a_container_is_a_client, the_less_important_is_held, priorities_change_live,
             a_claim_of_its_cgroup_counts_at_once_and_ends_with_it, a_ceiling_binds_what_a_container_asks_for,
             a_restart_of_the_daemon_strands_no_container, nor_does_a_socket_that_is_made_again, many_come_and_go, acceptance_runs_in_a_container,
             the_image_runs_with_the_rights_of_the_manifests, kubectl_of_this_release_puts_the_manifests_together)


if __name__ == "__main__":
    sys.exit(run_steps(Fleet(sys.argv[1])))
