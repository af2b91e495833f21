"""Reads deploy/kubernetes: `objects()` are its Kubernetes objects by file, `find(kind, name)` is one of them."""

import pathlib
import sys

import yaml

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[3]).resolve()
FOLDER = ROOT / "deploy/kubernetes"


def documents():
    """Every YAML document, with its file."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield path, document


def objects():
    return [document for path, document in documents() if path.name not in ("kustomization.yaml", "patch.yaml")]


def find(kind, name):
    return next(one for one in objects() if one["kind"] == kind and one["metadata"]["name"] == name)


def pod_of(workload):
    return workload["spec"]["template"]


def containers(workload):
    pod = pod_of(workload)["spec"]
    return [*pod.get("initContainers", ()), *pod["containers"]]
