#include "tools/xschedctl/cdi.h"

#include <nlohmann/json.hpp>

#include "common/runtime_dir.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json Mount(const std::string& host, const std::string& inside) {
  // "ro" keeps files from being written; sockets can still be connected.
  return {{"hostPath", host}, {"containerPath", inside}, {"options", {"ro", "nosuid", "nodev", "bind"}}};
}

}  // namespace

Result<std::string> CdiSpecification(const std::string& shim, const std::string& runtime_dir) {
  const Result<std::string> preload = ComposePreload(shim, "");
  if (!preload) return tl::unexpected(preload.error());
  const std::string shim_folder = shim.substr(0, shim.rfind('/'));
  const Json edits = {
      {"env", {"LD_PRELOAD=" + *preload}},
      {"mounts", {Mount(ClientFolder(runtime_dir), kDefaultRuntimeDir), Mount(shim_folder, shim_folder)}}};
  const Json device = {{"name", "any"}, {"containerEdits", edits}};
  const Json specification = {
      {"cdiVersion", "0.5.0"}, {"kind", "xschedd.io/client"}, {"devices", Json::array({device})}};
  return specification.dump(2) + "\n";
}

}  // namespace xschedd::ctl
