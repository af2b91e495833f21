"""Writes a C++ file that compares the signatures of the CUDA entry_points.def with cudaTypedefs.h, at compile time: each
entry has a type there, named by the function, the CUDA version, and whether it is the per-thread form.

usage: make_signatures.py ENTRY_POINTS_DEF CUDATYPEDEFS_H OUTPUT
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../../tools/surface'))
import entry_points  # noqa: E402


def main():
    definition, header, output = sys.argv[1:4]
    with open(header, encoding='utf-8') as file:
        types = set(re.findall(r'CUDAAPI \*(PFN_\w+)\)', file.read()))
    compared, missing = 0, []
    with open(output, 'w', encoding='utf-8') as file:
        file.write('#include "driver_signatures.h"\n')
        for entry in entry_points.read(definition):
            name, version, parameters = entry.name, entry.number, entry.parameters
            if parameters is None:
                continue
            plain, _, form = re.fullmatch(r'(\w+?)(_v\d)?(_pt[sd][sz])?', name).groups()
            theirs = f'PFN_{plain}_v{version}{form or ""}'
            if theirs not in types:
                missing.append(f'{name} ({theirs})')
                continue
            compared += 1
            file.write(f'namespace ours {{ using {name} = int {parameters}; }}\n'
                       f'static_assert(kTravelsAlike<ours::{name}, std::remove_pointer_t<{theirs}>>, "{name}");\n')
        file.write(f'extern const int kCompared = {compared};\n')
    # Functions that cudaTypedefs.h 13.0 lacks; any other missing name means a wrong version in the list.
    allowed = re.compile(r'cuWaitExternalSemaphoresAsync|cuMemcpyDtoDAsync \(|cuGreenCtxStreamCreate')
    wrong = [name for name in missing if not allowed.search(name)]
    if wrong:
        sys.exit(f'{header} has no such function at that version: ' + ', '.join(wrong))


main()
