// What a HIP call launches, as one number: what must differ, and what must be equal.
#include "client-shim/hip/kernel_of.h"
#include "client-shim/hip/launch_key.h"
#include "tests/catch.h"

namespace xschedd::shim::hip {
namespace {

const void* const kFunction = reinterpret_cast<const void*>(0x1000);
const void* const kOther = reinterpret_cast<const void*>(0x2000);
Handle const kHandle = reinterpret_cast<Handle>(0x1000);
Handle const kOtherHandle = reinterpret_cast<Handle>(0x2000);
Stream const kStream = reinterpret_cast<Stream>(0x3000);
constexpr uint32_t kEntry = 7;

uint64_t Syntax(const void* function, Dim3 grid, Dim3 block, void** arguments = nullptr, size_t shared = 0,
                Stream stream = nullptr) {
  return LaunchKey(kEntry, function, grid, block, arguments, shared, stream);
}
uint64_t Module(Handle function, unsigned gx, unsigned bx, Stream stream = nullptr) {
  return LaunchKey(kEntry, function, gx, 1u, 1u, bx, 1u, 1u, size_t{0}, stream, static_cast<void**>(nullptr),
                   static_cast<void**>(nullptr), Event{}, Event{}, 0u);
}
}  // namespace

TEST_CASE("kernels of the launch syntax: by function, grid and block", "[launch_key]") {
  const Dim3 one{1, 1}, two{2, 1};
  CHECK(Syntax(kFunction, one, two) != Syntax(kOther, one, two));
  CHECK(Syntax(kFunction, one, two) != Syntax(kFunction, two, two));
  CHECK(Syntax(kFunction, one, two) != Syntax(kFunction, one, one));
  void* argument = nullptr;
  CHECK(Syntax(kFunction, one, two) == Syntax(kFunction, one, two, &argument, 64, kStream));
  // What lies in the upper half of a dim3's last register is nobody's.
  CHECK(Syntax(kFunction, Dim3{1, 1}, one) == Syntax(kFunction, Dim3{1, uint64_t{5} << 32 | 1}, one));
}

TEST_CASE("kernels of modules: by function, grid and block", "[launch_key]") {
  CHECK(Module(kHandle, 4, 64) != Module(kOtherHandle, 4, 64));
  CHECK(Module(kHandle, 4, 64) != Module(kHandle, 8, 64));
  CHECK(Module(kHandle, 4, 64) != Module(kHandle, 4, 32));
  CHECK(Module(kHandle, 4, 64) == Module(kHandle, 4, 64, kStream));
}

TEST_CASE("kernels with a configuration: its grid and block, not its attributes or its stream", "[launch_key]") {
  const LaunchConfig config{{4, 1, 1}, {64, 1, 1}, 0, nullptr}, elsewhere{{4, 1, 1}, {64, 1, 1}, 0, kStream};
  const LaunchConfig larger{{8, 1, 1}, {64, 1, 1}, 0, nullptr};
  void** const none = nullptr;
  CHECK(LaunchKey(kEntry, &config, kFunction, none) == LaunchKey(kEntry, &elsewhere, kFunction, none));
  CHECK(LaunchKey(kEntry, &config, kFunction, none) != LaunchKey(kEntry, &config, kOther, none));
  CHECK(LaunchKey(kEntry, &config, kHandle, none, none) != LaunchKey(kEntry, &config, kOtherHandle, none, none));
  CHECK(LaunchKey(kEntry, &config, kFunction, none) != LaunchKey(kEntry, &larger, kFunction, none));
  CHECK(LaunchKey(kEntry, static_cast<const LaunchConfig*>(nullptr), kFunction, none) == 0);
}

TEST_CASE("items of a list: by function, grid and block", "[launch_key]") {
  LaunchParams item{kHandle, {4, 1, 1}, {64, 1, 1}, nullptr, 0, nullptr};
  const uint64_t key = ItemKey(kEntry, item);
  CHECK(key != 0);
  item.stream = kStream;
  item.shared = 64;
  CHECK(ItemKey(kEntry, item) == key);
  item.block[1] = 2;
  CHECK(ItemKey(kEntry, item) != key);
  const FunctionLaunchParams module_item{kHandle, {4, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr};
  const FunctionLaunchParams other{kOtherHandle, {4, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr};
  CHECK(ItemKey(kEntry, module_item) != ItemKey(kEntry, other));
}

TEST_CASE("hipLaunchByPtr by its function, graphs by their executable", "[launch_key]") {
  CHECK(LaunchKey(kEntry, kFunction) != LaunchKey(kEntry, kOther));
  CHECK(LaunchKey(kEntry, kHandle, kStream) != LaunchKey(kEntry, kOtherHandle, kStream));
  CHECK(LaunchKey(kEntry, kHandle, kStream) == LaunchKey(kEntry, kHandle, Stream{}));
}

TEST_CASE("copies described by a structure: by size to a power of two, wherever the structure lies", "[launch_key]") {
  const Copy3D small{{}, {64, 1, 1}}, same{{}, {100, 1, 1}}, large{{}, {64, 64, 64}};
  CHECK(LaunchKey(kEntry, &small, kStream) == LaunchKey(kEntry, &same, kStream));
  CHECK(LaunchKey(kEntry, &small, kStream) != LaunchKey(kEntry, &large, kStream));
  CHECK(LaunchKey(kEntry, &small) != LaunchKey(kEntry, &large));  // hipMemcpy3D
  const Copy3DPeer peer_small{{}, {64, 1, 1}}, peer_large{{}, {64, 64, 1}};
  CHECK(LaunchKey(kEntry, &peer_small, kStream) != LaunchKey(kEntry, &peer_large, kStream));
  CHECK(KernelOf(kEntry, &small).kind == KernelKind::kNone);  // and no kernel, as one pointer alone is
  CHECK(KernelOf(kEntry, kFunction).handle == kFunction);
  const Copy2D flat_small{{}, 64, 1}, flat_same{{}, 120, 1}, flat_large{{}, 64, 64};
  CHECK(LaunchKey(kEntry, &flat_small, kStream) == LaunchKey(kEntry, &flat_same, kStream));
  CHECK(LaunchKey(kEntry, &flat_small, kStream) != LaunchKey(kEntry, &flat_large, kStream));
  CHECK(LaunchKey(kEntry, static_cast<const Copy3D*>(nullptr), kStream) != 0);
  CHECK(LaunchKey(kEntry, static_cast<const Copy2D*>(nullptr)) != 0);
}

TEST_CASE("migrations by size and by where to", "[launch_key]") {
  const auto key = [](size_t size, MemLocation location) {
    return LaunchKey(kEntry, kFunction, size, location, 0u, kStream);
  };
  CHECK(key(4096, {1, 0}) == key(5000, {1, 0}));
  CHECK(key(4096, {1, 0}) != key(1 << 20, {1, 0}));
  CHECK(key(4096, {1, 0}) != key(4096, {1, 1}));
  CHECK(key(4096, {1, 0}) != key(4096, {2, 0}));
}

}  // namespace xschedd::shim::hip
