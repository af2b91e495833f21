#include "tools/xschedctl/doctor/gather_process.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "tools/xschedctl/doctor/elf_file.h"
#include "tools/xschedctl/file_text.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {
namespace {

constexpr char kLibraryName[] = "libxschedd-client.so";

// Below /proc/PID/root the kernel resolves an absolute symbolic link from this process's own root.
bool IsThere(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

std::optional<GlibcVersion> GlibcBelow(const std::string& dir) {
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
                           "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"}) {
    if (const auto elf = ReadElf(dir + path); elf && elf->defines) return elf->defines;
  }
  return std::nullopt;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat one;
  struct stat other;
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_ino == other.st_ino &&
         one.st_dev == other.st_dev;
}

}  // namespace

bool IsSoftwareGpu(const std::string& path) {
  // AMD's own library does not contain this name.
  return FileText(path).find("SOFTGPU_NAME") != std::string::npos;
}

void ReadMaps(const std::string& maps, ProcessFacts* facts) {
  std::size_t at = 0;
  while (at < maps.size()) {
    const std::size_t end = std::min(maps.find('\n', at), maps.size());
    const std::string line = maps.substr(at, end - at);
    at = end + 1;
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    const std::string name = path.substr(path.rfind('/') + 1);
    facts->maps_shim |= name.rfind(kShimName, 0) == 0;
    facts->maps_library |= name.rfind(kLibraryName, 0) == 0;
    if (name.rfind("libhsa-runtime64.so", 0) == 0) facts->maps_hsa = path;
    if (name.rfind("libamdhip64.so", 0) == 0 || name.rfind("libcuda.so", 0) == 0) facts->maps_runtime = path;
  }
}

std::map<std::string, std::string> ParseEnvironment(const std::string& block) {
  std::map<std::string, std::string> environment;
  std::size_t at = 0;
  while (at < block.size()) {
    const std::size_t end = std::min(block.find('\0', at), block.size());
    const std::string entry = block.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = entry.find('=');
    // Of two entries with one name the first counts.
    if (equals != std::string::npos) environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

RootFacts GatherRoot(const std::string& dir, const std::string& shim, const std::string& library,
                     const std::string& client_socket) {
  RootFacts facts;
  facts.dir = dir;
  facts.has_shim = !shim.empty() && IsThere(dir + shim);
  facts.has_library = !library.empty() && IsThere(dir + library);
  facts.has_client_socket = IsThere(dir + client_socket);
  facts.glibc = GlibcBelow(dir);
  return facts;
}

ProcessFacts GatherProcess(std::uint64_t pid, const std::string& shim, const std::string& client_socket) {
  const std::string proc = "/proc/" + std::to_string(pid);
  ProcessFacts facts;
  facts.pid = pid;
  facts.exists = IsThere(proc);
  if (!facts.exists) return facts;
  std::error_code ignored;
  facts.exe = std::filesystem::read_symlink(proc + "/exe", ignored).string();
  bool has_maps = false;
  bool has_environment = false;
  const std::string maps = FileText(proc + "/maps", &has_maps);
  facts.environment = ParseEnvironment(FileText(proc + "/environ", &has_environment));
  facts.is_readable = has_maps && has_environment && !facts.exe.empty();
  if (!facts.is_readable) return facts;
  ReadMaps(maps, &facts);
  facts.has_software_gpu = !facts.maps_hsa.empty() && IsSoftwareGpu(proc + "/root" + facts.maps_hsa);
  if (const auto elf = ReadElf(proc + "/exe")) facts.is_static = !elf->has_interpreter;
  struct stat status;
  if (::stat((proc + "/exe").c_str(), &status) == 0) facts.is_privileged = (status.st_mode & (S_ISUID | S_ISGID)) != 0;
  facts.is_privileged |= ::getxattr((proc + "/exe").c_str(), "security.capability", nullptr, 0) > 0;
  facts.other_root = !IsSameFile(proc + "/ns/mnt", "/proc/self/ns/mnt") || !IsSameFile(proc + "/root", "/");
  // Paths in the process's own environment take precedence.
  const auto value_of = [&](const char* name, const std::string& otherwise) {
    const auto found = facts.environment.find(name);
    return found != facts.environment.end() && !found->second.empty() ? found->second : otherwise;
  };
  std::string its_shim = shim;
  const std::string preload = value_of("LD_PRELOAD", "");
  if (const auto at = preload.find(kShimName); at != std::string::npos) {
    const auto first = preload.find_last_of(": ", at);
    const auto begin = first == std::string::npos ? 0 : first + 1;
    its_shim = preload.substr(begin, preload.find_first_of(": ", at) - begin);
  }
  const std::string its_library = its_shim.substr(0, its_shim.rfind('/') + 1) + kLibraryName;
  const std::string its_dir = value_of("XSCHEDD_RUNTIME_DIR", "");
  const std::string its_socket = its_dir.empty() ? client_socket : its_dir + "/client.sock";
  facts.root = GatherRoot(proc + "/root", its_shim, value_of("XSCHEDD_CLIENT_LIB", its_library), its_socket);
  return facts;
}

}  // namespace xschedd::ctl
