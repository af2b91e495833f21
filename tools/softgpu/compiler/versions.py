"""Writes the linker's version script for compiler.cc: the versions of the installed library, so that the loader accepts it in
that one's place, and amd_comgr_do_action in the version that it has there.

usage: versions.py LIBRARY OUTPUT
"""
import re
import subprocess
import sys


def main():
    library, output = sys.argv[1:]
    defined = subprocess.run(['readelf', '-VW', library], check=True, capture_output=True, text=True).stdout
    defined = defined[defined.index('gnu.version_d'):]
    versions = re.findall(r'Flags: none .*Name: (\S+)', defined)
    symbols = subprocess.run(['readelf', '-W', '--dyn-syms', library], check=True, capture_output=True, text=True).stdout
    mine = re.search(r' amd_comgr_do_action@@(\S+)', symbols).group(1)
    with open(output, 'w', encoding='utf-8') as file:
        for version in versions:
            file.write(f'{version} {{{" global: amd_comgr_do_action; local: *;" if version == mine else ""} }};\n')


main()
