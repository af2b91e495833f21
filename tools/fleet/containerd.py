#!/usr/bin/env python3
"""Pods of containerd as clients: what annotations give them, their bounds, restarts of everything.

Run by `containerd` in its root; the argument is the cgroup below which pods are made. The clients are the packages' self-test
client, in an image with only a C library and busybox. Each step needs the one before it and waits for conditions. The last
line is `N passed, N failed`.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, "/opt/test/tests/fault")

import cri  # noqa: E402
from machine import expect, run, run_steps, wait_for  # noqa: E402
from service_manager import ServiceManager  # noqa: E402

FOLDER = "/usr/lib/x86_64-linux-gnu/xschedd"
SHIM = f"{FOLDER}/libxschedd-shim.so"
CLIENT = f"{FOLDER}/self-test/self-test-client {FOLDER}/self-test/libamdhip64.so.self-test 0000:c1:00.0"
# It answers each line of a file with a line of another.
COMMAND = ("sh", "-c", f"mkfifo /tmp/in; {CLIENT} <>/tmp/in >/tmp/out")
CONNECTED = "2"  # XSCHEDD_STATE_CONNECTED of xschedd.h
IMAGE = "localhost/small:1"
LIBRARIES = {"LD_LIBRARY_PATH": "/opt/libraries"}
CLAIMS = pathlib.Path("/run/xschedd/claims")
MANY = 200

CONFIGURATION = r"""
mkdir -p /etc/containerd /etc/xschedd /tmp/pods
printf '[namespace.ml]\nceiling = 50\n[namespace.batch]\nceiling = -10\nmemory = "24G"\n' >/etc/xschedd/nri.toml
# This root may not raise a process's chance to be killed; its files are in no overlay; a pod's own process sleeps, too.
containerd config default | sed "s/restrict_oom_score_adj = false/restrict_oom_score_adj = true/
  s/snapshotter = ['\"]overlayfs['\"]/snapshotter = 'native'/; s#'registry.k8s.io/pause:[0-9.]*'#'localhost/small:1'#" >/etc/containerd/config.toml
image=/tmp/image layout=/tmp/layout
mkdir -p $image/bin $image/tmp $image/lib64 $image/lib/x86_64-linux-gnu $layout/blobs/sha256
cp /bin/busybox $image/bin && for name in sh env ls cat echo touch sleep mkfifo wc; do ln -sf busybox $image/bin/$name; done
cp -L /lib64/ld-linux-x86-64.so.2 $image/lib64
cp -L /lib/x86_64-linux-gnu/lib{c,m,dl,rt,pthread}.so.* $image/lib/x86_64-linux-gnu
"""


def image_archive():
    """The image as an OCI layout, by hand."""
    layout = pathlib.Path("/tmp/layout")

    def blob(data):
        digest = run_bytes("sha256sum", data).split()[0].decode()
        (layout / "blobs/sha256" / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}
    layer = blob(subprocess.run(["tar", "-C", "/tmp/image", "-cf", "-", "."], stdout=subprocess.PIPE, check=True).stdout)
    config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["sleep", "100000"], "Env": ["PATH=/bin"]},
                              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
    kind = "application/vnd.oci.image"
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                                "config": {"mediaType": f"{kind}.config.v1+json", **config},
                                "layers": [{"mediaType": f"{kind}.layer.v1.tar", **layer}]}).encode())
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": f"{kind}.manifest.v1+json", **manifest, "annotations": {"io.containerd.image.name": IMAGE}}]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    run("tar", "-C", layout, "-cf", "/tmp/image.tar", ".")


def run_bytes(command, data):
    return subprocess.run([command], input=data, stdout=subprocess.PIPE, check=True).stdout


class Service:
    """A program that is started, stopped and started again; all that it prints is in its log."""

    def __init__(self, *command, libraries=False):
        self.command, self.process = command, None
        self.log_path = pathlib.Path(f"/tmp/{pathlib.Path(command[0]).name}.log")
        self.environment = {**os.environ, **(LIBRARIES if libraries else {})}

    def start(self):
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def log(self):
        return self.log_path.read_text(errors="replace")


def xschedctl(*words, status=0):
    return run("env", "LD_LIBRARY_PATH=/opt/libraries", "xschedctl", *words, status=status)


class Fleet:
    def __init__(self, cgroup):
        self.cgroup = cgroup
        # There is no systemd; this keeps the daemon's state across its restarts as systemd would.
        pathlib.Path("/run/xschedd").mkdir(exist_ok=True)
        self.daemon = ServiceManager("/run/xschedd", ["/usr/sbin/xschedd", "--software-gpu"], log="/tmp/xschedd.log",
                                     environment=LIBRARIES, watchdog=False)
        self.plugin = Service("/usr/sbin/xschedd-nri", libraries=True)
        self.containerd = Service("/usr/bin/containerd")
        self.runtime = self.high = self.low = None
        self.served = 0

    def claims(self):
        return json.loads(xschedctl("--json", "claim", "list"))["claims"]

    def claim(self, pod):
        return f"nri-{pod.id[:32]}"

    def of(self, pod):
        """The pod's client in the output of ps, or None."""
        clients = json.loads(xschedctl("--json", "ps"))["clients"]
        return next((client for client in clients if pod.id in client["cgroup"]), None)

    def state(self, pod):
        client = self.of(pod)
        return client["devices"][0]["state"] if client and client["devices"] else ""

    def ask(self, pod, line):
        before = int(pod.run("wc", "-l", "/tmp/out").split()[0])
        pod.run("sh", "-c", f"echo {line} >/tmp/in")
        wait_for(lambda: int(pod.run("wc", "-l", "/tmp/out").split()[0]) > before, f"{pod.name} answers {line}")
        return pod.run("cat", "/tmp/out").splitlines()[-1]

    def client(self, name, annotations=None, namespace="ml", environment=None):
        """A pod that is a client; it has launched once."""
        pod = cri.Pod(self.runtime, name, namespace, annotations, COMMAND, environment)
        wait_for(lambda: pod.run("ls", "/tmp/in", "/tmp/out").count("No such") == 0, f"{name} runs")
        state = self.ask(pod, "attach")
        expect(state == CONNECTED, f"{name} has not connected to the daemon: {state}")
        return pod

    def end(self, pod):
        pod.stop()
        pod.remove()

    def has(self, pod, priority, source="claim"):
        client = self.of(pod)
        expect(client, f"{pod.name} is no client: {xschedctl('ps')}")
        expect((client["priority_effective"], client["priority_source"]) == (priority, source), f"{pod.name}: {client}")
        expect(client["claim"]["text"] == f"pod {pod.namespace}/{pod.name}", f"{pod.name}: {client['claim']}")

    def said(self, line):
        expect(line in self.plugin.log(), f"the plugin has not said: {line}\n{self.plugin.log()}")

    def both_said(self, pod, line):
        """The plugin's log, and the container's own, which `kubectl logs` shows, once."""
        self.said(line)
        log = pathlib.Path(f"/tmp/pods/{pod.name}.log").read_text(errors="replace")
        count = sum(said.endswith(f"xschedd: {line}") for said in log.splitlines())
        expect(count == 1, f"the container's log: {log}")

    def await_plugin(self):
        """Until the engine has taken it once more."""
        self.served += 1
        wait_for(lambda: self.plugin.log().count("serves the container engine") >= self.served, "the plugin is registered")

    # ---- steps, in this order
    def prepare(self):
        run("bash", "-ec", CONFIGURATION)
        image_archive()
        # In this order the plugin must wait.
        self.plugin.start()
        self.daemon.start()
        self.containerd.start()
        self.runtime = cri.Runtime(self.cgroup, IMAGE)
        version = self.runtime.version()
        run("ctr", "-n", "k8s.io", "images", "import", "--local", "--snapshotter", "native", "/tmp/image.tar")
        self.await_plugin()
        self.said("it waits for a container engine with NRI")
        return version

    def a_pod_without_annotations_is_untouched(self):
        pod = cri.Pod(self.runtime, "plain", "ml")
        said = pod.run("sh", "-c", f"env; ls /run/xschedd {FOLDER} 2>&1")
        expect("LD_PRELOAD" not in said and "XSCHEDD" not in said, said)
        expect(said.count("No such file or directory") == 2, said)
        expect(not self.claims(), f"it has a claim: {self.claims()}")
        self.end(pod)

    def an_annotated_one_is_a_client_with_a_claim(self):
        self.high = self.client("high", {"xschedd.io/priority": "50", "xschedd.io/latency": "strict"})
        self.has(self.high, 50)
        said = self.high.run("sh", "-c", f"env; ls /run/xschedd; touch /run/xschedd/x {FOLDER}/x 2>&1")
        expect(f"LD_PRELOAD={SHIM}" in said.splitlines() and "client.sock" in said.splitlines(), said)
        expect(said.count("Read-only file system") == 2, said)

    def the_less_important_is_held(self):
        self.low = self.client("low", {"xschedd.io/priority": "90", "xschedd.io/priority.container.main": "-20"})
        self.has(self.low, -20)
        for pod in (self.low, self.high):
            expect(self.ask(pod, "work") == "0", f"{pod.name} cannot work")
        wait_for(lambda: self.state(self.low) == "held", "the less important pod is held")

    def a_claim_changes_live(self):
        for pod, priority in ((self.low, 40), (self.high, 30)):
            xschedctl("claim", "put", self.claim(pod), "--socket", "--priority", str(priority), "--latency", "strict",
                      "--label", f"pod={pod.name}", "--label", f"namespace={pod.namespace}")
        wait_for(lambda: self.state(self.high) == "held", "the other one is held")
        # An administrator's word goes before a claim's.
        for change, held in (("--priority=45", self.low), ("--reset", self.high)):
            xschedctl("set", "--cgroup", self.of(self.high)["cgroup"], change)
            wait_for(lambda held=held: self.state(held) == "held", f"{held.name} is held")
        for pod in (self.low, self.high):
            expect(self.ask(pod, "rest") == "0", f"{pod.name} does not rest")

    def a_pod_does_not_go_above_its_namespace(self):
        """Neither by its annotation, nor, as root, by its program's own word."""
        for name, namespace, annotations, expected, source in (
                ("climber", "ml", {"xschedd.io/priority": "51"}, 50, "claim"),
                ("stranger", "other", {"xschedd.io/priority": "10"}, 0, "claim"),
                ("sly", "batch", {"xschedd.io/group": "g"}, -10, "hint")):
            pod = self.client(name, annotations, namespace, {"XSCHEDD_PRIORITY": "100"})
            self.has(pod, expected, source)
            if name == "climber":
                self.both_said(pod, "pod ml/climber, container main: priority 51 is above 50, the ceiling of namespace ml; it gets 50")
            self.end(pod)

    def a_wrong_annotation_is_said_and_counts_as_none(self):
        pod = self.client("wrong", {"xschedd.io/priority": "urgent"})
        self.has(pod, 0, self.of(pod)["priority_source"])
        self.both_said(pod, 'pod ml/wrong, container main: xschedd.io/priority: "urgent" is not a priority; '
                            "give a number from -100 to 100; it is ignored")
        self.end(pod)
        pod = self.client("mistyped", {"xschedd.io/prio": "7"})
        self.has(pod, 0, self.of(pod)["priority_source"])
        self.both_said(pod, 'pod ml/mistyped, container main: there is no annotation "xschedd.io/prio"; '
                            "xschedd.io/ has priority, weight, latency, group and memory")
        self.end(pod)

    def an_annotation_limits_memory(self):
        pod = self.client("small", {"xschedd.io/memory": "8G"})
        claim = next(claim for claim in self.claims() if claim["name"] == self.claim(pod))
        expect(claim["memory_limit_bytes"] == 8 << 30, f"its claim: {claim}")
        self.end(pod)
        pod = self.client("greedy", {"xschedd.io/memory": "64G"}, "batch")
        claim = next(claim for claim in self.claims() if claim["name"] == self.claim(pod))
        expect(claim["memory_limit_bytes"] == 24 << 30, f"its claim: {claim}")
        self.both_said(pod, "pod batch/greedy, container main: memory 64G is above 24G, the ceiling of namespace batch; it gets 24G")
        self.end(pod)

    def a_wrong_file_is_said_and_changes_nothing(self):
        file = pathlib.Path("/etc/xschedd/nri.toml")
        right = file.read_text()
        file.write_text("[namespace.ml]\nceiling = 500\n")
        checked = run("env", "LD_LIBRARY_PATH=/opt/libraries", "xschedd-nri", "--check-config", status=3).removeprefix("xschedd-nri: ")
        expect(checked.startswith(f"{file}:2:") and checked.count("\n") == 0, checked)
        pod = self.client("bounded", {"xschedd.io/priority": "60"})
        self.has(pod, 50)
        self.said(f"{checked}; the previous settings still apply")
        self.end(pod)
        file.write_text(right)

    def a_pod_that_asks_for_a_gpu_is_bounded(self):
        pod = self.client("gpu", None, "other", {"NVIDIA_VISIBLE_DEVICES": "all", "XSCHEDD_PRIORITY": "20"})
        self.has(pod, 0, "hint")
        self.end(pod)

    def an_annotation_changes_live(self):
        """The kubelet's part, its file of the pod's annotations, is done here as it does it: there is no kubelet."""
        folder = pathlib.Path("/var/lib/kubelet/pods/uid-live/volumes/kubernetes.io~downward-api/xschedd-annotations")

        def annotate(version, priority):
            (folder / version).mkdir(parents=True)
            (folder / version / "annotations").write_text(f'xschedd.io/priority="{priority}"')
            (folder / "..data_tmp").symlink_to(version)
            (folder / "..data_tmp").rename(folder / "..data")
        annotate("..1", 5)
        (folder / "annotations").symlink_to("..data/annotations")
        pod = self.client("live", {"xschedd.io/priority": "5"})
        self.has(pod, 5)
        began = time.monotonic()
        annotate("..2", 33)
        wait_for(lambda: self.of(pod)["priority_effective"] == 33, "the running client has the new priority")
        took = time.monotonic() - began
        self.has(pod, 33)
        self.said("pod ml/live, container main: its annotations have changed, and its claim has now: priority 33")
        # The bounds are those of the namespace, and a restarted plugin knows what counts now.
        annotate("..3", 90)
        wait_for(lambda: self.of(pod)["priority_effective"] == 50, "it gets the ceiling")
        self.plugin.stop(signal.SIGKILL)
        annotate("..4", -3)
        self.plugin.start()
        self.await_plugin()
        wait_for(lambda: self.of(pod)["priority_effective"] == -3, "what changed while the plugin was away counts")
        self.end(pod)
        wait_for(lambda: len(self.claims()) == 2, "the claim of the pod that is gone ends")
        return f"after {took:.2f} s, with a look's own time"

    def a_restart_of_the_plugin_loses_nothing(self):
        """What ended meanwhile is found by comparing."""
        ended = self.client("ended", {"xschedd.io/priority": "5"})
        names = {claim["name"] for claim in self.claims()}
        expect(names == {self.claim(pod) for pod in (self.high, self.low, ended)}, f"claims: {names}")
        self.plugin.stop(signal.SIGKILL)
        self.end(ended)
        expect(len(self.claims()) == 3, f"claims: {self.claims()}")
        self.plugin.start()
        self.await_plugin()
        wait_for(lambda: len(self.claims()) == 2, "the claim of the pod that is gone ends")
        self.has(self.low, 40)

    def a_restart_of_containerd_strands_no_pod(self):
        """Neither in order, nor by kill -9."""
        for count, how in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
            self.containerd.stop(how)
            wait_for(lambda count=count: self.plugin.log().count("the container engine closed the connection") >= count,
                     "the plugin has noticed")
            self.has(self.low, 40)
            self.containerd.start()
            self.runtime.connect()
            self.await_plugin()
        after = self.client("after", {"xschedd.io/priority": "7"})
        self.has(after, 7)
        self.end(after)
        for pod in (self.low, self.high):
            expect(self.ask(pod, "work") == "0" and self.ask(pod, "rest") == "0", f"{pod.name} cannot work")
        expect(len(self.claims()) == 2, f"claims: {self.claims()}")

    def a_restart_of_the_daemon_strands_no_pod(self):
        self.daemon.kill(signal.SIGKILL)
        self.daemon.wait_ready(2)
        wait_for(lambda: self.of(self.low) is not None and self.of(self.high) is not None, "the clients connect again")
        self.has(self.low, 40)
        for pod in (self.low, self.high):
            expect(self.ask(pod, "work") == "0" and self.ask(pod, "rest") == "0", f"{pod.name} cannot work")

    def a_kill_of_all_three_strands_no_pod(self):
        ended = self.client("gone", {"xschedd.io/priority": "5"})
        self.plugin.stop(signal.SIGKILL)
        self.containerd.stop(signal.SIGKILL)
        starts = self.daemon.ready
        self.daemon.kill(signal.SIGKILL)
        self.plugin.start()
        self.containerd.start()
        self.daemon.wait_ready(starts + 1)
        self.runtime.connect()
        self.await_plugin()
        self.end(ended)
        wait_for(lambda: self.of(self.low) is not None and self.of(self.high) is not None, "the clients connect again")
        self.has(self.low, 40)
        for pod in (self.low, self.high):
            expect(self.ask(pod, "work") == "0" and self.ask(pod, "rest") == "0", f"{pod.name} cannot work")
        wait_for(lambda: len(self.claims()) == 2, "the claim of the pod that is gone ends")

    def a_daemon_that_lost_its_state_gets_the_claims_again(self):
        """As in a container, where nobody keeps it. What was changed live is lost; annotations are not."""
        self.daemon.stop()
        self.daemon.start()
        wait_for(lambda: len(self.claims()) == 2, "the claims are put again")
        wait_for(lambda: self.of(self.low) is not None and self.of(self.high) is not None, "the clients connect again")
        self.has(self.low, -20)
        self.has(self.high, 50)
        for pod in (self.low, self.high):
            expect(self.ask(pod, "work") == "0" and self.ask(pod, "rest") == "0", f"{pod.name} cannot work")

    def without_a_daemon_pods_start_all_the_same(self):
        self.daemon.kill(signal.SIGSTOP)
        def is_touched(name):
            pod = cri.Pod(self.runtime, name, "ml", {"xschedd.io/priority": "5"})
            environment = pod.run("env")
            self.end(pod)
            return "LD_PRELOAD" in environment
        expect(not is_touched("stopped"), "it was touched")
        self.said("pod ml/stopped, container main starts without xschedd: the daemon at /run/xschedd/admin.sock did not answer")
        self.daemon.kill(signal.SIGCONT)
        wait_for(lambda: is_touched("again"), "pods get their claims again")
        wait_for(lambda: len(self.claims()) == 2, "what the daemon did late is undone")

    def descriptors(self):
        """Of the daemon and the plugin."""
        return [len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) for pid in (self.daemon.pid, self.plugin.process.pid)]

    def many_come_and_go(self):
        self.end(self.client("before", {"xschedd.io/priority": "1"}))
        before = self.descriptors()
        for number in range(MANY):
            self.end(self.client(f"many-{number}", {"xschedd.io/priority": str(number - 20)}))
        for pod in (self.low, self.high):
            self.end(pod)
        wait_for(lambda: not self.claims(), "no claim is left")
        left = [str(path) for path in CLAIMS.iterdir()]
        expect(not left, f"sockets are left: {left}")
        wait_for(lambda: not json.loads(xschedctl("--json", "ps"))["clients"], "no client is left")
        wait_for(lambda: all(now <= then for now, then in zip(self.descriptors(), before)), f"no descriptor is left of {before}")
        # There is no init, so the dead stay.
        wait_for(lambda: not run("pgrep", "--runstates", "D,R,S,T", "--full", "[c]ontainerd-shim|[s]elf-test-client", status=None),
                 "no process is left")
        mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if "xschedd" in line and "containerd" in line]
        expect(not mounts, f"mounts are left: {mounts}")
        tasks = run("ctr", "-n", "k8s.io", "containers", "list", "--quiet")
        expect(not tasks, f"containers are left: {tasks}")
        # The pods' own are the kubelet's to remove.
        left = run("find", "/sys/fs/cgroup", "-type", "d", "-path", f"*/{self.cgroup}/pod*/*")
        expect(not left, f"cgroups are left: {left}")
        return f"{MANY} pods"

    STEPS = (prepare, a_pod_without_annotations_is_untouched, an_annotated_one_is_a_client_with_a_claim,
             the_less_important_is_held, a_claim_changes_live, a_pod_does_not_go_above_its_namespace,
             a_wrong_annotation_is_said_and_counts_as_none, an_annotation_limits_memory, a_wrong_file_is_said_and_changes_nothing,
             a_pod_that_asks_for_a_gpu_is_bounded, an_annotation_changes_live, a_restart_of_the_plugin_loses_nothing,
             a_restart_of_containerd_strands_no_pod, a_restart_of_the_daemon_strands_no_pod,
             a_kill_of_all_three_strands_no_pod, a_daemon_that_lost_its_state_gets_the_claims_again,
             without_a_daemon_pods_start_all_the_same, many_come_and_go)


if __name__ == "__main__":
    fleet = Fleet(sys.argv[1])
    status = run_steps(fleet)
    if status != 0:
        for log in ("xschedd-nri", "xschedd", "containerd"):
            print(f"---- {log}\n" + run("tail", "-n", "25", f"/tmp/{log}.log", status=None), file=sys.stderr)
    sys.exit(status)
