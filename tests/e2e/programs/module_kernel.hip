// The code object that `module` loads: only the kernel.
#include "kernels.h"
