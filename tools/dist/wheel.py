#!/usr/bin/env python3
"""Makes the wheel xschedd-client from an unpacked archive of `./dev dist`: shim, client library, xschedctl, the module.

The same tree gives the same bytes. needs.py checks what the wheel's tag promises.
usage: wheel.py TREE VERSION FOLDER
"""
from __future__ import annotations

import base64
import hashlib
import pathlib
import sys
import zipfile

TAG = "py3-none-manylinux_2_28_x86_64"
# Files of the tree, at the same places below the module's client folder: xschedctl looks in ../lib/xschedd.
CLIENT = ("bin/xschedctl", "lib/xschedd/libxschedd-shim.so", "lib/xschedd/libxschedd-client.so",
          "lib/xschedd/self-test/libamdhip64.so.self-test", "lib/xschedd/self-test/self-test-client")


def contents(tree: pathlib.Path, version: str) -> dict[str, tuple[bytes, int]]:
    """The bytes and the mode of each file in the wheel, by name."""
    about = f"xschedd_client-{version}.dist-info"
    module = tree / "lib/xschedd/python/xschedd"
    files = {f"xschedd/{path.relative_to(module)}": (path.read_bytes(), 0o644)
             for path in sorted(module.rglob("*")) if path.is_file()}
    files |= {f"xschedd/client/{name}": ((tree / name).read_bytes(), 0o755) for name in CLIENT}
    files |= {f"{about}/licenses/{path.name}": (path.read_bytes(), 0o644)
              for path in sorted((tree / "share/doc/xschedd-licences").iterdir())}
    files[f"{about}/METADATA"] = (f"Metadata-Version: 2.1\nName: xschedd-client\nVersion: {version}\n"
                                  "Summary: Priorities for the processes that share a GPU: shim, xschedctl, module\n"
                                  "License: Apache-2.0\nRequires-Python: >=3.9\n".encode(), 0o644)
    files[f"{about}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: xschedd\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(), 0o644)
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, (data, _) in files.items())
    files[f"{about}/RECORD"] = (f"{record}{about}/RECORD,,\n".encode(), 0o644)
    return files


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tree, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    with zipfile.ZipFile(folder / f"xschedd_client-{version}-{TAG}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (data, mode) in contents(tree, version).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


if __name__ == "__main__":
    main()
