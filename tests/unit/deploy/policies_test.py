"""The admission policies of deploy/kubernetes: their CEL expressions are evaluated for pods and workloads.

The evaluator is cel.py, not the API server's.

usage: policies_test.py [SOURCE_ROOT]
"""

import sys
import unittest

import cel
from manifests import ROOT, find, objects

TABLE = find("ConfigMap", "xschedd-priorities")["data"]
KEY = "xschedd.io/priority"


def pod(annotations=None, of_class=None, resources=("nvidia.com/gpu",), kind="Pod"):
    made = {"kind": kind, "metadata": {"name": "one"}, "spec": {"containers": [
        {"name": "main", "resources": {"limits": {name: "1" for name in resources}}}, {"name": "beside"}]}}
    if annotations is not None:
        made["metadata"]["annotations"] = annotations
    if of_class:
        made["spec"]["priorityClassName"] = of_class
    return made


def workload(kind, annotations):
    made = {"kind": kind, "metadata": {"name": "one"}, "spec": {"template": pod(annotations)}}
    return {"kind": kind, "metadata": {}, "spec": {"jobTemplate": made}} if kind == "CronJob" else made


class Policy:
    """Evaluates a policy as the API server does: conditions first, variables when they are used."""

    def __init__(self, kind, name):
        self.spec = find(kind, name)["spec"]

    def names(self, thing, namespace, table, old=None):
        names = {"object": thing, "oldObject": old, "params": {"data": table},
                 "request": {"namespace": namespace, "operation": "UPDATE" if old else "CREATE"}}
        names["variables"] = {one["name"]: (lambda text: lambda: cel.evaluate(text, names))(one["expression"])
                              for one in self.spec.get("variables", ())}
        return names

    def refuses(self, thing, namespace, table=None, old=None):
        """The message, or None."""
        names = self.names(thing, namespace, TABLE if table is None else table, old)
        for one in self.spec["validations"]:
            if not cel.boolean(cel.evaluate(one["expression"], names)):
                return cel.evaluate(one["messageExpression"], names)
        return None

    def patches(self, thing, namespace, table=None):
        names = self.names(thing, namespace, TABLE if table is None else table)
        if not all(cel.boolean(cel.evaluate(one["expression"], names)) for one in self.spec["matchConditions"]):
            return []
        return [patch for one in self.spec["mutations"] for patch in cel.evaluate(one["jsonPatch"]["expression"], names)]


class Ceilings(unittest.TestCase):
    policy = Policy("ValidatingAdmissionPolicy", "xschedd-ceilings")

    def test_a_pod_up_to_its_namespace_ceiling_is_admitted(self):
        for namespace, value in (("serving", "50"), ("serving", "-100"), ("other", "0"), ("other", "-20")):
            self.assertIsNone(self.policy.refuses(pod({KEY: value}), namespace), (namespace, value))

    def test_a_pod_above_the_ceiling_is_refused_with_a_message(self):
        for namespace, value, ceiling in (("serving", "51", 50), ("other", "1", 0), ("_default", "1", 0)):
            self.assertEqual(self.policy.refuses(pod({KEY: value}), namespace),
                             f"xschedd.io/priority is above {ceiling}, the ceiling of namespace {namespace}")

    def test_a_pod_with_a_container_above_the_ceiling_is_refused(self):
        self.assertIsNotNone(self.policy.refuses(pod({KEY: "0", KEY + ".container.main": "7"}), "other"))

    def test_templates_of_all_kinds_are_checked(self):
        kinds = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"}
        matched = {one for rule in self.policy.spec["matchConstraints"]["resourceRules"] for one in rule["resources"]}
        self.assertEqual(matched, {kind.lower() + "s" for kind in kinds | {"Pod"}})
        for kind in kinds:
            self.assertIsNotNone(self.policy.refuses(workload(kind, {KEY: "90"}), "serving"), kind)
            self.assertIsNone(self.policy.refuses(workload(kind, {KEY: "10"}), "serving"), kind)
            self.assertIsNone(self.policy.refuses(workload(kind, None), "serving"), kind)

    def test_an_update_is_refused_only_for_what_it_changes(self):
        for make in (pod, lambda annotations: workload("CronJob", annotations), lambda annotations: workload("Job", annotations)):
            high, higher = make({KEY: "70"}), make({KEY: "71"})
            self.assertIsNone(self.policy.refuses(make({KEY: "70", "a": "b"}), "other", old=high))
            self.assertIsNone(self.policy.refuses(make({KEY: "-5"}), "other", old=high))
            self.assertIsNotNone(self.policy.refuses(higher, "other", old=high))
            self.assertIsNotNone(self.policy.refuses(high, "other", old=make(None)))

    def test_pods_without_annotations_are_admitted(self):
        for annotations in (None, {}, {"example.com/priority": "99"}, {KEY: "high"}, {KEY: ""}, {"xschedd.io/weight": "900"}):
            self.assertIsNone(self.policy.refuses(pod(annotations), "other"), annotations)

    def test_without_a_row_the_ceiling_is_zero(self):
        self.assertIsNone(self.policy.refuses(pod({KEY: "0"}), "other", {}))
        self.assertIsNotNone(self.policy.refuses(pod({KEY: "1"}), "other", {}))


