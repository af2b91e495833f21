// The two listening sockets: made in the runtime folder, or handed over by systemd, which may add a third, for metrics.
//
// One daemon a folder: it holds a lock on <dir>/lock while it lives. A socket file without a lock holder is left over
// from a dead daemon and is replaced. Thread rule: values; main, before and after the loop runs.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/service_manager/service_protocol.h"

namespace xschedd {

class ListeningSockets {
 public:
  // Makes the folders if need be (0755), takes the lock, binds both sockets (common/runtime_dir.h). Where `passed` has
  // sockets (named "client" and "admin") takes those out of it. As root: client.sock 0666, admin.sock 0660 with group
  // xschedd where that exists; else both belong to the user alone.
  static Result<ListeningSockets> Open(const std::string& runtime_dir, std::vector<PassedDescriptor>& passed);

  const std::string& RuntimeDir() const { return runtime_dir_; }
  int Client() const { return client_.Get(); }
  int Admin() const { return admin_.Get(); }
  // Handed over by systemd as "metrics"; not valid: it was not. To be asked once.
  UniqueFd TakeMetrics() { return std::move(metrics_); }

  // Removes the sockets that Open made. What systemd made is systemd's; and the clients' folder stays, since containers
  // may have it.
  void Remove();

 private:
  std::string runtime_dir_;
  UniqueFd lock_;
  UniqueFd client_;
  UniqueFd admin_;
  UniqueFd metrics_;
  bool made_files_ = false;
};

}  // namespace xschedd
