// The largest deviation of a class's share from its due in any second, in steps of 10 ms. Thread rule: belongs to one
// simulation.
#pragma once

#include <cstdint>
#include <vector>

namespace xschedd::simulate {

class ShareMeter {
 public:
  // `due[i]`: the part of the device that class i is entitled to.
  ShareMeter(std::vector<double> due, std::uint64_t length_ns);

  // A kernel of a class ran from `start_ns` to `end_ns`.
  void Add(std::uint32_t class_index, std::uint64_t start_ns, std::uint64_t end_ns);

  // In percentage points, without the first second, in which everything begins. NaN for a run shorter than two seconds.
  double WorstError(std::uint32_t class_index) const;

 private:
  std::size_t bins_;
  std::vector<double> due_;
  std::vector<std::uint32_t> ran_ns_;  // [bin * classes + class]
};

}  // namespace xschedd::simulate
