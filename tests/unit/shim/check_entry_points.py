"""Compares the shim's list of HIP entry points with what a libamdhip64 exports.

Fails on an exported function that takes a stream, or that submits or waits by its name, and that the list does not know.
usage: check_entry_points.py LIBAMDHIP64 ENTRY_POINTS_DEF
"""
import re
import subprocess
import sys

import entry_points

# What in a name says that it may submit work or wait for it.
SUSPECT = re.compile(r'Launch|Async|^hipMemcpy|^hipMemset|Synchronize|WithStream|Prefetch|_spt$|^hipStream|WaitValue|'
                     r'WriteValue|MemOp|ExternalSemaphores|MapResources|UnmapResources|GetProcAddress|DriverEntryPoint')

# Names that look so and neither submit nor wait; each with the reason.
HARMLESS = {
    'hipStreamGetPriority': 'property', 'hipStreamGetPriority_spt': 'property', 'hipStreamGetFlags': 'property',
    'hipStreamGetFlags_spt': 'property', 'hipStreamGetDevice': 'property', 'hipStreamGetId': 'property',
    'hipStreamGetAttribute': 'property', 'hipStreamSetAttribute': 'property', 'hipStreamCopyAttributes': 'property',
    'hipStreamIsCapturing': 'property', 'hipStreamIsCapturing_spt': 'property',
    'hipStreamGetCaptureInfo': 'property', 'hipStreamGetCaptureInfo_spt': 'property',
    'hipStreamGetCaptureInfo_v2': 'property', 'hipStreamGetCaptureInfo_v2_spt': 'property',
    'hipStreamUpdateCaptureDependencies': 'edits a capture', 'hipGetStreamDeviceId': 'property',
}


def exports(library):
    """The functions that a library exports, with their C++ parameters as far as a mangled name shows them."""
    output = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in 'TWi':
            yield fields[2].split('@')[0]


def main():
    library, definition = sys.argv[1:3]
    known = {name for _, name, _ in entry_points.read(definition)}
    exported = set(exports(library))
    unknown = sorted(
        name for name in exported
        if (name.startswith('hip') or 'ihipStream_t' in name) and not name.startswith('hipGraph')
        and (SUSPECT.search(name) or 'ihipStream_t' in name) and name not in known and name not in HARMLESS)
    wrapped = sorted(known & exported)
    print(f'{len(exported)} exports, {len(wrapped)} of them in the list')
    if len(wrapped) < 100:
        sys.exit(f'too few: {library} is not the library that is meant')
    for name in ('hipGraphLaunch', 'hipGraphLaunch_spt', 'hipGraphUpload'):
        if name in exported and name not in known:
            unknown.append(name)
    if unknown:
        sys.exit('entry_points.def does not know: ' + ' '.join(unknown))


main()
