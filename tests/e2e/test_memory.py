"""A limit of device memory, with the real runtime: what goes above it is refused, and only that."""

import unittest

import harness

SHIM = harness.BUILD / "client-shim/libxschedd-shim.so"
LIMIT_MIB = 256


class Memory(harness.NodeTest):
    """Without a daemon: the limit is the process's own."""

    def start(self, *arguments, limit=None, preload=True, **options):
        environment = {"LD_PRELOAD": str(SHIM)} if preload else {}
        if limit is not None:
            environment["XSCHEDD_MEMORY"] = limit
        environment["XSCHEDD_RUNTIME_DIR"] = str(self.node.runtime_dir)
        return self.node.start("allocations", LIMIT_MIB, *arguments, shim=False, environment=environment, **options)

    def finish(self, process):
        """(the last line, standard error)."""
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(process.returncode, 0, f"{out}\n{err}")
        self.assertIn("right:", out)
        return out, err

    def kinds(self, out):
        return int(out.split("submissions, ")[1].split()[0])

    def test_every_kind_is_refused_above_the_limit_and_fits_after_a_free(self):
        out, err = self.finish(self.start(limit=f"{LIMIT_MIB}M"))
        native, _ = self.finish(self.start("no-refusals", preload=False))
        self.assertEqual(self.kinds(out), self.kinds(native))
        self.assertGreaterEqual(self.kinds(out), 5)
        said = [line for line in err.splitlines() if line.startswith("xschedd: ")]
        self.assertEqual(len(said), 1, err)
        self.assertRegex(said[0], r"an allocation of 160 MiB is refused as out of memory: this process may have 256 MiB "
                                  r"\(XSCHEDD_MEMORY\) and has 160 MiB; raise the limit")

    def test_without_a_limit_nothing_is_refused(self):
        _, err = self.finish(self.start("no-refusals"))
        self.assertNotIn("xschedd: ", err)

    def test_a_limit_that_is_none_is_said(self):
        _, err = self.finish(self.start("no-refusals", limit="256MB"))
        self.assertIn("xschedd: XSCHEDD_MEMORY: ", err)
        self.assertIn("no limit is set", err)

    def test_smi_libraries_of_the_program_say_the_same(self):
        libraries = [harness.programs / f"lib{name}.so.fake" for name in ("rocm_smi64", "amd_smi")]
        self.finish(self.start("smi", *libraries, limit=f"{LIMIT_MIB}M"))
        self.finish(self.start("smi", *libraries, "none"))

    def test_a_neighbour_has_what_it_had(self):
        limited = self.start("wait", limit=f"{LIMIT_MIB}M", interactive=True)
        neighbour = self.start("wait", interactive=True)
        for process in (limited, neighbour):
            self.assertEqual(process.stdout.readline(), "ready\n")
        for _ in range(3):
            for process, answer in ((limited, "refused\n"), (neighbour, "given\n")):
                self.node.tell(process, "")
                self.assertEqual(process.stdout.readline(), answer)
        for process in (limited, neighbour):
            process.stdin.close()
            self.assertEqual(process.wait(harness.DEADLINE_S), 0)


if __name__ == "__main__":
    unittest.main()
