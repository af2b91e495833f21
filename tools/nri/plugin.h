// What the plugin does with the engine's calls: a claim, its mounts and LD_PRELOAD for a container that is created, and
// the claim's end when the container is gone. A claim follows its pod's annotations where the kubelet keeps a file of
// them. It answers each call soon, and never refuses a container: if
// something cannot be done, a line says so, and the container starts as without xschedd. Thread rule: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nri.pb.h"
#include "tools/nri/claims.h"
#include "tools/nri/pod_files.h"
#include "tools/nri/settings.h"
#include "tools/nri/translate.h"

namespace xschedd::nri {

// A ttrpc response: a status with gRPC's numbers, and the payload.
struct Answer {
  enum Code { kOk = 0, kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12 };
  Code code = kOk;
  std::string message;
  std::string payload;
};

// Where things are on the node.
struct NodePaths {
  std::string runtime_dir;
  std::string settings;
  std::string shim;  // empty: none was found
  std::string kubelet_dir = kDefaultKubeletDir;
};

class Plugin {
 public:
  using Say = std::function<void(const std::string& line)>;
  Plugin(NodePaths paths, Claims& claims, Say say);

  // A call of the service nri.pkg.api.v1alpha1.Plugin.
  Answer Handle(std::string_view method, const std::string& payload);

  // Between calls: does one of the things that no call waits for, such as deleting a claim. Returns for how long
  // there is nothing more to do.
  std::chrono::milliseconds Work(std::chrono::steady_clock::time_point now);
  // When it can be read, Work has something to do at once; -1: there is no such descriptor.
  int WakeFd() const { return files_.Fd(); }

 private:
  struct Live {
    api::PodSandbox pod;             // what names it, and its annotations for xschedd
    api::Container container;        // what names it
    v1::Claim claim;                 // without a name: it may have none
    std::vector<std::string> lines;  // what was last reported about its annotations
    std::string fault;               // why its claim could not be put again, as last reported
  };

  api::CreateContainerResponse Create(const api::PodSandbox& pod, const api::Container& container);
  void Adjust(const api::Container& container, const std::string& claim, const std::string& shim,
              const std::string& preload, api::ContainerAdjustment& adjustment) const;
  api::SynchronizeResponse Synchronize(const api::SynchronizeRequest& request);
  void EndContainer(const std::string& id);
  void EndPod(const std::string& id);
  void HandleEvent(api::Event event, const api::PodSandbox& pod, const api::Container& container);
  const Settings& CurrentSettings();
  void Remember(const api::Container& container);
  bool CompareWithDaemon();
  bool ReadAnnotations(api::PodSandbox& pod);
  void ForgetUnused(const std::string& pod_uid);
  void FollowChanges(bool every);
  void Renew(const std::string& id, Live& live);
  // The next one that waits. False: it failed, and still waits.
  bool PutNext();
  bool DeleteNext();

  NodePaths paths_;
  Claims& claims_;
  Say say_;
  Settings settings_;
  std::string settings_fault_;          // what was last reported
  std::map<std::string, Live> live_;    // by container: those that have, or may have, a claim
  std::map<std::string, Live> synced_;  // the same, of a list that is still arriving
  std::map<std::string, api::PodSandbox> synced_pods_;
  std::set<std::string> ended_;   // claims to delete
  std::set<std::string> to_put_;  // containers whose claims have changed, or the daemon has lost
  std::string tried_;             // of these, the last one
  bool deletes_next_ = false;
  PodFiles files_;
  std::map<std::string, std::string> file_faults_;  // by pod's uid: what was last reported
  bool must_compare_ = false;                       // claims of containers that are gone may remain
  std::chrono::steady_clock::time_point next_compare_{};
  std::chrono::steady_clock::time_point next_try_{};
};

}  // namespace xschedd::nri
