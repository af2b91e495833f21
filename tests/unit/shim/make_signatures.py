"""Writes a C++ file that compares the signatures of entry_points.def with the installed HIP headers, at compile time.

The headers are read as text, because several functions are overloaded by templates in C++ and cannot be named alone.
usage: make_signatures.py ENTRY_POINTS_DEF OUTPUT HEADER...
"""
import re
import sys

import entry_points


def declared(headers):
    """name -> parameters, as the headers write them, without default values."""
    text = ''
    for header in headers:
        with open(header, encoding='utf-8') as file:
            text += file.read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'//[^\n]*', '', text)
    result = {}
    for match in re.finditer(r'\bhipError_t\s+(hip\w+)\s*\(', text):
        depth, end = 1, match.end()
        while depth:
            depth += {'(': 1, ')': -1}.get(text[end], 0)
            end += 1
        parameters = re.sub(r'\s*__dparm\([^()]*\)|\s*=\s*[^,)]+', '', text[match.end():end - 1])
        if '<' not in parameters and not re.search(r'\bT\b', parameters):
            result.setdefault(match.group(1), ' '.join(parameters.split()))
    return result


def main():
    definition, output = sys.argv[1:3]
    headers = declared(sys.argv[3:])
    compared = 0
    with open(output, 'w', encoding='utf-8') as file:
        file.write('#include "signatures.h"\n')
        for _, name, parameters in entry_points.read(definition):
            if parameters is None or name not in headers:
                continue
            compared += 1
            file.write(f'namespace ours {{ using {name} = int {parameters}; }}\n'
                       f'namespace theirs {{ using {name} = hipError_t ({headers[name]}); }}\n'
                       f'static_assert(kTravelsAlike<ours::{name}, theirs::{name}>, "{name}");\n')
        file.write(f'extern const int kCompared = {compared};\n')


main()
