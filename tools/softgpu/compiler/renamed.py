"""Makes a second library from an installed one: the same file with another soname.

usage: renamed.py LIBRARY OUTPUT        (soname: NAME.so.N becomes NAME.so.X)
The loader treats two objects with one soname as the same, so a plain copy would not be a second one.
"""
import re
import subprocess
import sys


def main():
    source, output = sys.argv[1:]
    listed = subprocess.run(['readelf', '-dW', source], check=True, capture_output=True, text=True).stdout
    soname = re.search(r'SONAME.*\[(.*)\]', listed).group(1).encode()
    with open(source, 'rb') as file:
        content = file.read()
    # A string of the dynamic string table; no other string of the file ends in these bytes.
    old, new = b'\0' + soname + b'\0', b'\0' + soname[:-1] + b'X\0'
    if content.count(old) != 1:
        sys.exit(f'{source}: the soname {soname.decode()} is there {content.count(old)} times, not once')
    with open(output, 'wb') as file:
        file.write(content.replace(old, new))


main()
