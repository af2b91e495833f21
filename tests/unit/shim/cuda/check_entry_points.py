"""Compares the shim's list of CUDA entry points with what a libcuda, or the toolkit's stub of it, exports.

Fails on an exported function whose name says that it submits, waits or allocates, and that is not in the list.
usage: check_entry_points.py LIBCUDA ENTRY_POINTS_DEF
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../../tools/surface'))
import entry_points  # noqa: E402

# Parts of names of functions that may submit work or wait for it, and of those that allocate device memory, end its life or
# say how much there is.
SUSPECT = re.compile(r'^cuLaunch|Async|^cuMemcpy|^cuMemset|Synchronize|Prefetch|_pt[sd][sz]$|^cuStream|^cuEvent|WaitValue|'
                     r'WriteValue|MemOp|ExternalSemaphores|MapResources|cuGetProcAddress|^cuGraph(Launch|Upload)|'
                     r'^cuCtx(Create|Destroy|Detach|Set|Push|Wait|Record)|PrimaryCtxRe|'
                     r'^cuMem(Alloc|Host|Free|Create|Release|Map|Unmap|Retain|Import|AddressReserve|GetInfo)|'
                     r'^cuMemPool(Create|Destroy|Import)|Array(3D)?Create|ArrayDestroy|^cuDeviceTotalMem|^cuMulticastCreate|'
                     r'^cuIpcOpenMem|^cuImportExternalMemory|GetMapped(Buffer|MipmappedArray)|^cuGraphAdd(Mem)?(Alloc)?Node')

# Names that match but neither submit nor wait, each with the reason.
HARMLESS = re.compile(
    r'^cuStream(Get|Set)\w*|'  # properties; cuStreamGetCaptureInfo among them
    r'^cuStreamIsCapturing\w*|^cuStreamCopyAttributes\w*|'
    r'^cuEventCreate|^cuEvent(Get|Set)\w*|'
    r'^cuCtxSet(Flags|Limit|CacheConfig|SharedMemConfig)|^cuCtxResetPersistingL2Cache|'
    r'^cuGraph(?!AddNode|AddMemAllocNode)\w*Node\w*|^cuGraphicsResource\w*|'  # edits of a graph; cuGraphicsResourceGet...
    r'^cuMemHostGet\w*|^cuMemFreeHost|^cuMemHostUnregister|'  # host memory
    r'^cuDevice(Register|Unregister)AsyncNotification|'
    r'^cuLaunchAttribute\w*')


def main():
    library, definition = sys.argv[1:3]
    known = {entry.name for entry in entry_points.read(definition)}
    output = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split('@')[0] for line in output.splitlines()}
    unknown = sorted(name for name in exported if name.startswith('cu') and SUSPECT.search(name) and name not in known
                     and not HARMLESS.fullmatch(name))
    wrapped = known & exported
    print(f'{len(exported)} exports, {len(wrapped)} of them in the list')
    if len(wrapped) < 100:
        sys.exit(f'too few: {library} is not the library that is meant')
    if unknown:
        sys.exit('entry_points.def does not know: ' + ' '.join(unknown))


main()
