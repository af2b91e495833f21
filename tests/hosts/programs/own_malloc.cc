// A program with its own malloc, as in some databases: it never frees, and allocates from a fixed area. Works as work.h
// does. Thread rule: its malloc, any thread.
#include <errno.h>
#include <stddef.h>

#include <atomic>

#include "work.h"

namespace {
constexpr std::size_t kRoom = 1u << 30;
constexpr std::size_t kHead = 16;
alignas(4096) char g_room[kRoom];  // zero pages until they are used
std::atomic<std::size_t> g_used{0};

void* Take(std::size_t size, std::size_t alignment) {
  const std::size_t whole = ((size + kHead + alignment) & ~std::size_t{15}) + 16;
  const std::size_t begin = g_used.fetch_add(whole);
  if (begin + whole > kRoom) return nullptr;
  std::size_t at = begin + kHead;
  at = (at + alignment - 1) / alignment * alignment;
  std::memcpy(g_room + at - sizeof size, &size, sizeof size);
  return g_room + at;
}
}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  return Take(size, 16);
}
void free(void*) {}
void* calloc(std::size_t count, std::size_t size) {
  return Take(count * size, 16);
}
void* realloc(void* old, std::size_t size) {
  void* const place = Take(size, 16);
  if (old != nullptr && place != nullptr) {
    std::size_t before = 0;
    std::memcpy(&before, static_cast<char*>(old) - sizeof before, sizeof before);
    std::memcpy(place, old, before < size ? before : size);
  }
  return place;
}
void* memalign(std::size_t alignment, std::size_t size) {
  return Take(size, alignment);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return Take(size, alignment);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = Take(size, alignment);
  return *out != nullptr ? 0 : ENOMEM;
}
}

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  hosts::Work work;
  work.Launch(arguments.launches, arguments.micros);
  work.LaunchUntilTold(arguments.micros);
  return work.Verdict();
}
