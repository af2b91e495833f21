// A library's functions that this object defines in its place, as dlsym_hook.cc needs them. Thread rule: any thread.
#pragma once

// Of such a function.
#define XS_EXPORTED extern "C" __attribute__((visibility("default")))

namespace xschedd::shim {

struct Exposed {
  // Whether a name looks like one of the library's functions (cheap); whether we define it; our function of that name,
  // or null where calls come another way; whether a library is loaded that has it; whether an address is code of the
  // library that ours stands for.
  bool (*may_be_ours)(const char* name);
  bool (*is_entry)(const char* name);
  void* (*wrapper_of)(const char* name);
  bool (*exports)(const char* name);
  bool (*is_runtime_code)(const void* address);
};

}  // namespace xschedd::shim
