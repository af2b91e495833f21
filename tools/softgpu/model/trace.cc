#include "tools/softgpu/model/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace softgpu {

namespace {

// Kernel names are symbols, but a code object is input: what JSON reserves is replaced, not escaped.
std::string json_safe(const char* text) {
  std::string safe;
  for (; *text != '\0' && safe.size() < 2048; ++text) {
    const bool reserved = *text == '"' || *text == '\\' || static_cast<unsigned char>(*text) < 0x20;
    safe += reserved ? '?' : *text;
  }
  return safe;
}

}  // namespace

void Trace::open(const std::string& prefix) {
  if (prefix.empty()) return;
  const std::string path = prefix + "." + std::to_string(getpid()) + ".jsonl";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  fd_.store(fd, std::memory_order_relaxed);
  if (fd < 0) {
    std::fprintf(stderr, "softgpu: no trace: %s: %s; SOFTGPU_TRACE must be a path prefix in a writable folder\n",
                 path.c_str(), std::strerror(errno));
  }
}

void Trace::write(const TraceRecord& r) {
  const int fd = fd_.load(std::memory_order_relaxed);
  if (fd < 0) return;
  char line[4096];
  const int size =
      std::snprintf(line, sizeof line,
                    "{\"pid\":%d,\"device\":%u,\"queue\":%u,\"kind\":\"%s\",\"name\":\"%s\",\"arrival_ns\":%" PRIu64
                    ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"cus\":%u%s%s%s}\n",
                    getpid(), r.device, r.queue, r.kind, json_safe(r.name).c_str(), r.arrival_ns, r.start_ns, r.end_ns,
                    r.units, r.priority != nullptr ? ",\"priority\":\"" : "", r.priority != nullptr ? r.priority : "",
                    r.priority != nullptr ? "\"" : "");
  if (::write(fd, line, static_cast<size_t>(size)) != size) {
    std::fprintf(stderr, "softgpu: the trace ends here: %s; free some space\n", std::strerror(errno));
    fd_.store(-1, std::memory_order_relaxed);
  }
}

}  // namespace softgpu
