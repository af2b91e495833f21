"""Compares the Python package with what it wraps, by reading: the types of xschedctl's answers with the JSON schemas, the
constants, functions and structures of its ctypes part with xschedd.h. Needs no shim and no daemon.

usage: python_test.py SOURCE_ROOT
"""

import ctypes
import json
import pathlib
import re
import sys
import typing
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "python"))

from xschedd import Client, Device, Event, Result, State, _control, _library  # noqa: E402  pylint: disable=wrong-import-position

HEADER = (ROOT / "client-shim/include/xschedd.h").read_text(encoding="utf-8")
C_TYPES = {"unsigned int": ctypes.c_uint, "int": ctypes.c_int, "xschedd_count": ctypes.c_ulonglong}
JSON_TYPES = {int: "integer", str: "string", bool: "boolean", float: "number"}


def schema(kind):
    return json.loads((ROOT / f"tools/xschedctl/schema/{kind}-1.json").read_text(encoding="utf-8"))["properties"]


def kinds(field):
    """The JSON types that the schema of a field allows."""
    if "enum" in field or "const" in field:
        return {"string"}
    return {field["type"]} if isinstance(field["type"], str) else set(field["type"])


def c_fields(struct):
    body = re.search(rf"^typedef struct {struct} \{{$(.*?)^\}} {struct};$", HEADER, re.MULTILINE | re.DOTALL).group(1)
    return [(name, C_TYPES[kind]) for kind, name in re.findall(r"^  (unsigned int|int|xschedd_count) (\w+);", body, re.MULTILINE)]


class Answers(unittest.TestCase):
    def compare(self, declared, fields, where):
        hints = typing.get_type_hints(declared)
        self.assertEqual(list(hints), list(fields), where)
        for name, hint in hints.items():
            self.compare_one(hint, fields[name], f"{where}.{name}")

    def compare_one(self, hint, field, where):
        wanted = kinds(field)
        if typing.get_origin(hint) is typing.Union:
            hint, nothing = typing.get_args(hint)
            self.assertIs(nothing, type(None), where)
            self.assertIn("null", wanted, where)
            wanted = wanted - {"null"}
        if typing.get_origin(hint) is list:
            self.assertEqual(wanted, {"array"}, where)
            self.compare_one(typing.get_args(hint)[0], field["items"], where)
        elif typing.get_origin(hint) is dict:
            self.assertEqual((wanted, field["additionalProperties"]), ({"object"}, {"type": "string"}), where)
            self.assertEqual(typing.get_args(hint), (str, str), where)
        elif hint in JSON_TYPES:
            self.assertEqual(wanted, {JSON_TYPES[hint]}, where)
        else:
            self.assertEqual(wanted, {"object"}, where)
            self.compare(hint, field["properties"], where)

    def test_each_key_and_its_type(self):
        self.compare(Client, schema("ps")["clients"]["items"]["properties"], "Client")
        self.compare(Device, schema("ps")["devices"]["items"]["properties"], "Device")
        self.compare(Event, schema("event"), "Event")

    def test_exit_statuses(self):
        code = {name: int(value) for name, value in re.findall(
            r"^  k(\w+) = (\d+),", (ROOT / "tools/xschedctl/exit_code.h").read_text(encoding="utf-8"), re.MULTILINE)}
        self.assertEqual(_control._ERRORS, {code["NoDaemon"]: _control.NoDaemonError, code["Permission"]: _control.NotPermittedError})


class CApi(unittest.TestCase):
    def test_structures(self):
        self.assertEqual(_library._Status._fields_, c_fields("xschedd_status"))
        self.assertEqual(_library._DeviceStatus._fields_, c_fields("xschedd_device_status"))

    def test_constants(self):
        self.assertEqual(_library.PRIORITY_NONE, 1 << int(re.search(r"XSCHEDD_PRIORITY_NONE \(1 << (\d+)\)", HEADER).group(1)))
        self.assertEqual(_library.ALL_DEVICES, int(re.search(r"XSCHEDD_ALL_DEVICES \((-\d+)\)", HEADER).group(1)))

    def test_results_and_states(self):
        results = {name.removeprefix("ERROR_"): int(value)
                   for name, value in re.findall(r"^#define XSCHEDD_(OK|ERROR_\w+) \(?(-?\d)\)?$", HEADER, re.MULTILINE)}
        # An argument that is out of range is ValueError.
        self.assertEqual({one.name: one.value for one in Result} | {"INVALID": -1}, results)
        states = {name: int(value) for name, value in re.findall(r"^  XSCHEDD_STATE_(\w+) = (\d)", HEADER, re.MULTILINE)}
        self.assertEqual({one.name: one.value for one in State}, states | {"NO_SHIM": -1})

    def test_functions(self):
        code = dict(re.findall(r"^XSCHEDD_FUNCTION\([^,]*, (xschedd_\w+),\s*\((.*?)\), \(", HEADER, re.MULTILINE))
        self.assertEqual(set(_library._ARGUMENTS), set(code) - {"xschedd_api_version", "xschedd_result_text"})
        for name, arguments in _library._ARGUMENTS.items():
            with self.subTest(name):
                self.assertEqual(len(arguments), 0 if code[name] == "void" else code[name].count(",") + 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
