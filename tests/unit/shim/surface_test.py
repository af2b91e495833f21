"""Tests that tools/surface finds errors: each mistake is made in a copy of the list, which is compared with the installed
runtime.

That runtime may be too old for a dispatch table, so an invented one has the functions that its headers declare.
usage: surface_test.py COMPILER LIBAMDHIP64
"""
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../tools/surface'))
import entry_points  # noqa: E402
import prototypes  # noqa: E402
import runtimes  # noqa: E402
import signatures  # noqa: E402
from compare import Surface  # noqa: E402

COMPILER, LIBRARY = sys.argv[1:3]
ENTRIES = entry_points.read(os.path.join(signatures.ROOT, 'client-shim/hip/entry_points.def'))


def make_table(include, folder):
    """Gives `folder` the headers of `include` and a dispatch table: the wrapped functions where the list has them."""
    declared = prototypes.Prototypes(include, COMPILER).functions
    names = {int(entry.number): entry.name for entry in ENTRIES
             if entry.is_wrapped and entry.number != 'kNoIndex' and entry.name in declared}
    types, members = '', ''
    for index in range(max(names) + 1):
        name = names.get(index, f'hipFiller{index}')
        types += f'typedef hipError_t (*t_{name})({declared.get(name, "")});\n'
        members += f'  t_{name} {name}_fn;\n'
    detail = os.path.join(folder, 'hip/amd_detail')
    os.makedirs(detail)
    for source, target in ((include + '/hip', folder + '/hip'), (include + '/hip/amd_detail', detail)):
        for name in os.listdir(source):
            if not os.path.exists(os.path.join(target, name)) and name != 'hip_api_trace.hpp':
                os.symlink(os.path.join(source, name), os.path.join(target, name))
    with open(os.path.join(detail, 'hip_api_trace.hpp'), 'w', encoding='utf-8') as file:
        file.write(f'#include <hip/hip_runtime.h>\n{types}struct HipDispatchTable {{\n  size_t size;\n{members}}};\n')


class Positions(unittest.TestCase):
    def test_positions(self):
        with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), 'hip_dispatch_table.txt'),
                  encoding='utf-8') as file:
            table = [line.strip() for line in file if not line.startswith('#')]
        position = {name: str(index) for index, name in enumerate(table)}
        wrapped = [entry for entry in ENTRIES if entry.is_wrapped]
        self.assertGreater(len(wrapped), 100)
        for entry in wrapped:
            self.assertEqual(entry.number, position.get(entry.name, 'kNoIndex'), entry.name)


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.runtime = runtimes.Runtime(os.path.realpath(LIBRARY))
        if cls.runtime.own_headers is None:
            raise unittest.SkipTest('no HIP headers are installed')
        make_table(cls.runtime.include, cls.folder.name)
        cls.runtime.include = cls.folder.name
        # The headers are the same for all: read once.
        headers = prototypes.Prototypes(cls.folder.name, COMPILER)
        read = unittest.mock.patch.object(prototypes, 'Prototypes', lambda *_: headers)
        read.start()
        cls.addClassCleanup(read.stop)

    def problems(self, entries):
        found = Surface(entries, self.runtime, COMPILER).problems
        return [problem for problem in found if not problem.startswith('hipFiller')]

    def check(self, problems, wanted):
        """wanted: function -> the texts of its one or two problems. Other functions have none."""
        about = {}
        for problem in problems:
            about.setdefault(problem.split(':')[0], []).append(problem)
        self.assertEqual(sorted(about), sorted(wanted))
        for name, words in wanted.items():
            self.assertTrue(all(words in problem for problem in about[name]), about[name])

    def test_no_mistake(self):
        self.check(self.problems(ENTRIES), {})

    def test_names(self):
        wanted = {'hipStreamWaitEvent': 'unknown; it takes a stream',
                  'hipLaunchCooperativeKernelMultiDevice': 'unknown; it takes a stream',  # in a structure
                  'hipGetDeviceCount': 'unknown; it takes no stream',
                  'hipGraphAddKernelNode': 'unknown; it takes no stream',
                  '_ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv': 'unknown; it takes a stream',
                  'hipGetCmdName': 'unknown; it is not declared'}
        # ROCm 5.7 and later do not export the C++ function.
        wanted = {name: words for name, words in wanted.items() if not name.startswith('_Z') or name in self.runtime.exports}
        left = [entry for entry in ENTRIES if entry.name not in wanted]
        self.assertEqual(len(left), len(ENTRIES) - len(wanted))
        self.check(self.problems(left + [entry_points.Entry('XS_LISTED', 'hipFree')]),
                   {**wanted, 'hipFree': 'twice in the list'})

    def test_an_allocation_that_is_not_counted(self):
        changed = [entry._replace(macro='XS_OTHER') if entry.name in ('hipMallocPitch', 'hipHostMalloc') else entry
                   for entry in ENTRIES]
        self.check(self.problems(changed), {'hipMallocPitch': 'neither counted nor XS_UNCOUNTED',
                                            'hipHostMalloc': 'neither counted nor XS_UNCOUNTED'})

    def test_an_entry_of_the_table_alone_is_missing(self):
        found = Surface(ENTRIES, self.runtime, COMPILER)
        self.assertTrue(any(problem.startswith('hipFiller0: unknown') for problem in found.problems))
        self.assertRegex(found.lines[1], r'dispatch table: wrapped \d+, listed \d+, unknown [1-9]')

    def test_positions_and_parameters(self):
        fill = '(void* to, int value, size_t n, Stream s)'
        wrong = {
            'hipStreamGetFlags': {'macro': 'XS_OTHER'},
            'hipLaunchKernel': {'number': '215'},
            'hipModuleLaunchKernel': {'number': 'kNoIndex'},
            'hipMemsetAsync': {'parameters': fill.replace('size_t n', 'unsigned n')},
            'hipMemset': {'parameters': '(void* to, int value)'},
            'hipMemsetD8Async': {'parameters': fill.replace('size_t n', 'void* n')},
            'hipMemsetD16Async': {'parameters': fill.replace('Stream s', 'size_t s')},
            'hipMemsetD32Async': {'parameters': fill.replace('int value', 'float value')},
            'hipMemcpyDtoDAsync': {'parameters': '(void* to, const void* from, Dim3 n, Stream s)'},
            'hipMemset3D': {'parameters': '(Extent to, int value, Extent extent)'},
        }
        changed = [entry._replace(**wrong.get(entry.name, {})) for entry in ENTRIES]
        self.assertEqual(sum(one != other for one, other in zip(changed, ENTRIES)), len(wrong))
        wanted = {name: 'the list says ' for name, change in wrong.items() if 'parameters' in change}
        self.check(self.problems(changed), {
            **wanted, 'hipStreamGetFlags': 'listed as having no stream, but it takes a stream',
            'hipLaunchKernel': 'not entry 215 of the dispatch table',
            'hipModuleLaunchKernel': 'in the dispatch table, but the list says that it is not'})

    def test_structures(self):
        wrong = (('hip_Memcpy2D', 'Copy2D', {'WidthInBytes': 'height'}),)
        with unittest.mock.patch.object(signatures, 'LAYOUTS', wrong):
            self.check(self.problems(ENTRIES), {'hip_Memcpy2D': ':WidthInBytes: not at the offset in the shim'})


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
