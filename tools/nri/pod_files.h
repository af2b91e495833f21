// The annotations of running pods, from the files that the kubelet keeps up to date for them: NRI has no event for a
// changed annotation. A pod has such a file if it has a downward API volume of the name below, found by the pod's
// uid. What the file says is what the API server has, and no container can write it. Nevertheless nothing outside the
// volume is ever read: links that lead out of it are not followed, and only a regular file is read. Thread rule: one
// thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"
#include "tools/nri/annotations.h"

namespace xschedd::nri {

inline constexpr char kDefaultKubeletDir[] = "/var/lib/kubelet";
inline constexpr char kAnnotationsVolume[] = "xschedd-annotations";
inline constexpr char kAnnotationsFile[] = "annotations";

class PodFiles {
 public:
  explicit PodFiles(std::string kubelet_dir);

  // The annotations that the pod has now; later changes are reported by Changed. nullopt: it has no such volume.
  Result<std::optional<Annotations>> Follow(const std::string& pod_uid);
  void Forget(const std::string& pod_uid);

  // Readable when a file may have changed; -1: files cannot be watched on this host.
  int Fd() const { return inotify_.Get(); }
  // The uids of the pods whose files may have changed since the last call. `every`: also those that cannot be watched.
  std::vector<std::string> Changed(bool every);

 private:
  // -1: it cannot be watched.
  int Watch(int folder);

  std::string kubelet_dir_;
  UniqueFd inotify_;
  std::map<std::string, int> watches_;  // by pod; the same numbers as inotify's
};

}  // namespace xschedd::nri
