// `ioctl` under the preloaded stub: passed on unchanged to the next definition, whatever the request.
// usage: ioctl_program [other], with another preload behind the stub
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>

#include "tests/unit/shim/stub/expect.h"

namespace {

constexpr unsigned long kAlloc = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48);
constexpr unsigned long kFree = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16);

}  // namespace

int main(int argc, char**) {
  const bool has_other = argc > 1;
  Dl_info info{};
  EXPECT(dladdr(dlsym(RTLD_DEFAULT, "ioctl"), &info) != 0 && strstr(info.dli_fname, "libxschedd-shim") != nullptr);

  int ends[2];
  EXPECT(pipe(ends) == 0 && write(ends[1], "four", 4) == 4);
  int waiting = -1;
  errno = 17;
  EXPECT(ioctl(ends[0], FIONREAD, &waiting) == 0);
  EXPECT(waiting == 4 && errno == 17);

  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  unsigned words[12] = {1, 2, 3, 0xa06c};
  for (const unsigned long request : {static_cast<unsigned long>(TCGETS), kAlloc, kFree, 0ul, ~0ul}) {
    errno = 0;
    EXPECT(ioctl(null, request, words) == -1);
    EXPECT(errno == ENOTTY);
  }
  errno = 0;
  EXPECT(ioctl(-1, kAlloc, nullptr) == -1 && errno == EBADF);
  EXPECT(ioctl(null, FIOCLEX) == 0);  // without a third argument

  if (has_other) {
    const auto* const calls = static_cast<int*>(dlsym(RTLD_DEFAULT, "other_ioctl_calls"));
    EXPECT(calls != nullptr && *calls == 8);
    for (const unsigned long request : {0x123456789abcdef0ul, kAlloc, kFree, ~0ul}) {
      unsigned long told[8] = {0, static_cast<unsigned long>(-5)};
      EXPECT(ioctl(-7, request, told) == -5);
      EXPECT(told[0] == request && errno == 4711);
    }
    // The same for calls that succeed: a group is recorded, and nothing else changes.
    unsigned long made[8] = {0, 0};
    errno = 0;
    EXPECT(ioctl(-7, kAlloc, made) == 0);
    EXPECT(made[0] == kAlloc && errno == 4711);
  }
  return g_failures == 0 ? 0 : 1;
}
