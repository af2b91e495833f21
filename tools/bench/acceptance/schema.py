"""Checks a document against its JSON Schema, without a package that a node may lack. Only the keywords in KEYWORDS; a
test compares the answers with those of the package jsonschema. Pure but for `read`.

Thread rule: any thread.
"""

import json
import os
import re
from typing import Dict, List

HERE = os.path.dirname(os.path.realpath(__file__))
# In the sources, and installed: share/xschedd/bench/acceptance and share/xschedd/schema.
PLACES = (os.path.join(HERE, "../../xschedctl/schema/acceptance-1.json"), os.path.join(HERE, "../../schema/acceptance-1.json"))

KEYWORDS = ("type", "const", "enum", "pattern", "properties", "required", "additionalProperties", "items",
            "$schema", "$id", "title", "description")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int}


def read() -> Dict[str, object]:
    for path in PLACES:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return json.load(file)
    raise OSError("the schema of the report is not installed; reinstall xschedd-bench and xschedd-client")


def problems(schema: Dict[str, object], value: object, where: str = "the report") -> List[str]:
    """One line for each problem; empty: the document is valid."""
    if "type" in schema:
        is_other = isinstance(value, bool) and schema["type"] != "boolean"  # Python's bool is an int
        if is_other or not isinstance(value, TYPES[schema["type"]]):
            return [f"{where} is not of type {schema['type']}"]
    if "const" in schema and value != schema["const"]:
        return [f"{where} is not {schema['const']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} is not one of {', '.join(map(str, schema['enum']))}"]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        return [f"{where} is not of the form {schema['pattern']}"]
    found: List[str] = []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{where} has no {name}" for name in schema.get("required", ()) if name not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{where} has an unknown {name}" for name in value if name not in known]
        for name, inner in known.items():
            if name in value:
                found += problems(inner, value[name], f"{where}: {name}" if where == "the report" else f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            found += problems(schema["items"], one, f"{where}[{number}]")
    return found
