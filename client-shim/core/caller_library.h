// Finds the file that a code address belongs to at this moment.
//
// From glibc 2.35 on, the loader answers this without a lock (_dl_find_object), so nothing is cached that a dlclose
// could make wrong. With older releases its list must be walked under its lock: results are cached by address range,
// and dropped as soon as the loader has unloaded anything. Thread rule: any thread.
#pragma once

#include <link.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace xschedd::shim {

class CallerLibraries {
 public:
  // dlfcn.h's struct of that name, which older headers do not have.
  struct FoundObject {
    unsigned long long flags;
    void* first;
    void* end;
    struct link_map* object;
    void* eh_frame;
    unsigned long long reserved[7];
  };
  using FindObject = int (*)(void* address, void* found);

  // `find_object`: the loader's _dl_find_object; null where it has none.
  explicit CallerLibraries(FindObject find_object) : find_object_(find_object) {}

  // Calls `use` with the path of the object that contains `address`, as the loader knows it; empty for the program
  // itself and for code of no object. The path is valid during the call. The caller must keep the object loaded, as one
  // of its functions that is on the stack does.
  template <typename Use>
  auto WithPathOf(const void* address, Use use) {
    if (find_object_ != nullptr) {
      FoundObject found;
      const bool is_found = find_object_(const_cast<void*>(address), &found) == 0;
      return use(is_found ? NameOf(found.object) : "");
    }
    const std::lock_guard lock(mutex_);
    return use(Walk(address));
  }

 private:
  struct Range {
    std::uintptr_t first, end;
    std::string path;
  };
  static const char* NameOf(const struct link_map* object);
  const char* Walk(const void* address);

  const FindObject find_object_;
  std::mutex mutex_;
  std::vector<Range> ranges_;
  unsigned long long unloaded_ = 0;  // objects that the loader had unloaded when `ranges_` was filled
};

}  // namespace xschedd::shim
