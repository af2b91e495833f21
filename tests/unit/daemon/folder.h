// A folder for a test's files, removed with its contents. Thread rule: the test's thread.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "tests/catch.h"

namespace xschedd::test {

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/xschedd-unit-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& Path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace xschedd::test
