"""Reads the prototypes of HIP functions, and the layout of the dispatch table, from the headers of one runtime.

The headers go through the C++ preprocessor first, which handles conditionals and macros; then the declarations outside
namespaces and templates are read from the text. Templates and overloads that the headers define in C++ are left out: what
a library exports under a plain name is declared without a body.
"""
import contextlib
import os
import re
import subprocess
import tempfile

HEADERS = ('hip/hip_runtime_api.h', 'hip/hip_ext.h', 'hip/hip_gl_interop.h', 'hip/amd_detail/amd_hip_gl_interop.h',
           'hip/hiprtc.h', 'hip/hip_deprecated.h', 'hip/amd_detail/hip_api_trace.hpp')
STREAM = ('hipStream_t', 'ihipStream_t')


class Prototypes:
    """functions: name -> parameters, as text. structs: name -> body. tables: dispatch table -> names in order."""

    def __init__(self, include, compiler='c++'):
        self.include = include
        self.headers = [header for header in HEADERS if os.path.exists(os.path.join(include, header))]
        self.functions = {}
        self.tables = {}
        self._stream_types = set(STREAM)
        pointers, structs = {}, {}
        self.structs = structs
        for statement in _statements(_preprocess(include, self.headers, compiler)):
            _read(statement, self.functions, pointers, structs)
        for name, body in structs.items():
            if re.fullmatch(r'Hip\w*DispatchTable', name):
                self.tables[name] = re.findall(r't_(\w+)\s+\1_fn\s*;', body)
                if body.count(';') != len(self.tables[name]) + 1:  # `size` is the first
                    raise ValueError(f'{name} in {include} has members that are not functions')
        # A function of the table that no header declares gets its type from the table; t_NAME is the type of NAME.
        for name, parameters in pointers.items():
            if name.startswith('t_'):
                self.functions.setdefault(name[2:], parameters)
        # Structures that contain a stream, directly or in another structure, count as streams.
        while True:
            more = {name for name, body in structs.items() if name not in self._stream_types and self.has_stream(body)}
            if not more:
                break
            self._stream_types |= more

    def has_stream(self, parameters):
        """Whether there is a stream among the parameters: by value, behind a pointer, or in a structure."""
        return any(word in self._stream_types for word in re.findall(r'\w+', parameters))


@contextlib.contextmanager
def only_hip(include):
    """A folder for the compiler's -I with only the HIP headers of `include`: the C library of a whole root is not this
    machine's."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(os.path.realpath(include), 'hip'), os.path.join(folder, 'hip'))
        yield folder


def _preprocess(include, headers, compiler):
    """The preprocessed text that comes from files in `include`/hip."""
    source = ''.join(f'#include <{header}>\n' for header in headers)
    with only_hip(include) as folder:
        command = [compiler, '-E', '-x', 'c++', '-D__HIP_PLATFORM_AMD__=1', '-I', folder, '-']
        result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ValueError(f'the headers in {include} cannot be read: {result.stderr.splitlines()[0]}')
    inside, kept = False, []
    for line in result.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            inside = marker.group(1).startswith(folder)
        elif inside:
            kept.append(line)
    return '\n'.join(kept)


def _statements(text):
    """Splits into the statements outside braces; `extern "C" {` is ignored."""
    text = re.sub(r'extern\s+"C"\s*\{', ' ', text)
    depth, begin = 0, 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[{};]', text):
        token = match.group()
        if token == '{':
            depth += 1
        elif token == '}':
            if depth == 0:  # closes an extern "C"
                begin = match.end()
                continue
            depth -= 1
            head = text[begin:match.end()].split('{')[0]
            if depth == 0 and ('(' in _plain(head) or re.match(r'\s*(inline\s+)?namespace\b', head)):
                begin = match.end()  # a function with a body, or a namespace
        elif token == ';' and depth == 0:
            yield ' '.join(text[begin:match.start()].split())
            begin = match.end()


def _plain(text):
    """Without attributes."""
    text = re.sub(r'\[\[.*?\]\]', ' ', text)
    return re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|__declspec\s*\([^()]*\)', ' ', text)


def _read(statement, functions, pointers, structs):
    statement = _plain(statement).strip()
    if statement.startswith('template') or '=' in statement.split('(')[0]:
        return
    body = re.match(r'(?:typedef\s+)?(?:struct|union)\s*(\w*)\s*\{(.*)\}\s*(\w*)$', statement)
    if body:
        for name in (body.group(1), body.group(3)):
            if name:
                structs[name] = body.group(2)
        return
    pointer = re.match(r'typedef\s+[\w\s*]+\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)$', statement)
    if pointer:
        pointers[pointer.group(1)] = _without_defaults(pointer.group(2))
        return
    function = re.match(r'(?:extern\s+(?:"C"\s+)?)?(?:\w[\w\s]*[\s*]+)(\w+)\s*\((.*)\)$', statement)
    if function and not statement.startswith('typedef'):
        functions.setdefault(function.group(1), _without_defaults(function.group(2)))


def _without_defaults(parameters):
    return ' '.join(re.sub(r'\s*=\s*[^,]+', '', parameters).split())
