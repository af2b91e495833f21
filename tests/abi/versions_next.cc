// The table of versions that a release to come would have, in place of common/versions.cc: this release's newest
// version and AHEAD more, each of which has grown and has another hash. Linked into test programs only. With AHEAD=2
// the program does not speak today's version any more, because a release speaks two. Thread rule: constants.
#include "common/abi.h"
#include "common/versions.h"

namespace xschedd::abi {
namespace {

// Memory that only the newer version has, behind what both have. Enough for another page.
constexpr std::size_t kGrowth = 4096;

constexpr Layout Ahead(std::uint32_t steps) {
  return {kVersion + steps, kLayoutHash + steps, sizeof(Board) + steps * kGrowth, sizeof(Ledger) + steps * kGrowth};
}
constexpr Layout kTwo[] = {Ahead(XSCHEDD_TEST_AHEAD - 1), Ahead(XSCHEDD_TEST_AHEAD)};

}  // namespace

std::span<const Layout> Spoken() {
  return kTwo;
}

}  // namespace xschedd::abi
