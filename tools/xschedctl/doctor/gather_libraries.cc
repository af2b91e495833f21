#include "tools/xschedctl/doctor/gather_libraries.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tools/xschedctl/doctor/elf_file.h"
#include "tools/xschedctl/doctor/gather_process.h"
#include "tools/xschedctl/doctor/load_probe.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> Split(const std::string& list, const char* separators) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= list.size()) {
    const std::size_t end = std::min(list.find_first_of(separators, at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Adds the files in `dir` with this prefix, each real file once.
void FindRuntimes(const std::string& dir, const char* prefix, const std::string& found_by, std::set<std::string>* seen,
                  std::vector<RuntimeFacts>* out) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& path : names) {
    const std::string real = fs::canonical(path, error).string();
    if (error || !seen->insert(real).second) continue;
    const auto elf = ReadElf(real);
    if (!elf) continue;
    const bool registers = std::find(elf->imports.begin(), elf->imports.end(),
                                     "rocprofiler_register_library_api_table") != elf->imports.end();
    out->push_back({path, found_by, registers});
  }
}

// The folders in the loader's cache, from the output of `ldconfig -p`.
std::vector<std::string> CacheFolders() {
  std::set<std::string> folders;
  FILE* const out = ::popen("PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null", "re");
  if (out == nullptr) return {};
  char line[4096];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    const std::string text(line);
    const auto arrow = text.find("=> ");
    if (arrow == std::string::npos || text.find("x86-64") == std::string::npos) continue;
    const std::string path = text.substr(arrow + 3, text.find('\n') - arrow - 3);
    folders.insert(path.substr(0, path.rfind('/')));
  }
  ::pclose(out);
  return {folders.begin(), folders.end()};
}

}  // namespace

void GatherShim(const DoctorOptions& options, Facts* facts) {
  std::string given = options.shim;
  if (given.empty()) given = Variable(kShimVariable);
  // A shim that this environment preloads takes precedence over the installed one: its programs load it.
  for (const std::string& path : Split(Variable("LD_PRELOAD"), ": ")) {
    if (path.find('/') == std::string::npos) continue;
    if (::access(path.c_str(), R_OK) != 0) {
      facts->preloaded_missing.push_back(path);
    } else if (given.empty() && path.substr(path.rfind('/') + 1) == kShimName) {
      given = path;
    }
  }
  const Result<std::string> found = FindShim(given, ShimCandidates(OwnPath(), XSCHEDD_LIBRARY_DIR));
  if (!found) {
    facts->shim.reason = found.error().what;
    return;
  }
  facts->shim = ProbeShim(*found);
  if (const auto elf = ReadElf(*found)) facts->shim_needs = elf->needs;
  std::string library = Variable("XSCHEDD_CLIENT_LIB");
  if (library.empty()) library = found->substr(0, found->rfind('/') + 1) + "libxschedd-client.so";
  facts->library = ProbeLibrary(library);
  if (const auto elf = ReadElf(library)) facts->library_needs = elf->needs;
}

void GatherRuntimes(const DoctorOptions& options, Facts* facts) {
  constexpr char kHip[] = "libamdhip64.so";
  constexpr char kCuda[] = "libcuda.so";
  std::set<std::string> seen;
  if (!options.hip.empty()) {
    const fs::path path(options.hip);
    FindRuntimes(path.parent_path().string(), path.filename().c_str(), "as given", &seen, &facts->hip);
  }
  const auto look = [&](const std::string& dir, const std::string& found_by) {
    FindRuntimes(dir, kHip, found_by, &seen, &facts->hip);
    FindRuntimes(dir, kCuda, found_by, &seen, &facts->cuda);
  };
  for (const std::string& dir : Split(Variable("LD_LIBRARY_PATH"), ":;"))
    look(dir, "LD_LIBRARY_PATH");
  for (const std::string& dir : CacheFolders())
    look(dir, "the loader's cache");
  const std::string rocm = Variable("ROCM_PATH");
  look((rocm.empty() ? "/opt/rocm" : rocm) + "/lib", rocm.empty() ? "/opt/rocm" : "ROCM_PATH");
}

void GatherSoftwareGpu(Facts* facts) {
  for (const std::string& dir : Split(Variable("LD_LIBRARY_PATH"), ":;")) {
    const std::string path = dir + "/libhsa-runtime64.so.1";
    if (::access(path.c_str(), R_OK) != 0) continue;
    if (IsSoftwareGpu(path)) facts->software_gpu = path;
    return;  // a program loads the first one
  }
}

}  // namespace xschedd::ctl
