// The code object that `module` loads: nothing but the kernel.
#include "kernels.h"
