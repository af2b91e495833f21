#!/usr/bin/env python3
"""HIP's compiler with a memory (tools/softgpu/compiler): a program does the same with an empty memory, with a full one, with one
whose files are cut short, and with one that it may not write.

Usage: compiler_test.py COMPILER SOFTGPU_RUN PROGRAM
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUN, PROGRAM = (pathlib.Path(word).absolute() for word in sys.argv[1:4])
NAME = f"compiler-{os.getpid()}"


class Compiler(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="xschedd-compiler-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(pathlib.Path(f"/dev/shm/softgpu.{NAME}").unlink, missing_ok=True)
        # softgpu-run finds the libraries beside itself.
        shutil.copy(RUN, self.folder)
        (self.folder / "libhsa-runtime64.so.1").symlink_to(RUN.parent / "libhsa-runtime64.so.1")
        compiler = self.folder / "compiler"
        compiler.mkdir()
        shutil.copy(COMPILER, compiler)
        (compiler / "libamd_comgr.so.X").symlink_to(COMPILER.parent / "libamd_comgr.so.X")
        self.cache = compiler / "cache"

    def run_program(self):
        """What it prints."""
        done = subprocess.run([self.folder / "softgpu-run", "--name", NAME, "--", PROGRAM], text=True, capture_output=True, timeout=60,
                              check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def contents(self):
        return {path.name: path.read_bytes() for path in self.cache.iterdir()}

    def test_what_it_remembers_is_what_it_compiled(self):
        said = self.run_program()
        first = self.contents()
        self.assertGreater(len(first), 1)
        self.assertTrue(any(b"\x7fELF" in content for content in first.values()))
        inodes = {path.stat().st_ino for path in self.cache.iterdir()}
        self.assertEqual(self.run_program(), said)
        self.assertEqual({path.stat().st_ino for path in self.cache.iterdir()}, inodes, "it was compiled again")
        # Files that were cut short are compiled again. The compiler writes the name of a temporary file into what it makes, so
        # that one of them may get another name.
        for number, path in enumerate(self.cache.iterdir()):
            os.truncate(path, number * 3)
        self.assertEqual(self.run_program(), said)
        again = self.contents()
        self.assertGreaterEqual(sum(len(content) > 9 for content in again.values()), len(first))
        self.assertEqual(self.run_program(), said)
        self.assertEqual(self.contents(), again)

    def test_without_a_place_to_remember(self):
        self.cache.write_text("not a folder")
        self.run_program()
        self.assertEqual(self.cache.read_text(), "not a folder")


if __name__ == "__main__":
    del sys.argv[1:4]
    unittest.main()
