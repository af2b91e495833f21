#include "client-shim/stub/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "client-shim/core/standard_error.h"
#include "client-shim/stub/launch_path.h"

namespace xschedd::shim {

void Say(const char* a, const char* b, const char* c, const char* d, const char* e) {
  const int saved_errno = errno;
  const char* level = getenv("XSCHEDD_LOG");
  if (level != nullptr && strcmp(level, "quiet") == 0) return;
  char line[512] = "xschedd: ";
  unsigned long length = strlen(line);
  for (const char* part : {a, b, c, d, e}) {
    if (part == nullptr) break;
    for (; *part != '\0' && length < sizeof line - 1; ++part)
      line[length++] = *part;
  }
  line[length++] = '\n';
  {
    const Inside inside;  // write is a cancellation point
    WriteStandardError(line, length);
  }
  errno = saved_errno;
}

}  // namespace xschedd::shim
