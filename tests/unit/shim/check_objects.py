"""Checks the two built objects of the shim with readelf, nm and objdump.

  shim    needs libc only; asks for nothing newer than tools/dist/needs.py allows; exports the listed entry points and the hooks, nothing
          else, without version nodes; runs no constructor; its launch path is short
  client  needs only the C library, and nothing newer; exports only its start
          and its self-description
usage: check_objects.py portable|native SHIM CLIENT ENTRY_POINTS_DEF...
native: the archives in the client are those of a newer system than Debian 12, and need its C library.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../tools/surface'))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../tools/dist'))
import entry_points  # noqa: E402
import needs  # noqa: E402

LONGEST_LAUNCH_PATH = 60  # instructions: the promise of docs/explanation/shim.md
HOOKS = {'rocprofiler_register_library_api_table', 'dlsym', 'dlvsym', 'hsa_amd_profiling_get_dispatch_time',
         'hsa_amd_queue_set_priority', 'hsa_queue_create', 'hsa_queue_destroy',
         '__hipRegisterFatBinary', 'ioctl',
         'nvmlDeviceGetMemoryInfo', 'nvmlDeviceGetMemoryInfo_v2', 'rsmi_dev_memory_total_get', 'rsmi_dev_memory_usage_get',
         'amdsmi_get_gpu_memory_total', 'amdsmi_get_gpu_memory_usage', 'amdsmi_get_gpu_vram_usage'}
HEADER = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../client-shim/include/xschedd.h')
with open(HEADER) as header:
    HOOKS |= set(re.findall(r'^XSCHEDD_FUNCTION\([^,]*, (xschedd_\w+)', header.read(), re.MULTILINE))


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(path):
    return {line.split()[-1] for line in run('nm', '-D', '--defined-only', path).splitlines()}


def launch_path(path, name):
    """Instructions from the entry of `name` to its jump to the real function, the branch to the slow path not taken."""
    text = run('objdump', '-d', '--no-show-raw-insn', f'--disassemble={name}', path)
    count = 0
    for line in text.splitlines():
        match = re.match(r'\s*[0-9a-f]+:\s+(\S+)\s*(.*)', line)
        if not match:
            continue
        count += 1
        operation, operand = match.groups()
        if operation == 'jmp' and operand.startswith('*'):
            return count
        if operation in ('ret', 'call'):
            break
    return None


def main():
    is_portable, shim, client = sys.argv[1] == 'portable', *sys.argv[2:4]
    entries = [entry for definition in sys.argv[4:] for entry in entry_points.read(definition)]
    problems = []

    if needs.libraries(shim) != {'libc.so.6'}:
        problems.append(f'shim needs {needs.libraries(shim)}')
    problems += needs.problems(shim) + (needs.problems(client) if is_portable else needs.other_libraries(client))
    if 'INIT_ARRAY' in run('readelf', '-dW', shim):
        # The C runtime's frame_dummy is the one entry that every shared object has.
        size = int(re.search(r'INIT_ARRAYSZ\)\s+(\d+)', run('readelf', '-dW', shim)).group(1))
        if size > 8:
            problems.append(f'shim has {size // 8 - 1} static constructors')
    wanted = {entry.name for entry in entries if entry.is_wrapped} | HOOKS
    for name in sorted(wanted ^ exported(shim)):
        problems.append(f'shim {"does not export" if name in wanted else "exports"} {name}')

    lengths = {entry.name: launch_path(shim, entry.name)
               for entry in entries if entry.macro in ('XS_SUBMIT', 'XS_GATE', 'XS_COPY', 'XS_READ')}
    for name, length in lengths.items():
        if length is None or length > LONGEST_LAUNCH_PATH:
            problems.append(f'launch path of {name}: {length} instructions')
    found = [length for length in lengths.values() if length is not None]
    print(f'launch path: {min(found)} to {max(found)} instructions; hipLaunchKernel {lengths["hipLaunchKernel"]}, '
          f'hipModuleLaunchKernel {lengths["hipModuleLaunchKernel"]}, hipGraphLaunch {lengths["hipGraphLaunch"]}, '
          f'cuLaunchKernel {lengths["cuLaunchKernel"]}, cuLaunchKernelEx {lengths["cuLaunchKernelEx"]}, '
          f'cuGraphLaunch {lengths["cuGraphLaunch"]}')

    if exported(client) != {'xschedd_client_start', 'xschedd_client_about'}:
        problems.append(f'client library exports {len(exported(client))} names')
    weak = set(re.findall(r' w (\S+)', run('nm', '-D', client)))
    if any('grpc' in name or 'absl' in name or 'google' in name for name in weak):
        problems.append(f'client library may bind to the host: {weak}')

    if problems:
        sys.exit('\n'.join(problems))


main()
