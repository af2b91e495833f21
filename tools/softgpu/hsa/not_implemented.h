// Says, once for each function, that the software GPU does not have it. Apart from runtime.h because functions are
// defined with it under names that the HSA headers declare with other parameters. Thread rule: any thread.
#pragma once

namespace softgpu {

// Returns HSA_STATUS_ERROR, which is what such a function returns.
unsigned not_implemented(const char* name);

}  // namespace softgpu
