// The daemon's claims, as the plugin needs them. Thread rule: one user at a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "claim.pb.h"
#include "common/result.h"

namespace xschedd::nri {

class Claims {
 public:
  virtual ~Claims() = default;
  // Each returns or fails soon, whatever the daemon does.
  virtual Result<void> Put(const v1::Claim& claim) = 0;
  // Succeeds for a claim that does not exist.
  virtual Result<void> Delete(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> Names() = 0;
};

// Over admin.sock, with a connection for each call, so that it survives restarts of the daemon. When the daemon has not
// answered, calls fail at once for a moment, so that many pods do not wait one after the other.
class DaemonClaims : public Claims {
 public:
  // A pod's start waits for at most two calls, its own and one that had begun: 200 ms.
  static constexpr std::chrono::milliseconds kLimit{90};
  static constexpr std::chrono::seconds kPause{1};

  explicit DaemonClaims(std::string runtime_dir) : runtime_dir_(std::move(runtime_dir)) {}
  Result<void> Put(const v1::Claim& claim) override;
  Result<void> Delete(const std::string& name) override;
  Result<std::vector<std::string>> Names() override;

 private:
  template <typename Method, typename Request, typename Answer>
  Result<bool> Call(Method method, const Request& request, Answer& answer);

  std::string runtime_dir_;
  std::chrono::steady_clock::time_point silent_until_{};
};

}  // namespace xschedd::nri
