// The two listening sockets: made in the runtime folder, or handed over by systemd, which may add a third, for metrics.
//
// One daemon per folder: it holds a lock on <dir>/lock while it lives, so a socket file that it finds there is left
// over from a dead daemon, and is replaced. Thread rule: main, before and after the loop runs.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/service_manager/service_protocol.h"

namespace xschedd {

class ListeningSockets {
 public:
  // Makes the folders if needed (0755), takes the lock and binds both sockets (common/runtime_dir.h), unless `passed`
  // has sockets named "client" and "admin": then it takes those out of it. As root: client.sock 0666, admin.sock 0660
  // with group xschedd if that exists; otherwise only the daemon's user may connect.
  static Result<ListeningSockets> Open(const std::string& runtime_dir, std::vector<PassedDescriptor>& passed);

  const std::string& RuntimeDir() const { return runtime_dir_; }
  int Client() const { return client_.Get(); }
  int Admin() const { return admin_.Get(); }
  // The socket that systemd passed as "metrics"; invalid: it passed none, or it was taken already.
  UniqueFd TakeMetrics() { return std::move(metrics_); }

  // Removes the sockets that Open made. systemd's own stay, and so does the clients' folder, which containers may have
  // mounted.
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
