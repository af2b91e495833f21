"""Reads client-shim/hip/entry_points.def, for the checks beside this file."""
import re


def read(path):
    """Yields (macro, name, parameters or None) for each line of the list."""
    with open(path, encoding='utf-8') as file:
        text = re.sub(r'//[^\n]*', '', file.read())
    for match in re.finditer(r'\b(XS_\w+)\(\s*(\w+)\s*,\s*(-?\w+)\s*(?:,\s*(\([^()]*(?:\([^()]*\)[^()]*)*\)))?', text):
        macro, name, _, parameters = match.groups()
        yield macro, name, parameters if macro not in ('XS_CUSTOM', 'XS_LISTED') else None
