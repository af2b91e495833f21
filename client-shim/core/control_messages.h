// The control plane as the agent sees it: the messages to and from the daemon in plain types, independent of what
// carries them (session/grpc_stream.h). Thread rule: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client-shim/core/device_tracker.h"

namespace xschedd::shim {

struct HelloMessage {
  std::string token;
  std::string group;
  std::optional<int> priority;
  std::string runtime;
  std::string route;
  std::optional<std::uint32_t> weight;
  std::optional<std::uint64_t> deadline_us;
  std::string latency;
  std::uint64_t memory_limit = 0;  // the process's own, bytes; 0: none
};
struct DeviceMessage {
  std::uint32_t slot = 0;
  std::string pci_address;
  std::string name;
  std::uint32_t compute_units = 0;
  std::string vendor;
  std::string uuid;
  bool is_under_mps = false;
};
struct QueueCreatedMessage {
  std::uint64_t queue = 0;
  std::uint32_t slot = 0;
  int native_priority = 0;
  std::uint32_t flags = 0;
};
struct QueueDestroyedMessage {
  std::uint64_t queue = 0;
};
struct HintMessage {  // a field without a value stays as it is
  std::optional<int> priority;
  std::optional<std::uint32_t> weight;
  std::optional<std::uint64_t> deadline_us;
  std::optional<std::uint64_t> queue;
};
struct ActivityMessage {
  struct Queue {
    std::uint64_t queue = 0;
    std::uint32_t slot = 0;
    std::uint64_t launches = 0;
    std::uint64_t completions = 0;
  };
  std::uint64_t time_ns = 0;
  std::vector<Queue> queues;
  std::vector<std::pair<std::string, std::uint64_t>> passed;  // by passthrough rule
};
struct QueuePrioritiesMessage {
  QueuePriority priority = QueuePriority::kProgram;
  QueuePriorityReport report = {};
  bool operator==(const QueuePrioritiesMessage&) const = default;
};
using OutgoingMessage = std::variant<HelloMessage, DeviceMessage, QueueCreatedMessage, QueueDestroyedMessage,
                                     HintMessage, ActivityMessage, QueuePrioritiesMessage>;

struct SessionConfiguration {
  std::vector<std::string> passthrough;
  std::uint32_t activity_interval_ms = 0;
  QueuePriority queue_priority = QueuePriority::kProgram;
};
struct WelcomeMessage {
  std::uint64_t client_id = 0;
  int effective_priority = 0;
  SessionConfiguration configuration;
  std::uint64_t monotonic_ns = 0;  // the daemon's CLOCK_MONOTONIC when it sent this; 0: not sent
};
struct NoticeMessage {
  std::string text;
};
struct EndMessage {
  std::string reason;
  bool is_refusal = false;  // the daemon refused the client; else it is merely gone
};
struct RoomMessage {};  // not of the daemon: there is room for messages again
using IncomingMessage = std::variant<WelcomeMessage, NoticeMessage, SessionConfiguration, EndMessage, RoomMessage>;

}  // namespace xschedd::shim
