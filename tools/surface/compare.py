"""Compares the list in entry_points.def with one runtime."""
import collections
import re

import entry_points
import prototypes
import signatures

# Names of functions that may give device memory to the program. Each has to be counted, or to have a reason why not.
ALLOCATES = re.compile(r'(Malloc|Alloc(?!ation)|ArrayCreate|Array3DCreate|^hipMemCreate$|IpcOpenMem|Import|MappedBuffer|'
                       r'MappedMipmappedArray|AddressReserve|HostRegister|^hipGraphAddNode$)')
# ... and those whose names only look like it.
ALLOCATES_NOT = re.compile(r'GetParams|Semaphore')

# The runtimes from 6 on export a function under its old name for programs that were built before; the headers have it
# by another one.
RENAMED = {'hipGetDeviceProperties': 'hipGetDevicePropertiesR0000'}


class Surface:
    """The comparison of the list with one runtime. `lines` says what was found; `problems` lists the errors."""

    def __init__(self, entries, runtime, compiler='c++'):
        self.lines, self.problems = [], []
        self._known = {entry.name: entry for entry in entries}
        self._mangled = runtime.mangled()
        self._headers = None
        if runtime.own_headers:
            self._headers = prototypes.Prototypes(runtime.own_headers, compiler)
        name = f'{runtime.path} ({runtime.version})'
        table = {entry for entries in (self._headers.tables if self._headers else {}).values() for entry in entries}
        self._compare(name, runtime.exports)
        if table:
            self._compare(name + ' dispatch table', table)
        twice = [entry for entry, count in collections.Counter(entry.name for entry in entries).items() if count > 1]
        self.problems += [f'{entry}: twice in the list' for entry in twice]
        self._compare_allocations(runtime.exports | table)
        if self._headers is None:
            self._report_unknown(runtime)
        else:
            self._compare_types(entries, runtime, table, compiler)

    def _compare(self, name, functions):
        of = collections.Counter('wrapped' if self._known[function].is_wrapped else 'listed'
                                 for function in functions if function in self._known)
        unknown = sorted(functions - self._known.keys())
        self.lines.append(f'{name}: wrapped {of["wrapped"]}, listed {of["listed"]}, unknown {len(unknown)}')
        for function in unknown:
            problem = f'{function}: unknown; {self._what(function)}'
            if problem not in self.problems:
                self.problems.append(problem)

    def _compare_allocations(self, functions):
        allocating = {function for function in functions
                      if ALLOCATES.search(function) and not ALLOCATES_NOT.search(function)}
        known = {function for function in functions & self._known.keys()
                 if self._known[function].macro in entry_points.ALLOCATING}
        counted = {function for function in known if self._known[function].macro in entry_points.COUNTED}
        strange = sorted(allocating - known)
        self.lines.append(f'  allocating: counted {len(counted)}, left out for a reason {len(known) - len(counted)}, '
                          f'unknown {len(strange)}')
        self.problems += [f'{function}: its name says that it allocates, and it is neither counted nor XS_UNCOUNTED'
                          for function in strange]

    def _parameters(self, function):
        if self._mangled.get(function):
            return self._mangled[function]
        functions = self._headers.functions if self._headers else {}
        return functions.get(function) or functions.get(RENAMED.get(function))

    def _takes_stream(self, function):
        """None: unknown."""
        parameters = self._parameters(function)
        if parameters is None:
            return None
        return self._headers.has_stream(parameters) if self._headers else 'ihipStream_t' in parameters

    def _what(self, function):
        takes_stream = self._takes_stream(function)
        if takes_stream is None:
            return 'it is not declared, so whether it takes a stream is unknown'
        if takes_stream:
            return f'it takes a stream ({self._parameters(function)})'
        return f'it takes no stream ({self._parameters(function)}); only its source says whether it submits or waits'

    def _compare_types(self, entries, runtime, table, compiler):
        functions = runtime.exports | table
        blind = []
        for entry in entries:
            if entry.name not in functions:
                continue
            takes_stream = self._takes_stream(entry.name)
            if entry.macro == 'XS_OTHER' and takes_stream:
                self.problems.append(f'{entry.name}: listed as having no stream, but {self._what(entry.name)}')
            if takes_stream is None and entry.is_wrapped:
                self.problems.append(f'{entry.name}: wrapped but declared nowhere: its parameters cannot be compared')
            elif takes_stream is None:
                blind.append(entry.name)
        self.problems += [f'{entry.name}: in the dispatch table, but the list says that it is not' for entry in entries
                          if entry.number == 'kNoIndex' and entry.name in table]
        here = [entry for entry in entries if entry.name in functions]
        comparison = signatures.Comparison(here, self._headers, self._mangled, compiler)
        self.problems += comparison.problems
        wrong = len(comparison.problems)
        self.lines.append(f'  {comparison.signatures} signatures, {comparison.positions} table positions and '
                          f'{comparison.layouts} structures compared with its headers: {wrong} differ')
        if blind:
            self.lines.append(f'  declared nowhere, known only by name: {" ".join(blind)}')
        if not table:
            self.lines.append('  no dispatch table: calls go by symbol')
        elif not runtime.registers:
            self.lines.append('  built without rocprofiler-register: calls go by symbol')

    def _report_unknown(self, runtime):
        if runtime.include:
            self.lines.append(f'  compared by name only: the headers in {runtime.include} are of {runtime.headers_version}')
        else:
            self.lines.append('  compared by name only: it has no headers')
        if runtime.registers:
            self.lines.append('  the dispatch table that it registers cannot be seen without headers')
