// Another preload that has an `ioctl`: it stands behind the shim's, and is to see what the program calls, as it calls
// it.
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
  if (fd == -7) {  // what came
    unsigned long* const words = argument;
    words[0] = request;
    errno = 4711;
    return (int)words[1];
  }
  return (int)syscall(SYS_ioctl, fd, request, argument);
}
