#include "client-shim/cuda/ioctl_hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client-shim/stub/client.h"

namespace xschedd::shim::cuda {
namespace {

int Find(int fd, unsigned long request, ...);

// relaxed: whoever looks it up finds the same function.
constinit std::atomic<IoctlFunction> g_real{Find};

// If there is no definition behind ours. Every C library has one.
int Raw(int fd, unsigned long request, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, request);
  void* const argument = __builtin_va_arg(list, void*);
  __builtin_va_end(list);
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

// The initial value of g_real: looks up the real one, and calls it.
int Find(int fd, unsigned long request, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, request);
  void* const argument = __builtin_va_arg(list, void*);
  __builtin_va_end(list);
  const int saved_errno = errno;
  const DlsymFunction look_up = RealDlsym();
  void* const found = look_up != nullptr ? look_up(RTLD_NEXT, "ioctl") : nullptr;
  const auto real = found != nullptr ? reinterpret_cast<IoctlFunction>(found) : Raw;
  g_real.store(real, std::memory_order_relaxed);
  errno = saved_errno;
  return real(fd, request, argument);
}

}  // namespace

IoctlFunction RealIoctl() {
  return g_real.load(std::memory_order_relaxed);
}

// The third argument is one word, whatever its type. If the caller passes none, the register's value is passed on,
// which does no harm.
extern "C" [[gnu::visibility("default")]] int Ioctl(int fd, unsigned long request, void* argument) __asm__("ioctl");

extern "C" int Ioctl(int fd, unsigned long request, void* argument) {
  const IoctlFunction real = RealIoctl();
  if (!ChannelGroups::Concerns(request)) [[likely]]
    return real(fd, request, argument);
  const int result = real(fd, request, argument);
  if (result == 0) g_channel_groups.Note(fd, request, argument);
  return result;
}

}  // namespace xschedd::shim::cuda
