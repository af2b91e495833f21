// The device code of the programs of this suite, compiled once for all (meson.build).
#include "tests/differential/kernels.h"
