// Random numbers that are the same everywhere: the standard library's distributions differ between implementations.
// Thread rule: a generator belongs to one thread.
#pragma once

#include <cmath>
#include <cstdint>

namespace xschedd::simulate {

// splitmix64: small, fast, and good enough for arrivals.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  std::uint64_t Exponential(double mean_ns) { return static_cast<std::uint64_t>(-std::log1p(-Uniform()) * mean_ns); }

 private:
  std::uint64_t state_;
};

}  // namespace xschedd::simulate
