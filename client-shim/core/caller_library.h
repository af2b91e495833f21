// Which file a code address belongs to, remembered, because the loader's list is slow to walk.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace xschedd::shim {

class CallerLibraries {
 public:
  // The path of the object that `address` lies in, as the loader knows it; empty for the program itself. A library that
  // is unloaded and another loaded in its place is told apart only by its extent.
  std::string PathOf(const void* address);

 private:
  struct Range {
    std::uintptr_t first, end;
    std::string path;
  };
  std::mutex mutex_;
  std::vector<Range> ranges_;
};

}  // namespace xschedd::shim
