// Passthrough inside the client: which calls pass, and that no cached answer outlives its library or handle.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "client-shim/core/passthrough.h"
#include "client-shim/stub/submission.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

const char* const kNames[] = {"hipLaunchKernel", "hipMemcpyAsync", "hipMemcpyAsync_spt", "hipGraphLaunch"};
enum : std::uint32_t { kLaunch, kCopy, kCopySpt, kGraph };

std::string g_kernel_name;
int g_names_asked = 0;
const Vendor kVendor = [] {
  Vendor vendor{};
  vendor.kernel_name = [](const KernelRef&, void*) -> const char* {
    ++g_names_asked;
    return g_kernel_name.empty() ? nullptr : g_kernel_name.c_str();
  };
  return vendor;
}();

CallerLibraries::FindObject FindObject() {
  return reinterpret_cast<CallerLibraries::FindObject>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
}

Submission Call(std::uint32_t entry, const void* caller, const void* kernel = nullptr) {
  Submission submission = MakeSubmission(nullptr, entry, false, false, caller);
  if (kernel != nullptr) submission.kernel = {KernelKind::kModuleFunction, kernel};
  return submission;
}

PassthroughRules Rules(std::string_view list) {
  std::vector<PassthroughEntry> entries;
  for (const std::string_view text : SplitPassthrough(list))
    entries.push_back(ParsePassthrough(text).value());
  return {entries, kNames, std::size(kNames)};
}

// A library of the test, which may be loaded at the address of another.
class Library {
 public:
  explicit Library(const char* variable) : handle_(::dlopen(std::getenv(variable), RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(handle_ != nullptr);
  }
  ~Library() { ::dlclose(handle_); }
  const void* Function() const { return ::dlsym(handle_, "call_site"); }

 private:
  void* handle_;
};

}  // namespace

TEST_CASE("passthrough: the first entry that matches counts", "[passthrough]") {
  CallerLibraries callers(FindObject());
  const auto rules = Rules("hipMemcpyAsync,libc.so,kernel:*scale*");
  g_kernel_name = "scale_add";
  CHECK(rules.Match(Call(kCopy, nullptr), kVendor, &callers) == 0);
  CHECK(rules.Match(Call(kCopySpt, nullptr), kVendor, &callers) == 0);
  CHECK(rules.Match(Call(kGraph, nullptr), kVendor, &callers) == PassthroughRules::kNone);
  CHECK(rules.Match(Call(kGraph, reinterpret_cast<const void*>(&::getenv)), kVendor, &callers) == 1);
  CHECK(rules.Match(Call(kLaunch, reinterpret_cast<const void*>(&kNames), &g_kernel_name), kVendor, &callers) == 2);
}

TEST_CASE("passthrough: a kernel's name is looked up only if an entry needs it", "[passthrough]") {
  CallerLibraries callers(FindObject());
  g_kernel_name = "scale_add";
  g_names_asked = 0;
  CHECK(Rules("hipMemcpyAsync,librccl.so").Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == -1);
  CHECK(g_names_asked == 0);
  CHECK(Rules("kernel:scale_add").Match(Call(kGraph, nullptr), kVendor, &callers) ==
        -1);  // launches more than one kernel
  CHECK(g_names_asked == 0);
  g_kernel_name.clear();  // the runtime does not know
  CHECK(Rules("kernel:*").Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == -1);
}

TEST_CASE("passthrough: kernels match by the mangled and by the demangled name", "[passthrough]") {
  CallerLibraries callers(FindObject());
  g_kernel_name = "_Z3addIiLi4EEvPT_";
  for (const char* pattern : {"_Z3addI*", "void add<int, 4>(int*)", "*add<int, 4>*", "_Z3addIiLi4EEvPT_"}) {
    // An entry of a list cannot contain a comma, so it is given by itself.
    const PassthroughRules rules({ParsePassthrough(std::string("kernel:") + pattern).value()}, kNames, 4);
    INFO(pattern);
    CHECK(rules.Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == 0);
  }
  CHECK(Rules("kernel:add").Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == -1);
  g_kernel_name = "scale_add.kd";
  CHECK(Rules("kernel:scale_add").Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == 0);
}

TEST_CASE("passthrough: a reused handle does not inherit the answer", "[passthrough]") {
  CallerLibraries callers(FindObject());
  const auto rules = Rules("kernel:first*");
  for (int round = 0; round < 3; ++round) {
    g_kernel_name = "first_kernel";
    CHECK(rules.Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == 0);
    // The same handle, and the same memory for the name.
    g_kernel_name.replace(0, 5, "other");
    CHECK(rules.Match(Call(kLaunch, nullptr, kNames), kVendor, &callers) == PassthroughRules::kNone);
  }
}

TEST_CASE("passthrough: a library at the address of another does not inherit its answer", "[passthrough]") {
  for (const bool with_find_object : {true, false}) {
    if (with_find_object && FindObject() == nullptr) continue;
    CallerLibraries callers(with_find_object ? FindObject() : nullptr);
    const auto rules = Rules("libpassed_one.so");
    const void* place = nullptr;
    int met = 0;
    for (int round = 0; round < 20 && met < 3; ++round) {
      {
        const Library passed("PASSED_LIBRARY");
        place = passed.Function();
        CHECK(rules.Match(Call(kLaunch, place), kVendor, &callers) == 0);
        CHECK(rules.Match(Call(kLaunch, place), kVendor, &callers) == 0);
      }
      const Library other("OTHER_LIBRARY");
      if (other.Function() != place) continue;
      ++met;
      CHECK(rules.Match(Call(kLaunch, place), kVendor, &callers) == PassthroughRules::kNone);
    }
    INFO("with _dl_find_object: " << with_find_object);
    CHECK(met > 0);
  }
}

TEST_CASE("passthrough: the rules change with the configuration, and calls are counted by rule", "[passthrough]") {
  StubTable stub{};
  stub.entry_names = kNames;
  stub.entry_count = std::size(kNames);
  Passthrough passthrough("hipMemcpyAsync", stub);
  const auto pass = [&](std::uint32_t entry) {
    abi::Counter* counter = passthrough.Match(Call(entry, nullptr), kVendor);
    if (counter != nullptr) counter->fetch_add(1);
    return counter != nullptr;
  };
  CHECK(pass(kCopy));
  CHECK_FALSE(pass(kGraph));
  const std::uint32_t before = passthrough.Epoch();
  passthrough.Configure({"hipGraphLaunch", "hipMemcpyAsync"});
  CHECK(passthrough.Epoch() != before);
  CHECK(pass(kCopy));
  CHECK(pass(kGraph));
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
  CHECK(passthrough.TakeCounts() == Counts{{"hipGraphLaunch", 1}, {"hipMemcpyAsync", 2}});
  CHECK(passthrough.TakeCounts().empty());
  const std::uint32_t same = passthrough.Epoch();
  passthrough.Configure({"hipGraphLaunch", "hipMemcpyAsync"});
  CHECK(passthrough.Epoch() == same);
  passthrough.Configure({});
  CHECK_FALSE(pass(kGraph));
  CHECK(pass(kCopy));
  CHECK(passthrough.TakeCounts() == Counts{{"hipMemcpyAsync", 1}});
}
