"""A client of containerd by CRI: pods of one container each, as a kubelet would have them.

The messages are compiled from the CRI's own file, in `cri` beside this one.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "cri"
# grpc_tools may be older than an option that only says what not to log.
text = (FOLDER / "api.proto").read_text()
(FOLDER / "api.proto").write_text(re.sub(r"\s*\[debug_redact = true\]", "", text))
subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", f"--python_out={FOLDER}", f"--grpc_python_out={FOLDER}",
                str(FOLDER / "api.proto")], check=True)
sys.path.insert(0, str(FOLDER))

import api_pb2 as api  # noqa: E402
import api_pb2_grpc  # noqa: E402
import grpc  # noqa: E402

SOCKET = "/run/containerd/containerd.sock"
LIMIT_S = 120


class Runtime:
    """containerd. Each call waits until it listens."""

    def __init__(self, cgroup, image):
        self.cgroup, self.image, self.stub = cgroup, image, None
        self.connect()

    def connect(self):
        """Anew: a channel does not see at once that containerd was restarted."""
        self.stub = api_pb2_grpc.RuntimeServiceStub(grpc.insecure_channel(f"unix://{SOCKET}"))

    def call(self, name, request):
        return getattr(self.stub, name)(request, timeout=LIMIT_S, wait_for_ready=True)

    def version(self):
        said = self.call("Version", api.VersionRequest())
        return f"{said.runtime_name} {said.runtime_version}"


class Pod:
    """A started pod."""

    def __init__(self, runtime, name, namespace="default", annotations=None, command=("sleep", "100000"), environment=None):
        self.runtime, self.name, self.namespace = runtime, name, namespace
        config = api.PodSandboxConfig(metadata=api.PodSandboxMetadata(name=name, uid=f"uid-{name}", namespace=namespace),
                                      log_directory="/tmp/pods", annotations=annotations or {},
                                      labels={"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace})
        config.linux.cgroup_parent = f"/{runtime.cgroup}/pod{name}"
        options = config.linux.security_context.namespace_options
        # There is no network plugin.
        options.network, options.pid = api.NODE, api.CONTAINER
        self.sandbox = runtime.call("RunPodSandbox", api.RunPodSandboxRequest(config=config)).pod_sandbox_id
        container = api.ContainerConfig(metadata=api.ContainerMetadata(name="main"), image=api.ImageSpec(image=runtime.image),
                                        command=list(command), log_path=f"{name}.log")
        for key, value in (environment or {}).items():
            container.envs.add(key=key, value=value.encode())
        self.id = runtime.call("CreateContainer", api.CreateContainerRequest(
            pod_sandbox_id=self.sandbox, config=container, sandbox_config=config)).container_id
        runtime.call("StartContainer", api.StartContainerRequest(container_id=self.id))

    def run(self, *command):
        """What the command printed, run in the container."""
        done = self.runtime.call("ExecSync", api.ExecSyncRequest(container_id=self.id, cmd=list(command), timeout=60))
        return (done.stdout + done.stderr).decode().strip()

    def stop(self):
        self.runtime.call("StopContainer", api.StopContainerRequest(container_id=self.id, timeout=0))

    def remove(self):
        self.runtime.call("StopPodSandbox", api.StopPodSandboxRequest(pod_sandbox_id=self.sandbox))
        self.runtime.call("RemovePodSandbox", api.RemovePodSandboxRequest(pod_sandbox_id=self.sandbox))
