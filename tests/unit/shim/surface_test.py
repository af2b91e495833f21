"""Whether tools/surface sees what is wrong: each mistake is made in a copy of the list, beside the installed runtime.

That runtime may be too old for a dispatch table, so one is made up here, of the functions that its headers declare.
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

    def problems(self, entries):
        found = Surface(entries, self.runtime, COMPILER).problems
        return [problem for problem in found if not problem.startswith('hipFiller')]

    def with_changed(self, name, **changes):
        changed = [entry._replace(**changes) if entry.name == name else entry for entry in ENTRIES]
        self.assertNotEqual(changed, ENTRIES)
        return self.problems(changed)

    def check_one(self, problems, *parts):
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])

    def test_no_mistake(self):
        self.assertEqual(self.problems(ENTRIES), [])

    def test_a_function_with_a_stream_is_missing(self):
        left = [entry for entry in ENTRIES if entry.name != 'hipStreamWaitEvent']
        self.check_one(self.problems(left), 'hipStreamWaitEvent: unknown', 'takes a stream')

    def test_a_function_without_one_is_missing(self):
        left = [entry for entry in ENTRIES if entry.name != 'hipMalloc']
        self.check_one(self.problems(left), 'hipMalloc: unknown', 'takes no stream')

    def test_a_function_is_known_by_its_mangled_name_only(self):
        left = [entry for entry in ENTRIES if not entry.name.startswith('_ZN8hip_impl')]
        self.check_one(self.problems(left), 'hipLaunchKernelGGLImpl', 'unknown; it takes a stream')

    def test_an_entry_of_the_table_alone_is_missing(self):
        found = Surface(ENTRIES, self.runtime, COMPILER)
        self.assertTrue(any(problem.startswith('hipFiller0: unknown') for problem in found.problems))
        self.assertRegex(found.lines[1], r'dispatch table: wrapped \d+, listed \d+, unknown [1-9]')

    def test_a_stream_is_overlooked(self):
        self.check_one(self.with_changed('hipStreamGetFlags', macro='XS_OTHER'), 'hipStreamGetFlags', 'takes a stream')

    def test_a_position_is_wrong(self):
        self.check_one(self.with_changed('hipLaunchKernel', number='215'), 'hipLaunchKernel: not entry 215')

    def test_a_position_is_overlooked(self):
        self.check_one(self.with_changed('hipLaunchKernel', number='kNoIndex'), 'hipLaunchKernel: in the dispatch table')

    def test_a_parameter_has_another_size(self):
        problems = self.with_changed(
            'hipMemsetAsync', parameters='(void* to, int value, unsigned n, Stream s)')
        self.assertEqual(len(problems), 2, problems)  # the header, and the table
        self.assertIn('hipMemsetAsync: the list says', problems[0])

    def test_a_parameter_is_another_kind(self):
        for parameters in ('(void* to, int value, void* n, Stream s)', '(void* to, int value, size_t n, size_t s)',
                           '(void* to, float value, size_t n, Stream s)', '(void* to, int value, Dim3 n, Stream s)'):
            with self.subTest(parameters):
                self.assertTrue(self.with_changed('hipMemsetAsync', parameters=parameters))

    def test_a_parameter_is_missing(self):
        self.assertTrue(self.with_changed('hipMemsetAsync', parameters='(void* to, int value, size_t n)'))

    def test_a_structure_is_another(self):
        self.assertTrue(self.with_changed(
            'hipMemset3D', parameters='(Extent to, int value, Extent extent)'))

    def test_a_member_is_elsewhere(self):
        wrong = (('hip_Memcpy2D', 'Copy2D', {'WidthInBytes': 'height'}),)
        with unittest.mock.patch.object(signatures, 'LAYOUTS', wrong):
            self.check_one(self.problems(ENTRIES), 'hip_Memcpy2D::WidthInBytes: not where types.h has it')

    def test_a_name_is_twice(self):
        self.check_one(self.problems(ENTRIES + [entry_points.Entry('XS_LISTED', 'hipMalloc')]), 'hipMalloc: twice')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
