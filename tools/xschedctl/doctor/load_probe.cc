#include "tools/xschedctl/doctor/load_probe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client-shim/core/interface.h"
#include "common/unique_fd.h"

namespace xschedd::ctl {
namespace {

// The child's answer: "+0.1.0" (for the client library the interface's number comes first: "+3 0.1.0") or "-reason".
using Inspect = std::string (*)(void* library);

std::string InspectLibrary(void* library) {
  if (dlsym(library, shim::kStartSymbol) == nullptr) return "-it does not export " + std::string(shim::kStartSymbol);
  const auto* about = static_cast<const shim::LibraryAbout*>(dlsym(library, shim::kAboutSymbol));
  if (about == nullptr) return "-it is of an older release";
  return "+" + std::to_string(about->interface_version) + " " + about->release;
}

std::string InspectShim(void* library) {
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "xschedd_version"));
  return version == nullptr ? "-it does not export xschedd_version" : "+" + std::string(version());
}

[[noreturn]] void Child(const std::string& path, int flags, Inspect inspect, int out) {
  void* const library = dlopen(path.c_str(), flags);
  const char* const why = library == nullptr ? dlerror() : nullptr;
  const std::string answer =
      library != nullptr ? inspect(library) : "-" + std::string(why != nullptr ? why : "no reason");
  [[maybe_unused]] const ssize_t written = ::write(out, answer.data(), answer.size());
  ::_exit(0);
}

// The child's answer, or "-" and how it failed.
std::string Probe(const std::string& path, int flags, Inspect inspect) {
  int ends[2];
  if (::pipe(ends) != 0) return "-cannot make a pipe: " + std::string(std::strerror(errno));
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return "-cannot start a process: " + std::string(std::strerror(errno));
  if (child == 0) Child(path, flags, inspect, out.Get());
  out = UniqueFd();
  std::string answer;
  char buffer[512];
  for (ssize_t size = 0; (size = ::read(in.Get(), buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(size));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "-loading it ends the process by signal " + std::to_string(WTERMSIG(status));
  return answer.empty() ? "-loading it ends the process" : answer;
}

}  // namespace

LoadFacts ProbeLibrary(const std::string& path) {
  const std::string answer = Probe(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, InspectLibrary);
  LoadFacts facts{path, answer[0] == '+', {}, {}, 0};
  if (!facts.is_loaded) {
    facts.reason = answer.substr(1);
    return facts;
  }
  facts.interface = static_cast<std::uint32_t>(std::atol(answer.c_str() + 1));
  facts.version = answer.substr(answer.find(' ') + 1);
  return facts;
}

LoadFacts ProbeShim(const std::string& path) {
  const std::string answer = Probe(path, RTLD_NOW | RTLD_LOCAL, InspectShim);
  const bool is_loaded = answer[0] == '+';
  return {path, is_loaded, is_loaded ? std::string() : answer.substr(1), is_loaded ? answer.substr(1) : std::string(),
          0};
}

}  // namespace xschedd::ctl
