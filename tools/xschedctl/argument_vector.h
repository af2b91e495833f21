// Words as exec(3) and posix_spawn(3) take them. Thread rule: pure.
#pragma once

#include <string>
#include <vector>

namespace xschedd::ctl {

// Pointers to the words, and a null pointer behind them; valid until `words` changes.
inline std::vector<char*> ArgumentVector(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace xschedd::ctl
