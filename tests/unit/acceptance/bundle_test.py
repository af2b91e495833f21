"""tools/bench/acceptance/bundle.py: names that are replaced, the archive. No GPU, no daemon.

usage: bundle_test.py SOURCE_ROOT
"""

import importlib.util
import io
import os
import pathlib
import shutil
import sys
import tarfile
import unittest

BENCH = pathlib.Path(sys.argv[1]) / "tools/bench"
sys.path[:0] = [str(BENCH), str(BENCH / "acceptance")]

import bundle  # noqa: E402

HAS_ZSTD = importlib.util.find_spec("compression") is not None  # from Python 3.14 on


class Bundle(unittest.TestCase):
    def test_names_of_hosts_and_users_are_replaced(self):
        clean = bundle.cleaner("node7", "5bce98f7", "/home/alice")
        self.assertEqual(clean("node7: /home/alice/x, node71, my-node7, /home/alicette, (node7)"),
                         "5bce98f7: ~/x, node71, my-node7, /home/alicette, (5bce98f7)")
        self.assertEqual(bundle.cleaned({"a": ["node7", 1, {"b": "/home/alice"}]}, clean), {"a": ["5bce98f7", 1, {"b": "~"}]})
        for home in ("/", "", "~"):
            self.assertEqual(bundle.cleaner("", "x", home)("/a/b"), "/a/b")
        self.assertEqual(bundle.cleaner("node7", "node7", "")("node7"), "node7")  # by --show-host

    def test_an_archive_without_owners_and_times(self):
        data = bundle.packed({"b": b"2", "a": b"1"})
        self.assertEqual(data, bundle.packed({"a": b"1", "b": b"2"}))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            self.assertEqual([(one.name, one.uid, one.uname, one.mtime, one.mode) for one in archive.getmembers()],
                             [("a", 0, "", 0, 0o600), ("b", 0, "", 0, 0o600)])

    def test_zstd_is_used_where_it_is_installed(self):
        ending, data = bundle.compressed(b"x" * 1000)
        self.assertEqual((ending, len(data) < 1000), (".tar.zst", True) if shutil.which("zstd") or HAS_ZSTD else (".tar", False))
        path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"
        try:
            if not HAS_ZSTD:
                self.assertEqual(bundle.compressed(b"x"), (".tar", b"x"))
        finally:
            os.environ["PATH"] = path


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
