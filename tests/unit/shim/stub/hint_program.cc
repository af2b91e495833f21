// A hint that another thread gives while the client starts reaches the client. The fake client sets the weight 10 while
// the start passes on the deadline (FAKE_CLIENT_HINT). usage: hint_program FAKE_HIP
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

#include "client-shim/include/xschedd.h"

namespace {

template <typename Function>
Function Find(void* object, const char* name) {
  return reinterpret_cast<Function>(dlsym(object, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const hip = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (hip == nullptr) return 2;
  const auto copy = Find<int (*)(void*, const void*, size_t, int, void*)>(hip, "hipMemcpyAsync");
  const auto set_weight = Find<int (*)(unsigned)>(RTLD_DEFAULT, "xschedd_set_weight");
  const auto set_deadline = Find<int (*)(xschedd_count)>(RTLD_DEFAULT, "xschedd_set_deadline");
  const auto get_status = Find<int (*)(xschedd_status*)>(RTLD_DEFAULT, "xschedd_get_status");
  if (copy == nullptr || set_weight == nullptr || set_deadline == nullptr || get_status == nullptr) return 2;
  if (set_weight(3) != XSCHEDD_ERROR_NOT_CONNECTED || set_deadline(4) != XSCHEDD_ERROR_NOT_CONNECTED) return 2;
  if (copy(nullptr, nullptr, 0, 0, nullptr) != 0) return 2;  // starts the client
  xschedd_status status{};
  status.size = sizeof status;
  if (get_status(&status) != XSCHEDD_OK) return 2;
  // The fake client adds up all weights and deadlines there.
  if (status.effective_priority == 3 + 4 + 10) return 0;
  std::fprintf(stderr, "the client got hints of %d in all, not 17\n", status.effective_priority);
  return 1;
}
