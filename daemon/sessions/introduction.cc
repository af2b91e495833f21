#include "daemon/sessions/introduction.h"

#include <algorithm>
#include <utility>

#include "daemon/registry/limits.h"
#include "daemon/registry/process.h"
#include "daemon/registry/process_key.h"

namespace xschedd {
namespace {

// Hints that both messages carry.
template <typename Message>
Hints CommonHintsOf(const Message& message) {
  Hints hints;
  if (message.has_weight()) hints.weight = message.weight();
  hints.latency = LatencyFrom(message.latency());
  if (message.has_deadline_us()) hints.deadline_us = message.deadline_us();
  return hints;
}

}  // namespace

Hints HintsOf(const v1::Hello& hello) {
  Hints hints = CommonHintsOf(hello);
  if (hello.has_priority_hint()) hints.priority = hello.priority_hint();
  return hints;
}

Hints HintsOf(const v1::Hint& hint) {
  Hints hints = CommonHintsOf(hint);
  if (hint.has_priority()) hints.priority = hint.priority();
  if (hint.has_queue()) hints.queue = hint.queue();
  return hints;
}

QueuePriorityReport ReportOf(const v1::QueuePriorities& report) {
  const policy::QueuePriority priority = report.priority() == v1::QUEUE_PRIORITY_HIGH ? policy::QueuePriority::kHigh
                                         : report.priority() == v1::QUEUE_PRIORITY_LOW
                                             ? policy::QueuePriority::kLow
                                             : policy::QueuePriority::kProgram;
  return {priority, report.queues(), std::min(report.queues(), report.in_force())};
}

v1::QueuePriority ToMessage(policy::QueuePriority priority) {
  switch (priority) {
    case policy::QueuePriority::kHigh:
      return v1::QUEUE_PRIORITY_HIGH;
    case policy::QueuePriority::kLow:
      return v1::QUEUE_PRIORITY_LOW;
    case policy::QueuePriority::kProgram:
      break;
  }
  return v1::QUEUE_PRIORITY_UNSPECIFIED;
}

NewDevice DeviceOf(const v1::DeviceAttached& device) {
  return {.slot = device.slot(),
          .pci_address = device.pci_address(),
          .name = CleanText(device.name(), kMaxNameBytes),
          .vendor = CleanText(device.vendor(), kMaxVendorBytes),
          .compute_units = device.compute_units(),
          .uuid = CleanText(device.uuid(), kMaxNameBytes),
          .is_under_mps = device.is_under_mps()};
}

NewClient Introduce(Connection& connection, const v1::Hello& hello, const RoleGroups& groups) {
  const PeerIdentity& peer = connection.peer;
  const int pidfd = connection.PidFd();
  ProcessInfo process = ReadProcess(peer.pid, pidfd);
  NewClient fresh;
  fresh.identity.pid = static_cast<std::uint64_t>(peer.pid);
  fresh.identity.uid = peer.uid;
  fresh.identity.gid = peer.gid;
  fresh.identity.exe = std::move(process.exe);
  fresh.identity.cgroup = std::move(process.cgroup);
  fresh.identity.is_cgroup_exact = process.is_cgroup_exact;
  fresh.identity.place = std::move(process.place);
  fresh.identity.claim_socket = connection.origin.claim_socket;
  fresh.identity.may_raise = MayRaise(peer, connection.origin, groups);
  fresh.identity.key = ReadProcessKey(peer.pid, pidfd);
  fresh.group_name = CleanText(hello.group(), kMaxGroupNameBytes);
  fresh.hints = HintsOf(hello);
  fresh.runtime = CleanText(hello.runtime(), kMaxWordBytes);
  fresh.route = CleanText(hello.route(), kMaxWordBytes);
  fresh.version = CleanText(hello.client_version(), kMaxWordBytes);
  fresh.own_memory_limit = hello.memory_limit();
  fresh.channel = connection.channel.get();
  return fresh;
}

}  // namespace xschedd
