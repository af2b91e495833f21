"""Compares the parameters and table positions of entry_points.def with one runtime's headers, using the compiler.

The headers' parameters are given to the compiler as text, because C++ templates overload several functions, which then
cannot be named alone.
"""
import os
import re
import subprocess

import prototypes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

# Structures that the shim reads: theirs, ours, and the members that must have the same offset.
LAYOUTS = (
    ('hipLaunchParams', 'LaunchParams', {'func': 'function', 'gridDim': 'grid', 'blockDim': 'block', 'stream': 'stream'}),
    ('hipFunctionLaunchParams', 'FunctionLaunchParams',
     {'function': 'function', 'gridDimX': 'grid', 'blockDimX': 'block', 'hStream': 'stream'}),
    ('hipLaunchConfig_t', 'LaunchConfig', {'gridDim': 'grid', 'blockDim': 'block', 'stream': 'stream'}),
    ('HIP_LAUNCH_CONFIG', 'LaunchConfig', {'gridDimX': 'grid', 'blockDimX': 'block', 'hStream': 'stream'}),
    ('hip_Memcpy2D', 'Copy2D', {'WidthInBytes': 'width', 'Height': 'height'}),
    ('hipMemcpy3DParms', 'Copy3D', {'extent': 'extent'}),
    ('hipMemcpy3DPeerParms', 'Copy3DPeer', {'extent': 'extent'}),
    ('hipGraphInstantiateParams', 'GraphInstantiateParams', {'flags': 'flags', 'uploadStream': 'upload_stream'}),
    ('hipMemLocation', 'MemLocation', {'type': 'type', 'id': 'id'}),
    ('HIP_ARRAY_DESCRIPTOR', 'ArrayShape<size_t>',
     {'Width': 'width', 'Height': 'height', 'Format': 'format', 'NumChannels': 'channels'}),
    ('HIP_ARRAY3D_DESCRIPTOR', 'ArrayShape3D<size_t>',
     {'Width': 'width', 'Height': 'height', 'Depth': 'depth', 'Format': 'format', 'NumChannels': 'channels'}),
    ('hipChannelFormatDesc', 'ChannelFormat', {'x': 'x', 'y': 'y', 'z': 'z', 'w': 'w'}),
    ('hipPitchedPtr', 'PitchedPtr', {'ptr': 'pointer', 'pitch': 'pitch'}),
    ('hipMemPoolProps', 'PoolProperties', {'location': 'location'}),
    ('hipMemAllocNodeParams', 'AllocNodeParams', {'poolProps': 'pool', 'bytesize': 'bytes'}),
    ('hipGraphNodeParams', 'GraphNodeParams', {'type': 'type', 'alloc': 'allocation'}),
)
# The runtime gets arrays of these.
STRIDES = ('hipLaunchParams', 'hipFunctionLaunchParams')


class Comparison:
    """What was compared, and the differences as lines of text."""

    def __init__(self, entries, headers, mangled, compiler):
        """mangled: exported C++ name -> its parameters."""
        self.signatures = self.positions = self.layouts = 0
        self.problems = []
        self._asserts = []
        table = set(headers.tables.get('HipDispatchTable', ()))
        for entry in entries:
            if not entry.is_wrapped:
                continue
            theirs = mangled.get(entry.name) or headers.functions.get(entry.name)
            if theirs is not None:
                self._signature(entry, theirs)
            if entry.number != 'kNoIndex' and entry.name in table:
                self._position(entry)
        self._layouts(headers)
        self._compile(headers, compiler)

    def _signature(self, entry, theirs):
        self.signatures += 1
        self._add(f'kTravelsAlike<int {entry.parameters}, hipError_t ({theirs})>',
                  f'{entry.name}: the list says {entry.parameters}, the headers ({theirs})')

    def _position(self, entry):
        self.positions += 1
        self._add(f'offsetof(HipDispatchTable, {entry.name}_fn) == sizeof(size_t) + {entry.number} * sizeof(void*)',
                  f'{entry.name}: not entry {entry.number} of the dispatch table')
        self._add(f'kTravelsAlike<int {entry.parameters}, std::remove_pointer_t<decltype(HipDispatchTable::'
                  f'{entry.name}_fn)>>', f'{entry.name}: the list says {entry.parameters}, the dispatch table differs')

    def _layouts(self, headers):
        for theirs, ours, members in LAYOUTS:
            if theirs not in headers.structs:
                continue
            self.layouts += 1
            for member, our_member in members.items():
                self._add(f'offsetof({theirs}, {member}) == offsetof({ours}, {our_member})',
                          f'{theirs}::{member}: not at the offset in the shim')
            if theirs in STRIDES:
                self._add(f'sizeof({theirs}) == sizeof({ours})', f'{theirs}: not the size in the shim')

    def _add(self, condition, message):
        self._asserts.append((condition, message))

    def _compile(self, headers, compiler):
        source = ''.join(f'#include <{header}>\n' for header in headers.headers) + '#include "tools/surface/signatures.h"\n'
        for number, (condition, _) in enumerate(self._asserts):
            source += f'static_assert({condition}, "#{number}#");\n'
        with prototypes.only_hip(headers.include) as folder:
            result = subprocess.run(
                [compiler, '-std=c++20', '-fsyntax-only', '-w', '-x', 'c++', '-D__HIP_PLATFORM_AMD__=1', '-I', folder,
                 '-I', ROOT, '-'], input=source, capture_output=True, text=True, check=False)
        failed = sorted({int(number) for number in re.findall(r'static assertion failed: #(\d+)#', result.stderr)})
        self.problems = [self._asserts[number][1] for number in failed]
        others = [line for line in result.stderr.splitlines() if ' error: ' in line and not re.search(r'#\d+#', line)]
        if others or (result.returncode != 0 and not failed):
            self.problems.append('the comparison does not compile: ' + (others or result.stderr.splitlines())[0])
