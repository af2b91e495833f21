#include "client-shim/cuda/ioctl_hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client-shim/stub/client.h"

namespace xschedd::shim::cuda {
namespace {

int Find(int fd, unsigned long request, ...);

// relaxed: code is there before and after; whoever looks it up finds the same.
constinit std::atomic<IoctlFunction> g_real{Find};

// Without a definition behind ours, which no C library is.
int Raw(int fd, unsigned long request, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, request);
  void* const argument = __builtin_va_arg(list, void*);
  __builtin_va_end(list);
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

// Stands for the real one until that is known.
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

// The third argument is a word whatever its type, and is passed on also where the caller has given none: by the calling
// convention that is what the register holds.
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
