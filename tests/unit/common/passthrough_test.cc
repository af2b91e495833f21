// The grammar of passthrough: accepted entries, refused ones with their remedies, and what each matches.
#include "common/passthrough.h"

#include "common/entry_point_names.h"
#include "tests/catch.h"

namespace xschedd {
namespace {
using Kind = PassthroughEntry::Kind;
}

TEST_CASE("passthrough: libraries, entry points and kernels", "[passthrough]") {
  struct Case {
    const char* text;
    Kind kind;
    const char* kept;
  };
  for (const Case& one : {Case{"librccl.so", Kind::kLibrary, "librccl.so"},
                          {" librccl.so.1 ", Kind::kLibrary, "librccl.so.1"},
                          {"_C.cpython-311-x86_64-linux-gnu.so", Kind::kLibrary, "_C.cpython-311-x86_64-linux-gnu.so"},
                          {"hipMemcpyAsync", Kind::kEntryPoint, "hipMemcpyAsync"},
                          {"hipExtModuleLaunchKernel", Kind::kEntryPoint, "hipExtModuleLaunchKernel"},
                          {"hipGraphLaunch", Kind::kEntryPoint, "hipGraphLaunch"},
                          {"cuLaunchKernel", Kind::kEntryPoint, "cuLaunchKernel"},
                          {"cuMemcpyHtoDAsync", Kind::kEntryPoint, "cuMemcpyHtoDAsync"},
                          {"kernel:*ncclDevKernel*", Kind::kKernel, "*ncclDevKernel*"},
                          {"kernel:void add<int, float>(int*)", Kind::kKernel, "void add<int, float>(int*)"}}) {
    INFO(one.text);
    const auto entry = ParsePassthrough(one.text);
    REQUIRE(entry);
    CHECK(entry->kind == one.kind);
    CHECK(entry->text == one.kept);
    CHECK(ParsePassthrough(entry->Written()).value() == *entry);
  }
}

TEST_CASE("passthrough: an error names the entry, and what to write instead", "[passthrough]") {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& one : {Case{"hipMemcpyAsnc", "did you mean hipMemcpyAsync?"},
                          {"hiplaunchkernel", "did you mean hipLaunchKernel?"},
                          {"cudaLaunchKernel", "did you mean cuLaunchKernel?"},
                          {"hipStreamSynchronize", "is never gated; leave it out"},
                          {"librccl", "write librccl.so"},
                          {"/opt/rocm/lib/librccl.so.1", "write librccl.so.1"},
                          {"librccl*.so", "only kernels go by patterns"},
                          {"hipMemcpy*", "only kernels go by patterns"},
                          {"Kernel:x", "is of no known kind"},
                          {"api:hipMemcpyAsync", "is of no known kind"},
                          {"kernel:", "has no pattern"},
                          {"", "is empty"},
                          {"zzzzzzzz", "is neither a library nor an entry point that is gated"},
                          {".so", "is neither a library nor an entry point"},
                          {"x.sox", "is neither a library nor an entry point"}}) {
    INFO(one.text);
    const auto entry = ParsePassthrough(one.text);
    REQUIRE_FALSE(entry);
    INFO(entry.error().Line());
    CHECK(entry.error().Line().find(one.says) != std::string::npos);
    CHECK_FALSE(entry.error().remedy.empty());
  }
}

TEST_CASE("passthrough: a list", "[passthrough]") {
  CHECK(SplitPassthrough("").empty());
  CHECK(SplitPassthrough(" , ,").empty());
  CHECK(SplitPassthrough(" a, b ,,kernel:x y ") == std::vector<std::string_view>{"a", "b", "kernel:x y"});
}

TEST_CASE("passthrough: a library matches by its file name, in any version", "[passthrough]") {
  CHECK(MatchesLibrary("librccl.so", "/opt/rocm/lib/librccl.so.1.0.50403"));
  CHECK(MatchesLibrary("librccl.so", "librccl.so"));
  CHECK(MatchesLibrary("librccl.so.1", "/lib/librccl.so.1"));
  CHECK_FALSE(MatchesLibrary("librccl.so.1", "/lib/librccl.so.10"));
  CHECK_FALSE(MatchesLibrary("librccl.so", "/lib/librccl.sox"));
  CHECK_FALSE(MatchesLibrary("librccl.so", "/opt/librccl.so/libother.so"));
  CHECK_FALSE(MatchesLibrary("librccl.so", "/lib/xlibrccl.so"));
  CHECK_FALSE(MatchesLibrary("librccl.so", ""));
}

TEST_CASE("passthrough: an entry point matches with its variants", "[passthrough]") {
  CHECK(MatchesEntryPoint("hipMemcpyAsync", "hipMemcpyAsync"));
  CHECK(MatchesEntryPoint("hipMemcpyAsync", "hipMemcpyAsync_spt"));
  CHECK(MatchesEntryPoint("hipMemcpyAsync_spt", "hipMemcpyAsync_spt"));
  CHECK_FALSE(MatchesEntryPoint("hipMemcpyAsync_spt", "hipMemcpyAsync"));
  CHECK_FALSE(MatchesEntryPoint("hipMemcpy", "hipMemcpyAsync"));
  CHECK(MatchesEntryPoint("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2_ptsz"));
  CHECK(MatchesEntryPoint("hipExtModuleLaunchKernel",
                          "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_"
                          "tS6_j"));
  CHECK(MatchesEntryPoint("hipLaunchKernelGGLImpl",
                          "_ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv"));
  CHECK_FALSE(MatchesEntryPoint("hip_impl", "_ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv"));
}

TEST_CASE("passthrough: patterns", "[passthrough]") {
  CHECK(MatchesGlob("*", ""));
  CHECK(MatchesGlob("*ncclDevKernel*", "_Z25ncclDevKernel_AllReducePv"));
  CHECK(MatchesGlob("a?c", "abc"));
  CHECK(MatchesGlob("a*b*c", "a--b-b--c"));
  CHECK(MatchesGlob("f<int?4>*", "f<int,4>(float*)"));
  CHECK(MatchesGlob("**x", "x"));
  CHECK_FALSE(MatchesGlob("", "a"));
  CHECK_FALSE(MatchesGlob("a?c", "ac"));
  CHECK_FALSE(MatchesGlob("a*b", "a-b-"));
  CHECK_FALSE(MatchesGlob("[ab]", "a"));  // no character classes, because names contain brackets
  CHECK(MatchesGlob("[ab]", "[ab]"));
  // The time is bounded by the product of both lengths.
  CHECK_FALSE(MatchesGlob("*a*a*a*a*a*a*a*a*b", std::string(1000, 'a')));
}

TEST_CASE("passthrough: every vendor's entry points are known", "[passthrough]") {
  std::size_t gated = 0;
  std::size_t others = 0;
  for (const EntryPointName& known : EntryPointNames())
    ++(known.is_gated ? gated : others);
  CHECK(gated > 200);
  CHECK(others > 50);
  CHECK(IsLeftAlone("hipHostMalloc"));
  CHECK(IsLeftAlone("hipIpcOpenMemHandle"));
  for (const std::string_view not_one :
       {"hipHostMallo", "ipHostMalloc", "hipLaunchKernel", "hipHostMalloc,", ", hipHostMalloc", ",", "hipMalloc"})
    CHECK_FALSE(IsLeftAlone(not_one));
}

}  // namespace xschedd
