"""Other libraries in the host: allocators, sanitizers, another gRPC; and too few threads."""

import pathlib
import unittest

import harness
import host
from host import client_library, hosts, shim

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


class Libraries(host.HostTest):
    plain = [hosts / "first_and_then", host.LAUNCHES, host.MICROS, "plain"]

    def check_with(self, library):
        path = LIBRARIES / library
        if not path.exists():
            self.skipTest(f"{path} is not installed")
        for preload in f"{shim}:{path}", f"{path}:{shim}":
            with self.subTest(preload):
                self.stop_path.write_bytes(b"\0")
                self.check_scheduled(*self.plain, before=["env", f"LD_PRELOAD={preload}"])

    def test_jemalloc(self):
        self.check_with("libjemalloc.so.2")

    def test_tcmalloc(self):
        self.check_with("libtcmalloc_minimal.so.4")

    def test_malloc_of_its_own(self):
        self.check_scheduled(hosts / "own_malloc", host.LAUNCHES, host.MICROS)

    def test_grpc_and_protobuf_of_its_own(self):
        self.check_scheduled(hosts / "grpc_host", host.LAUNCHES, host.MICROS)

    def test_variables_of_its_own_grpc(self):
        """These are for the host's gRPC: ours prints nothing, and installs no fork handlers."""
        self.check_scheduled(hosts / "first_and_then", host.LAUNCHES, host.MICROS, "fork-after",
                             environment={"GRPC_VERBOSITY": "debug", "GRPC_TRACE": "all", "GRPC_ENABLE_FORK_SUPPORT": "1",
                                          "GRPC_POLL_STRATEGY": "none"})

    def test_grpc_loaded_globally_later(self):
        self.check_scheduled(*self.plain, environment={"HOST_LOAD_LATER": "libgrpc++.so.1.51:libprotobuf.so.32"})

    def check_asan(self, before, environment=None):
        err = self.check_scheduled(hosts / "asan_host", host.LAUNCHES, host.MICROS, "plain", before=before,
                                   environment={"ASAN_OPTIONS": "detect_leaks=0", **(environment or {})})
        self.assertNotIn("AddressSanitizer", err)

    def test_asan_first(self):
        self.check_asan(["env", f"LD_PRELOAD={LIBRARIES / 'libasan.so.8'}:{shim}"])

    def test_asan_without_its_check_of_link_order(self):
        self.check_asan([], {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})

    def test_asan_linked_statically(self):
        self.check_scheduled(hosts / "asan_static_host", host.LAUNCHES, host.MICROS, "plain",
                             environment={"ASAN_OPTIONS": "detect_leaks=0"})

    def test_too_few_threads(self):
        """With any number of threads from none to enough, the process neither ends nor hangs."""
        node = self.node
        node.start_daemon()
        outcomes = set()
        for after in range(0, 12):
            process = node.start(*self.plain, priority=-10, trace=False, environment=self.environment(REFUSE_AFTER=after),
                                 before=["env", f"LD_PRELOAD={shim}:{hosts / 'librefuse_threads.so'}"])
            err, _ = self.check_end(process)
            self.assertLessEqual(err.count("xschedd:"), 1, err)
            outcomes.add("said" if "unscheduled" in err else "silent")
        self.assertEqual(outcomes, {"said", "silent"})


if __name__ == "__main__":
    unittest.main()
