"""deploy/kubernetes compared with the rest of the project: what the objects name exists, and rights are those of the unit.

If XSCHEDD in the environment names a daemon, it reads the configuration. If kubectl is installed, it builds the
kustomizations.

usage: manifests_test.py [SOURCE_ROOT]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

import yaml

from manifests import FOLDER, ROOT, containers, documents, find, objects, pod_of

NODE = find("DaemonSet", "xschedd")
POD = pod_of(NODE)["spec"]
TABLE = find("ConfigMap", "xschedd-priorities")["data"]
# The annotations that the plugin reads; policies and the example are compared with this list.
ANNOTATIONS = {"xschedd.io/priority", "xschedd.io/weight", "xschedd.io/group", "xschedd.io/memory", "xschedd.io/latency"}
# Kinds of objects in the files, with the version of their API.
APIS = {"Namespace": "v1", "ServiceAccount": "v1", "ConfigMap": "v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1",
        "NetworkPolicy": "networking.k8s.io/v1", "PriorityClass": "scheduling.k8s.io/v1", "PodMonitor": "monitoring.coreos.com/v1",
        **{f"{kind}AdmissionPolicy{of}": "admissionregistration.k8s.io/v1" for kind in ("Validating", "Mutating")
           for of in ("", "Binding")}}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def container(name):
    return next(one for one in containers(NODE) if one["name"] == name)


def unit(key):
    return re.search(rf"^{key}=(.*)$", read("systemd/xschedd.service.in"), re.MULTILINE).group(1)


class Objects(unittest.TestCase):
    def test_each_document_is_an_object_of_a_known_kind(self):
        for path, one in documents():
            with self.subTest(path.name):
                if path.name == "kustomization.yaml":
                    self.assertEqual((one["kind"], one["apiVersion"]), ("Kustomization", "kustomize.config.k8s.io/v1beta1"))
                else:
                    self.assertEqual(one["apiVersion"], APIS.get(one["kind"]))
                    self.assertRegex(one["metadata"]["name"], r"^[a-z0-9][-a-z0-9]*$")

    def test_each_file_is_in_a_kustomization_and_each_named_file_exists(self):
        named = set()
        for path, one in documents():
            if path.name == "kustomization.yaml":
                files = [*one.get("resources", ()), *one.get("patchesStrategicMerge", ()), *(file for made in one.get("configMapGenerator", ()) for file in made["files"])]
                named |= {path, *(path.parent / file for file in files)}
        self.assertEqual(named, {path for path in FOLDER.rglob("*") if path.is_file()})

    def test_each_volume_is_mounted_and_each_mount_has_a_volume(self):
        mounted = {mount["name"] for one in containers(NODE) for mount in one["volumeMounts"]}
        self.assertEqual(mounted, {volume["name"] for volume in POD["volumes"]})
        self.assertEqual({volume["configMap"]["name"] for volume in POD["volumes"] if "configMap" in volume},
                         {"xschedd"})  # made by the kustomization

    def test_selectors_select(self):
        labels = pod_of(NODE)["metadata"]["labels"]
        for selector in (NODE["spec"]["selector"], find("NetworkPolicy", "xschedd")["spec"]["podSelector"],
                         find("PodMonitor", "xschedd")["spec"]["selector"]):
            self.assertEqual(selector["matchLabels"], labels)
        for one in objects():
            if one["kind"] == "Deployment":
                self.assertEqual(one["spec"]["selector"]["matchLabels"], pod_of(one)["metadata"]["labels"])


class Rights(unittest.TestCase):
    def test_the_daemon_has_the_capabilities_of_the_unit_and_others_none(self):
        for one in containers(NODE):
            given = one["securityContext"]["capabilities"]
            self.assertEqual(given["drop"], ["ALL"])
            wanted = unit("CapabilityBoundingSet").split() if one["name"] == "xschedd" else []
            self.assertEqual(sorted("CAP_" + name for name in given.get("add", ())), sorted(wanted), one["name"])

    def test_root_is_read_only_and_no_privilege_can_be_gained(self):
        for one in containers(NODE):
            self.assertIs(one["securityContext"]["readOnlyRootFilesystem"], True)
            self.assertIs(one["securityContext"]["allowPrivilegeEscalation"], False)
            self.assertNotIn("privileged", one["securityContext"])
        self.assertEqual(POD["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(POD["hostPID"], True)
        self.assertFalse({"hostNetwork", "hostIPC"} & set(POD))

    def test_memory_is_limited_as_in_the_unit_and_processor_time_is_not(self):
        limits = container("xschedd")["resources"]["limits"]
        self.assertEqual(limits, {"memory": unit("MemoryMax") + "i"})

    def test_the_account_has_no_rights_and_no_token(self):
        self.assertEqual([one["kind"] for one in objects() if "Role" in one["kind"]], [])
        self.assertIs(find("ServiceAccount", POD["serviceAccountName"])["automountServiceAccountToken"], False)
        self.assertIs(POD["automountServiceAccountToken"], False)

    def test_only_these_folders_of_the_host_are_mounted(self):
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in POD["volumes"] if "hostPath" in volume}
        self.assertEqual(paths, {"sockets": "/run/xschedd", "shim": "/var/lib/xschedd/shim", "nri": "/var/run/nri",
                                 "pods": "/var/lib/kubelet/pods"})
        # Volumes that the kubelet mounts later are seen, and nothing of it is changed.
        self.assertIn({"name": "pods", "mountPath": "/var/lib/kubelet/pods", "readOnly": True, "mountPropagation": "HostToContainer"},
                      container("xschedd-nri")["volumeMounts"])
        self.assertIn('kDefaultKubeletDir[] = "/var/lib/kubelet"', read("tools/nri/pod_files.h"))
        self.assertEqual(container("install-shim")["volumeMounts"], [{"name": "shim", "mountPath": container("install-shim")["command"][1]}])
        self.assertNotIn("shim", [mount["name"] for mount in container("xschedd")["volumeMounts"]])
        runtime_dir = re.search(r'kDefaultRuntimeDir(?:\[\])? ?[={] ?"(.*?)"', read("common/runtime_dir.h")).group(1)
        self.assertEqual(paths["sockets"], runtime_dir)
        for name in ("xschedd", "xschedd-nri"):
            self.assertIn({"name": "sockets", "mountPath": runtime_dir}, container(name)["volumeMounts"])
        for one in objects():  # the example's pods mount nothing of ours
            if one["kind"] == "Deployment":
                self.assertNotIn("volumes", pod_of(one)["spec"])


class Names(unittest.TestCase):
    def test_the_image_is_the_one_that_is_built(self):
        version = re.search(r"^  version: '(.*)',", read("meson.build"), re.MULTILINE).group(1)
        self.assertEqual({one["image"] for one in containers(NODE)}, {f"localhost/xschedd:{version}"})

    def test_the_options_are_the_daemons(self):
        program, *words = container("xschedd")["command"]
        self.assertEqual(program, "/usr/sbin/xschedd")
        known = set(re.findall(r'syntax\.Add(?:Option|Flag)\(\s*"(--[a-z-]+)"', read("daemon/main.cc")))
        self.assertIn("--config", known)
        for word in words:
            self.assertTrue(word in known or word == "/etc/xschedd/xschedd.toml", word)

    def test_programs_exist_in_the_image(self):
        self.assertEqual(container("install-shim")["command"][0], "/usr/lib/xschedd/install-shim")
        self.assertTrue(os.access(ROOT / "tools/image/install-shim", os.X_OK))

    def test_configuration_has_only_keys_of_the_daemon(self):
        def keys(toml, prefix=""):
            return {name for key, value in toml.items() for name in
                    (keys(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key})}
        ours = keys(tomllib.loads(read("deploy/kubernetes/node/config/xschedd.toml")))
        self.assertTrue(ours)
        self.assertLessEqual(ours, keys(tomllib.loads(read("daemon/xschedd.toml"))))

    def test_the_daemon_accepts_the_configuration(self):
        if "XSCHEDD" not in os.environ:
            self.skipTest("XSCHEDD names no daemon")
        subprocess.run([os.environ["XSCHEDD"], "--check-config", "--config", FOLDER / "node/config/xschedd.toml"], check=True,
                       stdout=subprocess.DEVNULL)

    def test_the_port_of_metrics_is_the_same_everywhere(self):
        address = tomllib.loads(read("deploy/kubernetes/node/config/xschedd.toml"))["metrics"]["address"]
        port = int(re.search(r'kDefaultMetricsAddress = "127\.0\.0\.1:(\d+)"', read("daemon/config/listen_address.h")).group(1))
        daemon = container("xschedd")
        self.assertEqual(address, f"0.0.0.0:{port}")
        self.assertEqual(daemon["ports"], [{"name": "metrics", "containerPort": port}])
        self.assertEqual(daemon["livenessProbe"]["httpGet"], {"path": "/metrics", "port": "metrics"})
        self.assertEqual(find("NetworkPolicy", "xschedd")["spec"]["ingress"], [{"ports": [{"port": port, "protocol": "TCP"}]}])
        monitor = find("PodMonitor", "xschedd")["spec"]
        (endpoint,) = monitor["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["path"]), ("metrics", "/metrics"))
        # Alerts and rules name the job, and claims' labels keep their names, as where systemd runs the daemon.
        scrape = yaml.safe_load(read("systemd/monitoring/prometheus-scrape.yml"))["scrape_configs"][0]
        self.assertEqual(monitor["selector"]["matchLabels"][monitor["jobLabel"]], scrape["job_name"])
        self.assertTrue(scrape["honor_labels"] and endpoint["honorLabels"])

    def test_annotations_are_those_of_the_plugin(self):
        found = set()
        for path in [*FOLDER.rglob("*.yaml"), ROOT / "docs/how-to/kubernetes.md"]:
            found |= set(re.findall(r"xschedd\.io/[a-z]+", path.read_text(encoding="utf-8")))
        found -= {"xschedd.io/node"}  # the label of nodes
        self.assertLessEqual(found, ANNOTATIONS)
        self.assertIn("xschedd.io/priority", found)

    def test_the_node_and_the_policy_have_the_same_ceilings(self):
        plugin = tomllib.loads(read("deploy/kubernetes/node/config/nri.toml"))
        rows = {"_default": plugin["default"], **plugin["namespace"]}
        self.assertEqual({f"ceiling.{name}": str(row["ceiling"]) for name, row in rows.items()},
                         {key: value for key, value in TABLE.items() if key.startswith("ceiling.")})

    def test_the_plugin_exists_and_knows_the_keys(self):
        folder = ROOT / "tools/nri"
        if not folder.exists():
            self.skipTest("xschedd-nri is not in this tree")
        self.assertIn("executable('xschedd-nri'", read("tools/nri/meson.build"))
        self.assertEqual(container("xschedd-nri")["command"], ["/usr/sbin/xschedd-nri"])
        known = {key for keys in re.findall(r"OnlyKeys\([^{]*\{([^}]*)\}", read("tools/nri/settings.cc"))
                 for key in re.findall(r'"(\w+)"', keys)}
        plugin = tomllib.loads(read("deploy/kubernetes/node/config/nri.toml"))
        used = {*plugin, *plugin["default"], *(key for row in plugin["namespace"].values() for key in row)}
        self.assertLessEqual(used, known)

    def test_the_plugin_finds_the_installed_shim(self):
        shim = tomllib.loads(read("deploy/kubernetes/node/config/nri.toml"))["shim"]
        folder = next(volume["hostPath"]["path"] for volume in POD["volumes"] if volume["name"] == "shim")
        self.assertEqual(shim, f"{folder}/libxschedd-shim.so")
        self.assertIn({"name": "shim", "mountPath": folder, "readOnly": True}, container("xschedd-nri")["volumeMounts"])

    def test_the_example_is_admitted_with_two_priorities(self):
        asked = {}
        for one in objects():
            if one["kind"] == "Deployment":
                self.assertLessEqual(set(pod_of(one)["metadata"]["annotations"]), ANNOTATIONS)
                asked[one["metadata"]["name"]] = int(pod_of(one)["metadata"]["annotations"]["xschedd.io/priority"])
        self.assertGreater(asked["serve"], asked["batch"])
        self.assertLessEqual(asked["serve"], int(TABLE["ceiling.serving"]))
        self.assertEqual(asked, {"serve": int(TABLE["class.xschedd-high"]), "batch": int(TABLE["class.xschedd-low"])})
        self.assertTrue(find("Namespace", "serving"))


class Kustomize(unittest.TestCase):
    def test_kubectl_builds_each_kustomization(self):
        if not shutil.which("kubectl"):
            self.skipTest("kubectl is not installed (Debian: kubernetes-client)")
        made = []
        for path in FOLDER.rglob("kustomization.yaml"):
            if path.parent.name == "on-packages":
                continue
            said = subprocess.run(["kubectl", "kustomize", path.parent], capture_output=True, text=True, check=False)
            self.assertEqual(said.returncode, 0, said.stderr)
            made += yaml.safe_load_all(said.stdout)
        names = sorted((one["kind"], one["metadata"]["name"]) for one in objects())
        self.assertEqual(sorted((one["kind"], one["metadata"]["name"]) for one in made), sorted([*names, ("ConfigMap", "xschedd")]))
        config = next(one for one in made if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "xschedd"))
        self.assertEqual(set(config["data"]), {"xschedd.toml", "nri.toml"})
        for one in made:
            if one["kind"] in ("DaemonSet", "ServiceAccount", "NetworkPolicy", "PodMonitor", "ConfigMap"):
                self.assertEqual(one["metadata"]["namespace"], "xschedd")


    def test_on_nodes_with_the_package_only_the_daemon_is_left_out(self):
        if not shutil.which("kubectl"):
            self.skipTest("kubectl is not installed (Debian: kubernetes-client)")
        pods = []
        for folder in (FOLDER / "node", FOLDER / "on-packages"):
            said = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True).stdout
            pods += [pod_of(one)["spec"] for one in yaml.safe_load_all(said) if one["kind"] == "DaemonSet"]
        with_daemon, without = pods
        del with_daemon["hostPID"]
        with_daemon["containers"] = [one for one in with_daemon["containers"] if one["name"] != "xschedd"]
        self.assertEqual([one["name"] for one in without["containers"]], ["xschedd-nri"])
        self.assertEqual(without, with_daemon)


class InstallShim(unittest.TestCase):
    NAMES = ("libxschedd-client.so", "libxschedd-shim.so")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xschedd-shim-")
        self.addCleanup(folder.cleanup)
        self.image, self.host = (os.path.join(folder.name, name) for name in ("image", "host"))
        os.mkdir(self.image)
        self.program = shutil.copy(ROOT / "tools/image/install-shim", self.image)

    def install(self, version):
        for name in self.NAMES:
            with open(os.path.join(self.image, name), "w", encoding="ascii") as file:
                file.write(f"{name} {version}\n")
        return subprocess.run([self.program, self.host], capture_output=True, text=True, check=True).stdout

    def read(self, name):
        with open(os.path.join(self.host, name), encoding="ascii") as file:
            return file.read()

    def test_an_upgrade_replaces_files_and_keeps_the_folder_and_open_files(self):
        self.install(1)
        folder = os.stat(self.host).st_ino
        with open(os.path.join(self.host, self.NAMES[1]), encoding="ascii") as used:
            self.assertEqual(self.install(2).count("is new"), 2)
            self.assertEqual(used.read(), f"{self.NAMES[1]} 1\n")
        self.assertEqual(os.stat(self.host).st_ino, folder)
        self.assertEqual(sorted(os.listdir(self.host)), sorted(self.NAMES))
        for name in self.NAMES:
            self.assertEqual(self.read(name), f"{name} 2\n")
            self.assertEqual(os.stat(os.path.join(self.host, name)).st_mode & 0o777, 0o755)

    def test_the_same_version_changes_nothing(self):
        self.install(1)
        before = [os.stat(os.path.join(self.host, name)).st_ino for name in self.NAMES]
        self.assertEqual(self.install(1), "")
        self.assertEqual([os.stat(os.path.join(self.host, name)).st_ino for name in self.NAMES], before)

    def test_files_of_an_interrupted_run_are_removed(self):
        self.install(1)
        with open(os.path.join(self.host, ".new-libxschedd-shim.so"), "w", encoding="ascii") as file:
            file.write("half")
        self.install(1)
        self.assertEqual(sorted(os.listdir(self.host)), sorted(self.NAMES))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
