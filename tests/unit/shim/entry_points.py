"""Reads an entry_points.def of client-shim (hip, cuda), for the checks beside this file."""
import re


def read(path):
    """Yields (macro, name, parameters or None) for each line of the list."""
    for macro, name, _, parameters in read_all(path):
        yield macro, name, parameters


def read_all(path):
    """Yields (macro, name, number, parameters or None): the number is HIP's table index or CUDA's version."""
    with open(path, encoding='utf-8') as file:
        text = re.sub(r'//[^\n]*', '', file.read())
    for match in re.finditer(r'\b(XS_\w+)\(\s*(\w+)\s*,\s*(-?\w+)\s*(?:,\s*(\([^()]*(?:\([^()]*\)[^()]*)*\)))?', text):
        macro, name, number, parameters = match.groups()
        yield macro, name, number, parameters if macro not in ('XS_CUSTOM', 'XS_LISTED') else None
