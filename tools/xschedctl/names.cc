#include "tools/xschedctl/names.h"

namespace xschedd::ctl {

std::string_view Name(v1::ClientState state) {
  switch (state) {
    case v1::CLIENT_STATE_UNTRACKED:
      return "untracked";
    case v1::CLIENT_STATE_IDLE:
      return "idle";
    case v1::CLIENT_STATE_RUNNING:
      return "running";
    case v1::CLIENT_STATE_HELD:
      return "held";
    case v1::CLIENT_STATE_OBSERVED:
      return "observed";
    case v1::CLIENT_STATE_PASSING:
      return "passing";
    case v1::CLIENT_STATE_SILENT:
      return "silent";
    default:
      return "unknown";
  }
}

std::string_view Name(v1::PrioritySource source) {
  switch (source) {
    case v1::PRIORITY_SOURCE_UNSPECIFIED:
      return "default";
    case v1::PRIORITY_SOURCE_ADMIN:
      return "admin";
    case v1::PRIORITY_SOURCE_RULE:
      return "rule";
    case v1::PRIORITY_SOURCE_HINT:
      return "hint";
    case v1::PRIORITY_SOURCE_OWNER:
      return "owner";
    case v1::PRIORITY_SOURCE_GROUP:
      return "group";
    case v1::PRIORITY_SOURCE_CLAIM:
      return "claim";
    default:
      return "unknown";
  }
}

std::string_view Name(v1::EventKind kind) {
  switch (kind) {
    case v1::EVENT_KIND_CLIENT_CONNECTED:
      return "connected";
    case v1::EVENT_KIND_CLIENT_GONE:
      return "gone";
    case v1::EVENT_KIND_BUSY:
      return "busy";
    case v1::EVENT_KIND_IDLE:
      return "idle";
    case v1::EVENT_KIND_HELD:
      return "held";
    case v1::EVENT_KIND_OPENED:
      return "opened";
    case v1::EVENT_KIND_PRIORITY:
      return "priority";
    case v1::EVENT_KIND_HOLD:
      return "hold";
    case v1::EVENT_KIND_RELEASE:
      return "release";
    case v1::EVENT_KIND_POLICY:
      return "policy";
    case v1::EVENT_KIND_REFUSED:
      return "refused";
    case v1::EVENT_KIND_RELOADED:
      return "reloaded";
    case v1::EVENT_KIND_DEVICE_ATTACHED:
      return "device";
    case v1::EVENT_KIND_QUEUE_CREATED:
      return "queue-created";
    case v1::EVENT_KIND_QUEUE_DESTROYED:
      return "queue-destroyed";
    case v1::EVENT_KIND_LOST:
      return "lost";
    case v1::EVENT_KIND_LATE:
      return "late";
    case v1::EVENT_KIND_LIVE:
      return "live";
    case v1::EVENT_KIND_TRACKED:
      return "tracked";
    case v1::EVENT_KIND_UNTRACKED:
      return "untracked";
    case v1::EVENT_KIND_WEIGHT:
      return "weight";
    case v1::EVENT_KIND_SILENT:
      return "silent";
    case v1::EVENT_KIND_LEVER:
      return "lever";
    case v1::EVENT_KIND_CLAIM:
      return "claim";
    case v1::EVENT_KIND_MEMORY:
      return "memory";
    default:
      return "unknown";
  }
}

}  // namespace xschedd::ctl
