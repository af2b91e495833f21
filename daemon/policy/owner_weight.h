// What an owner's groups weigh together on a device, beside those of other owners: as much as the heaviest of them.
// That is divided among them by their weights. Thread rule: values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd::policy {

struct OwnerWeight {
  std::uint64_t sum = 0;
  std::uint64_t greatest = 0;

  void Add(std::uint64_t weight) {
    sum += weight;
    greatest = std::max(greatest, weight);
  }
  // The part of one among them, in units of 1/scale of a weight. `weight` has been added.
  std::uint64_t PartOf(std::uint64_t weight, std::uint64_t scale) const { return weight * scale * greatest / sum; }
  // That which one of weight W among them has W parts of, where all owners together weigh `all`.
  std::uint64_t WholeOf(std::uint64_t all) const { return all * sum / greatest; }
};

}  // namespace xschedd::policy
