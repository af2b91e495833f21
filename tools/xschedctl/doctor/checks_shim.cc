// Whether programs can load the shim, and the shim its private library.
#include "tools/xschedctl/doctor/checks.h"

namespace xschedd::ctl {
namespace {

bool IsTooOld(const std::optional<GlibcVersion>& has, const std::optional<GlibcVersion>& needs) {
  return has && needs && *has < *needs;
}

}  // namespace

Findings CheckShim(const Facts& facts) {
  if (facts.shim.path.empty()) return {Broken(facts.shim.reason, "install xschedd's client, or give --shim PATH")};
  if (!facts.shim.is_loaded) {
    return {Broken(facts.shim.path + " cannot be loaded: " + facts.shim.reason,
                   "install the shim of this machine's architecture and release")};
  }
  return {Ok("libxschedd-shim.so is at " + facts.shim.path)};
}

Findings CheckLibrary(const Facts& facts) {
  const LoadFacts& library = facts.library;
  if (library.path.empty()) return {};  // no shim, beside which it would be
  if (!library.is_loaded) {
    std::string fix = "install libxschedd-client.so beside libxschedd-shim.so";
    if (IsTooOld(facts.glibc, facts.library_needs)) {
      fix = "this C library is glibc " + Text(facts.glibc) + ", and it needs " + Text(facts.library_needs) +
            ": build xschedd on a system as old as this one";
    }
    return {Broken("GPU programs run unscheduled: " + library.path + " cannot be loaded: " + library.reason, fix)};
  }
  if (library.interface != facts.interface_version) {
    return {Broken("GPU programs run unscheduled: " + library.path + " has interface " +
                       std::to_string(library.interface) + ", this release has " +
                       std::to_string(facts.interface_version),
                   "install both libraries from one package")};
  }
  return {Ok("loads as the shim loads it: " + library.path + " (interface " + std::to_string(library.interface) + ")")};
}

Findings CheckPreload(const Facts& facts) {
  Findings findings;
  for (const std::string& path : facts.preloaded_missing) {
    findings.push_back(Broken("LD_PRELOAD names " + path + ", which does not exist: the loader ignores it",
                              "correct the path, or use xschedctl run"));
  }
  return findings;
}

Findings CheckRoot(const Facts& facts) {
  if (!facts.root) return {};
  const RootFacts& root = *facts.root;
  Findings findings;
  const auto mount = [&](const std::string& path) {
    return "bind-mount " + path.substr(0, path.rfind('/')) + " into it";
  };
  if (!root.has_shim && !facts.shim.path.empty()) {
    findings.push_back(Broken(root.dir + " lacks " + facts.shim.path, mount(facts.shim.path)));
  }
  if (!root.has_library && !facts.library.path.empty()) {
    findings.push_back(Broken(root.dir + " lacks " + facts.library.path, mount(facts.library.path)));
  }
  if (!root.has_client_socket) {
    findings.push_back(Broken(root.dir + " lacks " + facts.client_socket.path + ": its programs find no daemon",
                              MountClientFolder(facts.client_socket.path)));
  }
  if (!root.glibc) {
    findings.push_back(Broken(root.dir + " has no glibc that could be found: the shim needs one",
                              "use an image with glibc (not musl)"));
  } else if (IsTooOld(root.glibc, facts.shim_needs)) {
    findings.push_back(
        Broken(root.dir + " has glibc " + Text(root.glibc) + ", the shim needs " + Text(facts.shim_needs),
               "use a newer image"));
  } else if (IsTooOld(root.glibc, facts.library_needs)) {
    findings.push_back(Broken(root.dir + " has glibc " + Text(root.glibc) + ", the private library needs " +
                                  Text(facts.library_needs) + ": programs there run unscheduled",
                              "use a newer image, or build xschedd on a system as old"));
  }
  if (findings.empty()) {
    findings.push_back(Ok(root.dir + " has the shim, its library, the daemon's socket and glibc " + Text(root.glibc)));
  }
  return findings;
}

}  // namespace xschedd::ctl
