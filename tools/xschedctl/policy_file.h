// conf.d/50-policy.toml beside the daemon's configuration: what `policy set --persist` has set, so that it is in force
// after a restart. Only xschedctl writes this file, and keeps no comments in it. Thread rule: one thread; a lock
// excludes other xschedctl processes.
#pragma once

#include <optional>
#include <string>

#include "admin.pb.h"
#include "common/result.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/admin_client.h"

namespace xschedd::ctl {

// The file's new text: `before` with what the request sets. Fails if `before` is not a configuration, or contains more
// than the policy. `path` is for the messages.
Result<std::string> PolicyFileText(const std::string& before, const v1::SetPolicyRequest& request,
                                   const std::string& path);

// One change of the file, whole or not at all. Until Keep is called, the destructor restores the previous file.
class PolicyFile {
 public:
  // Makes `folder` if it does not exist.
  static Outcome<PolicyFile> Change(const std::string& folder, const v1::SetPolicyRequest& request);
  PolicyFile(PolicyFile&& other) noexcept;
  PolicyFile& operator=(PolicyFile&&) = delete;
  ~PolicyFile();

  const std::string& Path() const { return path_; }
  void Keep() { is_kept_ = true; }

 private:
  PolicyFile() = default;
  Outcome<std::string> Open();
  Outcome<void> Write(const std::string& text);
  Failure Failed(const std::string& what) const;

  std::string folder_name_;
  std::string path_;
  UniqueFd folder_;
  bool made_folder_ = false;
  bool is_written_ = false;
  bool is_kept_ = false;
  std::optional<std::string> before_;  // none: there was no file
};

}  // namespace xschedd::ctl
