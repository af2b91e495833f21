// Reports, once for each function, that the software GPU does not implement it. Separate from runtime.h, because
// functions are defined with it under names that the HSA headers declare with other parameters. Thread rule: any
// thread.
#pragma once

namespace softgpu {

// Returns HSA_STATUS_ERROR, for the function to return.
unsigned not_implemented(const char* name);

}  // namespace softgpu
