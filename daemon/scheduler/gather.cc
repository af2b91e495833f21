#include "daemon/scheduler/gather.h"

#include <algorithm>
#include <limits>

namespace xschedd {

std::uint32_t DefaultMaxConcurrent(const Device& device) {
  return device.vendor == "amd" ? 0 : 1;
}

Gathered& Gatherer::Gather(Device& start, const policy::Settings& settings, std::uint64_t now_ns) {
  ++epoch_;
  now_ns_ = now_ns;
  gathered_.state.settings = settings;
  gathered_.state.devices.clear();
  gathered_.state.groups.clear();
  gathered_.state.tenants.clear();
  gathered_.devices.clear();
  gathered_.groups.clear();
  gathered_.attachments.clear();
  VisitDevice(start);
  // The list grows while it is walked: each device brings its groups, each group its other devices.
  for (std::size_t i = 0; i < gathered_.devices.size(); ++i) {
    for (Attachment* attachment : gathered_.devices[i]->attachments) {
      if (attachment->client->channel != nullptr) VisitGroup(*attachment->client->group);
    }
  }
  return gathered_;
}

void Gatherer::VisitDevice(Device& device) {
  if (device.visited == epoch_) return;
  device.visited = epoch_;
  device.index = static_cast<std::uint32_t>(gathered_.devices.size());
  gathered_.devices.push_back(&device);
  gathered_.state.devices.push_back({DefaultMaxConcurrent(device)});
}

void Gatherer::VisitGroup(Group& group) {
  if (group.visited == epoch_) return;
  group.visited = epoch_;
  group.index = static_cast<std::uint32_t>(gathered_.groups.size());
  gathered_.groups.push_back(&group);

  policy::Group view;
  view.id = group.id;
  view.priority = std::numeric_limits<int>::min();
  view.weight = 0;
  view.memory = group.memory;
  for (Client* client : group.clients) {
    if (client->channel == nullptr) continue;
    view.priority = std::max(view.priority, client->effective.priority);
    view.weight = std::max(view.weight, client->effective.weight);
    view.hold = view.hold || client->hold;
    for (const auto& [slot, attachment] : client->attachments) {
      VisitDevice(*attachment->device);
      gathered_.attachments.push_back(attachment.get());
      gathered_.state.tenants.push_back(View(*attachment, group));
    }
  }
  gathered_.state.groups.push_back(view);
}

policy::Tenant Gatherer::View(Attachment& attachment, const Group& group) const {
  // An idle client's counter stands still; it was read when it became idle.
  if (attachment.busy) {
    attachment.gpu.Read(attachment.client->channel->Ledger().GpuTimeNs(attachment.slot), now_ns_);
  }
  return {.client = attachment.client->id,
          .group = group.index,
          .device = attachment.device->index,
          .busy = attachment.busy,
          .idle_since_ns = attachment.idle_since_ns,
          .busy_since_ns = attachment.busy ? attachment.busy_since_ns : 0,
          .ran_ns = attachment.gpu.TakeRanNs(),
          .burst_ns = attachment.gpu.BurstNs(),
          .usual_ns = attachment.gpu.UsualNs(),
          .deadline_ns = attachment.deadline_ns,
          .deadline_after_ns = attachment.deadline_after_ns};
}

}  // namespace xschedd