class Classes(unittest.TestCase):
    policy = Policy("MutatingAdmissionPolicy", "xschedd-classes")

    def test_the_class_becomes_the_annotation(self):
        self.assertEqual(self.policy.patches(pod({"a": "b"}, "xschedd-high"), "serving"),
                         [{"op": "add", "path": "/metadata/annotations/xschedd.io~1priority", "value": "20"}])
        self.assertEqual(self.policy.patches(pod(None, "xschedd-low"), "serving"),
                         [{"op": "add", "path": "/metadata/annotations", "value": {KEY: "-20"}}])

    def test_the_annotation_is_limited_by_the_ceiling_so_that_the_other_policy_admits_it(self):
        for namespace in ("serving", "other"):
            for of_class in ("xschedd-high", "xschedd-low"):
                (patch,) = self.policy.patches(pod(None, of_class), namespace)
                made = pod(patch["value"], of_class)
                self.assertIsNone(Ceilings.policy.refuses(made, namespace), (namespace, of_class))
        self.assertEqual(self.policy.patches(pod(None, "xschedd-high"), "other")[0]["value"], {KEY: "0"})

    def test_a_pod_keeps_its_own_annotation(self):
        self.assertEqual(self.policy.patches(pod({KEY: "5"}, "xschedd-high"), "serving"), [])

    def test_other_pods_are_not_changed(self):
        for other in (pod(), pod(None, "unknown"), pod(None, "xschedd-high", resources=("cpu",)), pod(None, "xschedd-high", ())):
            self.assertEqual(self.policy.patches(other, "serving"), [])

    def test_a_gpu_comes_from_a_device_plugin_or_a_claim(self):
        for resource in ("amd.com/gpu", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"):
            self.assertTrue(self.policy.patches(pod(None, "xschedd-high", (resource,)), "serving"), resource)
        by_claim = pod(None, "xschedd-high", ())
        by_claim["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        self.assertTrue(self.policy.patches(by_claim, "serving"))

    def test_each_class_of_the_table_exists_and_has_a_priority(self):
        classes = {one["metadata"]["name"]: one for one in objects() if one["kind"] == "PriorityClass"}
        rows = {key.partition(".")[2]: int(value) for key, value in TABLE.items() if key.startswith("class.")}
        self.assertEqual(set(rows), set(classes))
        self.assertGreater(rows["xschedd-high"], rows["xschedd-low"])
        self.assertGreater(classes["xschedd-high"]["value"], classes["xschedd-low"]["value"])
        for one in classes.values():
            self.assertEqual(one["preemptionPolicy"], "Never")


class Live(unittest.TestCase):
    policy = Policy("MutatingAdmissionPolicy", "xschedd-live")
    VOLUME = {"name": "xschedd-annotations",
              "downwardAPI": {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]}}
    MOUNT = {"name": "xschedd-annotations", "mountPath": "/run/xschedd-annotations", "readOnly": True}

    def test_a_pod_with_a_gpu_or_an_annotation_gets_the_volume_and_a_mount(self):
        for one in (pod(), pod({KEY: "5"}, None, ()), pod({KEY + ".container.main": "5"}, None, ())):
            self.assertEqual(self.policy.patches(one, "serving"),
                             [{"op": "add", "path": "/spec/volumes", "value": [self.VOLUME]},
                              {"op": "add", "path": "/spec/containers/0/volumeMounts", "value": [self.MOUNT]}])

    def test_what_it_has_stays(self):
        one = pod()
        one["spec"]["volumes"] = [{"name": "data"}]
        one["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        self.assertEqual(self.policy.patches(one, "serving"),
                         [{"op": "add", "path": "/spec/volumes/-", "value": self.VOLUME},
                          {"op": "add", "path": "/spec/containers/0/volumeMounts/-", "value": self.MOUNT}])

    def test_other_pods_and_those_that_have_it_stay_as_they_are(self):
        has_it = pod({KEY: "5"})
        has_it["spec"]["volumes"] = [{"name": "xschedd-annotations", "emptyDir": {}}]
        for one in (pod(None, None, ()), pod({"example.com/a": "b"}, None, ("cpu",)), has_it):
            self.assertEqual(self.policy.patches(one, "serving"), [])

    def test_names_are_the_plugins(self):
        text = (ROOT / "tools/nri/pod_files.h").read_text(encoding="utf-8")
        self.assertIn(f'kAnnotationsVolume[] = "{self.VOLUME["name"]}"', text)
        self.assertIn(f'kAnnotationsFile[] = "{self.VOLUME["downwardAPI"]["items"][0]["path"]}"', text)


class Bindings(unittest.TestCase):
    def test_each_policy_is_bound_and_admits_pods_if_it_or_the_table_fails(self):
        for kind in ("Validating", "Mutating"):
            bindings = [one["spec"] for one in objects() if one["kind"] == f"{kind}AdmissionPolicyBinding"]
            policies = [one for one in objects() if one["kind"] == f"{kind}AdmissionPolicy"]
            self.assertEqual([one["policyName"] for one in bindings], [one["metadata"]["name"] for one in policies])
            table = find("ConfigMap", "xschedd-priorities")["metadata"]
            for binding, policy in zip(bindings, policies):
                if "paramKind" in policy["spec"]:
                    self.assertEqual(binding["paramRef"], {"name": table["name"], "namespace": table["namespace"],
                                                           "parameterNotFoundAction": "Allow"})
                else:
                    self.assertNotIn("paramRef", binding)
                self.assertEqual(policy["spec"]["failurePolicy"], "Ignore")

    def test_priorities_in_the_table_are_in_range(self):
        for key, value in TABLE.items():
            self.assertRegex(key, r"^(class|ceiling)\.")
            self.assertTrue(-100 <= int(value) <= 100, key)


class Evaluator(unittest.TestCase):
    def test_text_that_is_not_cel_is_refused(self):
        for text in ("a ==", "a b", "has(a)", "a ? b", "[1, ", "'open", "a.b(", "a = b", "f(1)", "1 + 'a'", "a && true", "missing"):
            with self.assertRaises(cel.Wrong, msg=text):
                cel.evaluate(text, {"a": 1, "b": 2})

    def test_operators_have_their_precedence(self):
        for text, value in (("true || false && false", True), ("false ? 1 : true ? 2 : 3", 2), ("1 + 2 == 3 && !false", True),
                            ("[1, 2].filter(x, x > 1)", [2]), ("{'a': 1}['a']", 1), ("'b' in {'a': 1}", False), ("-1 < 0", True)):
            self.assertEqual(cel.evaluate(text, {}), value, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
