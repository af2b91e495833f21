#include "tools/xschedctl/client_filter.h"

#include <algorithm>

namespace xschedd::ctl {

bool ClientFilter::IsByPidAlone() const {
  return !selector_.has_uid() && !selector_.has_group() && !selector_.has_cgroup() && !selector_.has_exe();
}

bool ClientFilter::Fits(const v1::Event& event) {
  if (selector_.all()) return true;
  if (event.client_id() == 0) return event.kind() == v1::EVENT_KIND_LOST;
  const auto& pids = selector_.pid();
  if (!pids.empty() && std::find(pids.begin(), pids.end(), event.pid()) == pids.end()) return false;
  if (IsByPidAlone()) return true;
  // The last answer already covers events before it.
  if (event.time_ns() >= asked_ns_ && fitting_.count(event.client_id()) == 0) {
    v1::ListClientsRequest request;
    *request.mutable_selector() = selector_;
    if (const auto answer = client_.Call(request)) {
      for (const v1::Client& one : answer->clients())
        fitting_.insert(one.id());
      asked_ns_ = answer->time_ns();
    }
  }
  return fitting_.count(event.client_id()) != 0;
}

}  // namespace xschedd::ctl
