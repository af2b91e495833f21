"""The programs to run, the libraries that they need, and the roots in which each can run.

Thread rule: data only.
"""

import dataclasses
import typing

ALL = ("rocm-5.2", "rocm-6.4", "rocm-7.2")
NEWER = ("rocm-6.4", "rocm-7.2")

# The ISA for which a root's libraries have code. In Debian's 6.4, no library that contains kernels has them for gfx942.
ISA = {"rocm-5.2": "gfx90a", "rocm-6.4": "gfx90a", "rocm-7.2": "gfx942"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One program and the roots that have what it needs. `name` is also its source's name, unless `command` is given."""
    name: str
    packages: str  # the beginning of the package names; the first installed one's version is shown
    flags: tuple = ()  # for hipcc: the libraries
    roots: tuple = ALL
    isa: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)  # where it differs from the root's
    environment: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    arguments: tuple = ()
    devices: int = 1
    command: tuple = ()  # a program in the root instead of one compiled here
    private_pids: bool = False  # the program and its neighbour run in their own process namespace
    processes: int = 1  # number of processes that use the device
    rounds: int = 20
    fails: bool = False  # ends with an error on a device that does not compute, with and without the shim
    compiles: bool = False  # starts compilers at run time
    graphs: bool = False  # launches graphs, each one submission and many dispatches
    differential: bool = False  # one of tests/differential/programs, whose transcript is compared
    exact: bool = False  # each submitting call is one dispatch, and the daemon must have counted exactly these


MIOPEN = {
    "MIOPEN_DEBUG_GCN_ASM_KERNELS": "0",  # Debian's 7.2 lacks their sources
    # Debian's MIOpen calls the compiler with -isystem /usr/include, with which <cmath> does not find <math.h>.
    "CCC_OVERRIDE_OPTIONS": "#X-isystem",
}

def differential(name, **how):
    """A program of tests/differential, with an unscaled clock; the arguments are seed, devices, rounds."""
    return Row(name, "libamdhip64-", isa={"rocm-6.4": "gfx942"}, environment={"SOFTGPU_CLOCK_SCALE": "1"}, arguments=("1", "1", "8"),
               differential=True, graphs=True, **how)


ROWS = (
    differential("capture_busy"),
    differential("barriers"),
    differential("order_first"),
    differential("double_destroy"),
    differential("cancelled_threads"),
    Row("hip_streams", "libamdhip64-", isa={"rocm-6.4": "gfx942"}, rounds=200),
    Row("hip_graph", "libamdhip64-", isa={"rocm-6.4": "gfx942"}, rounds=200, graphs=True),
    Row("hip_module", "libamdhip64-", isa={"rocm-6.4": "gfx942"}, arguments=("module_kernel.co",), rounds=200, exact=True),
    Row("hip_module_own_pids", "libamdhip64-", isa={"rocm-6.4": "gfx942"}, private_pids=True, exact=True, rounds=200,
        command=("./hip_module", "module_kernel.co")),
    Row("rocblas", "librocblas", ("-lrocblas",), NEWER),
    Row("hipblas", "libhipblas", ("-lhipblas",), NEWER),
    Row("hipblaslt", "libhipblaslt1", ("-lhipblaslt",), NEWER, isa={"rocm-7.2": "gfx90a"}),
    Row("miopen", "libmiopen1", ("-lMIOpen",), NEWER, environment=MIOPEN, compiles=True),
    Row("rocfft", "librocfft0", ("-lrocfft",), NEWER, isa={"rocm-6.4": "gfx942"}, compiles=True),
    Row("hipfft", "libhipfft0", ("-lhipfft",), NEWER, isa={"rocm-6.4": "gfx942"}, compiles=True),
    Row("rocrand", "librocrand1", ("-lrocrand",)),
    Row("hiprand", "libhiprand1", ("-lhiprand",)),
    Row("rocsparse", "librocsparse", ("-lrocsparse",)),
    Row("hipsparse", "libhipsparse", ("-lhipsparse",)),
    Row("rocsolver", "librocsolver0", ("-lrocsolver", "-lrocblas"), NEWER),
    Row("rccl", "librccl1", ("-lrccl",), ("rocm-7.2",), rounds=5, environment={"HSA_NO_SCRATCH_RECLAIM": "1"}, devices=2),
    Row("rccl_processes", "librccl1", ("-lrccl",), ("rocm-7.2",), rounds=5, environment={"HSA_NO_SCRATCH_RECLAIM": "1"},
        devices=2, processes=2),
    Row("python_host", "librocblas", roots=NEWER, rounds=100,
        command=("python3", "{programs}/python_host.py", "rocblas")),
    Row("python_host", "librocrand1", roots=("rocm-5.2",), rounds=100, command=("python3", "{programs}/python_host.py")),
    Row("ggml", "libggml0-backend-hip", roots=("rocm-6.4",), fails=True, graphs=True,
        command=("/usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops", "test", "-b", "ROCm0",
                 "-o", "MUL_MAT,RMS_NORM,SOFT_MAX", "-p", r"type_a=f16,type_b=f32,m=16,n=1,k=256|ne=\[64,5")),
    # Captures in relaxed mode, from several streams. It compares its results with the CPU's, and they differ.
    Row("llama", "libggml0-backend-hip", roots=("rocm-6.4",), fails=True, graphs=True,
        command=("/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-llama-archs", "-a", "gpt2")),
)
