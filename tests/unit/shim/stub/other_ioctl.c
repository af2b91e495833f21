// Another preload with an `ioctl`, behind the shim's: it must receive the program's calls unchanged.
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int other_ioctl_calls;

int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  ++other_ioctl_calls;
  if (fd == -7) {  // the arguments of the call
    unsigned long* const words = argument;
    words[0] = request;
    errno = 4711;
    return (int)words[1];
  }
  return (int)syscall(SYS_ioctl, fd, request, argument);
}
