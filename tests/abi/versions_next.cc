// The table of versions that another release has, in place of common/versions.cc. Linked into test programs only.
//   AHEAD=1, 2   one to come: this release's newest version and AHEAD more, each of which has grown and has another
//                hash. With AHEAD=2 the program does not speak today's version any more: a release need only speak two
//   AHEAD=-1     the one before: what was published until then, so that today's sources do without what came since
// Thread rule: constants.
#include "common/abi.h"
#include "common/versions.h"

namespace xschedd::abi {
namespace {

// Memory that only the newer version has, behind what both have. Enough for another page.
[[maybe_unused]] constexpr std::size_t kGrowth = 4096;

[[maybe_unused]] constexpr Layout Ahead(std::uint32_t steps) {
  return {kVersion + steps, kLayoutHash + steps, sizeof(Board) + steps * kGrowth, sizeof(Ledger) + steps * kGrowth};
}
#if XSCHEDD_TEST_AHEAD < 0
static_assert(kVersion == 4, "name the versions of the release before");
constexpr Layout kTwo[] = {{2, 0x6d9a5c3f1658fb04, 4288, 6272}, {3, 0x3d3ba14301bb2287, 4288, 6784}};
#else
constexpr Layout kTwo[] = {Ahead(XSCHEDD_TEST_AHEAD - 1), Ahead(XSCHEDD_TEST_AHEAD)};
#endif

}  // namespace

std::span<const Layout> Spoken() {
  return kTwo;
}

}  // namespace xschedd::abi
