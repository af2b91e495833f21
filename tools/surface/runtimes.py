"""Finds libamdhip64 libraries and reads a library's version, its exports, and whether it registers its dispatch table."""
import glob
import os
import re
import subprocess

LIBRARY = re.compile(r'libamdhip64\.so(\.\d+)*$')
# Where a root or an installation has the library.
FOLDERS = ('', 'lib', 'lib64', 'usr/lib/x86_64-linux-gnu', 'usr/lib', 'usr/lib64', 'opt/rocm*/lib', 'torch/lib')


def cache():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return os.path.join(base, 'xschedd', 'surface')


def installed_and_fetched():
    """The libraries of this machine, then those in the cache."""
    output = subprocess.run(['/sbin/ldconfig', '-p'], capture_output=True, text=True, check=False).stdout
    found = re.findall(r'=> (\S*/libamdhip64\.so\S*)', output) + sorted(glob.glob('/opt/rocm*/lib/libamdhip64.so*'))
    for root in sorted(glob.glob(os.path.join(cache(), '*/'))):
        found += below(root)
    return _once(found)


def below(path):
    """`path` itself if it is a library; otherwise those in the usual places below it, or else anywhere below it."""
    if not os.path.isdir(path):
        return _once([path])
    found = [file for folder in FOLDERS for file in sorted(glob.glob(os.path.join(path, folder, 'libamdhip64*.so*')))]
    if not found:
        found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if LIBRARY.match(name)]
    return _once(found)


def _once(paths):
    return list(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isfile(path)))


class Runtime:
    def __init__(self, path):
        self.path = path
        self.exports = set()
        self.nodes = set()
        for line in self._nm('--defined-only'):
            kind, _, symbol = line.rpartition(' ')
            name, _, node = symbol.partition('@')
            if kind[-1:] in 'TWi':
                self.exports.add(name)
                self.nodes.add(node.lstrip('@'))
        self.registers = any('rocprofiler_register_library_api_table' in line for line in self._nm('--undefined-only'))
        if 'hipLaunchKernel' not in self.exports:
            raise ValueError(f'{path} exports no hipLaunchKernel, so it is not a HIP runtime')
        self.version = self._version()
        self.include, self.headers_version = self._headers()

    def _nm(self, which):
        result = subprocess.run(['nm', '-D', which, self.path], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ValueError(f'nm cannot read {self.path}: {result.stderr.strip()}')
        return result.stdout.splitlines()

    def _version(self):
        """From the file's name, as AMD's build names it; otherwise the newest version of its symbols."""
        match = re.search(r'\.so\.(\d+\.\d+\.\d+)$', os.path.basename(self.path))
        if match:
            return match.group(1)
        newest = max(([int(n) for n in node[4:].split('.')] for node in self.nodes if node.startswith('hip_')), default=[])
        return 'at least ' + '.'.join(map(str, newest)) if newest else 'version unknown'

    def _headers(self):
        """The include folder beside the library, and its headers' version."""
        folder = os.path.dirname(self.path)
        for up in ('..', '../..', '../../..'):
            include = os.path.normpath(os.path.join(folder, up, 'include'))
            if os.path.isfile(os.path.join(include, 'hip/hip_runtime_api.h')):
                version = 'unknown'
                try:
                    with open(os.path.join(include, 'hip/hip_version.h'), encoding='utf-8') as file:
                        version = '.'.join(re.findall(r'#define HIP_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)', file.read()))
                except OSError:
                    pass
                return include, version
        return None, None

    @property
    def own_headers(self):
        """The include folder, if its headers are of exactly this version."""
        is_own = self.include and (self.headers_version == self.version or self.version.startswith(('at least', 'version')))
        return self.include if is_own else None

    def mangled(self):
        """Exported C++ functions -> their parameters, from the names themselves."""
        names = sorted(name for name in self.exports if name.startswith('_Z'))
        if not names:
            return {}
        plain = subprocess.run(['c++filt', *names], capture_output=True, text=True, check=True).stdout.splitlines()
        return {name: text[text.index('(') + 1:-1] for name, text in zip(names, plain) if text.endswith(')')}
