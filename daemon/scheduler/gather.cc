#include "daemon/scheduler/gather.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/scheduler/share_owner.h"

namespace xschedd {
namespace {

void Clear(Cluster& cluster) {
  cluster.by_payer.clear();
  cluster.owners.clear();
  cluster.state.devices.clear();
  cluster.state.groups.clear();
  cluster.state.tenants.clear();
  cluster.devices.clear();
  cluster.groups.clear();
  cluster.attachments.clear();
  cluster.gates.clear();
  cluster.counters.clear();
  cluster.counted_ns.clear();
  cluster.launch_counters.clear();
  cluster.launches.clear();
  cluster.in_flight.clear();
  cluster.touched.clear();
  cluster.fresh.clear();
}

// Gives the attachment the cluster's last value of its counter.
void ReadGpuTime(Cluster& cluster, std::size_t i, std::uint64_t now_ns) {
  Attachment& attachment = *cluster.attachments[i];
  attachment.gpu.Read(cluster.counted_ns[i], now_ns);
}

void TakeGpuTime(Cluster& cluster, std::size_t i) {
  Attachment& attachment = *cluster.attachments[i];
  cluster.state.tenants[i].ran_ns = attachment.gpu.TakeRanNs();
}

// Adds the launches since the last read, and notes whether any is in flight. A client may write anything there: a value
// below the last one adds nothing.
void TakeLaunches(Cluster& cluster, std::size_t i) {
  policy::Tenant& tenant = cluster.state.tenants[i];
  const std::uint64_t launches = cluster.launch_counters[i].Read();
  tenant.launched += launches - std::min(launches, cluster.launches[i]);
  cluster.launches[i] = launches;
  tenant.is_in_flight = tenant.busy && cluster.in_flight[i].Read() != 0;
}

std::uint64_t BurstNs(const Attachment& attachment, std::uint64_t now_ns) {
  return attachment.deadline_ns == 0 ? 0 : attachment.burst.OpenNs(now_ns, attachment.held_since_ns);
}

// Of all its clients. Beside one that is not, the server as a whole gets turns from the driver.
bool IsUnderMps(const Device& device) {
  return std::all_of(device.attachments.begin(), device.attachments.end(),
                     [](const Attachment* attachment) { return attachment->is_under_mps; });
}

// The processes' kernels run side by side on AMD and under MPS; else the driver gives processes turns, and so one at a
// time is the default. Under MPS its own priority lets the important program's kernels start before others that wait,
// and small windows keep the others from filling the device (docs/explanation/performance.md has the runs).
policy::Device StateOf(const Device& device) {
  constexpr std::uint32_t kWindowsUnderMps = 4;
  const bool is_under_mps = IsUnderMps(device);
  return {.default_max_concurrent = device.vendor == "amd" || is_under_mps ? 0u : 1u,
          .windows = is_under_mps ? kWindowsUnderMps : 1,
          .memory = device.memory};
}

}  // namespace

Cluster& Gatherer::Gather(Device& start, const policy::Settings& settings, std::uint64_t now_ns) {
  Cluster& cluster = start.cluster != nullptr ? *start.cluster : Build(start);
  Refresh(cluster, settings, now_ns);
  return cluster;
}

void Gatherer::Touch(Attachment& attachment) {
  if (attachment.device->cluster == nullptr || attachment.touched) return;
  attachment.touched = true;
  attachment.device->cluster->touched.push_back(attachment.index);
}

bool Gatherer::MayWait(const Attachment& attachment) {
  const Cluster* const cluster = attachment.device->cluster;
  return cluster != nullptr && cluster->attachments.size() >= kManyClients && attachment.gate.may_wait;
}

void Gatherer::Forget(Device& device) {
  Cluster* const cluster = device.cluster;
  if (cluster == nullptr) return;
  for (Device* member : cluster->devices)
    member->cluster = nullptr;
  std::unique_ptr<Cluster>& place = clusters_[cluster->place];
  std::swap(place, clusters_.back());
  place->place = cluster->place;
  spare_.push_back(std::move(clusters_.back()));
  clusters_.pop_back();
}

Cluster& Gatherer::Build(Device& start) {
  ++epoch_;
  if (spare_.empty()) spare_.push_back(std::make_unique<Cluster>());
  clusters_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Cluster& cluster = *clusters_.back();
  Clear(cluster);
  cluster.place = clusters_.size() - 1;
  VisitDevice(cluster, start);
  // The list grows while it is walked: each device brings its groups, each group its other devices.
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    for (Attachment* attachment : cluster.devices[i]->attachments) {
      if (attachment->client->channel != nullptr) VisitGroup(cluster, *attachment->client->group);
    }
  }
  return cluster;
}

void Gatherer::VisitDevice(Cluster& cluster, Device& device) {
  if (device.visited == epoch_) return;
  device.visited = epoch_;
  device.index = static_cast<std::uint32_t>(cluster.devices.size());
  device.cluster = &cluster;
  cluster.devices.push_back(&device);
  cluster.state.devices.push_back(StateOf(device));
}

void Gatherer::VisitGroup(Cluster& cluster, Group& group) {
  if (group.visited == epoch_) return;
  group.visited = epoch_;
  const auto group_index = static_cast<std::uint32_t>(cluster.groups.size());
  cluster.groups.push_back(&group);

  policy::Group view;
  view.id = group.id;
  view.priority = std::numeric_limits<int>::min();
  view.weight = 0;
  view.memory = group.memory;
  for (Client* client : group.clients) {
    if (!client->IsScheduled()) continue;
    if (view.owner == policy::kNoOwner) {
      const auto number = static_cast<std::uint32_t>(cluster.owners.size());
      view.owner = cluster.owners.emplace(ShareOwnerOf(*client), number).first->second;
    }
    view.priority = std::max(view.priority, client->effective.priority);
    view.weight = std::max(view.weight, client->effective.weight);
    view.hold = view.hold || client->IsOnHold();
    view.strict = view.strict || client->effective.latency == Latency::kStrict;
    view.accounted = view.accounted || client->claim != nullptr;
    for (const auto& [slot, attachment] : client->attachments) {
      VisitDevice(cluster, *attachment->device);
      attachment->index = static_cast<std::uint32_t>(cluster.attachments.size());
      attachment->touched = true;
      cluster.touched.push_back(attachment->index);
      cluster.attachments.push_back(attachment.get());
      ++cluster.by_payer[attachment->payer];
      cluster.gates.push_back(attachment->gate);
      cluster.counters.push_back(client->channel->Ledger().GpuTimeCounter(slot));
      cluster.counted_ns.push_back(0);
      cluster.launch_counters.push_back(client->channel->Ledger().LaunchCounter(slot));
      cluster.launches.push_back(cluster.launch_counters.back().Read());
      cluster.in_flight.push_back(client->channel->Ledger().InFlight(slot));
      policy::Tenant tenant;
      tenant.client = client->id;
      tenant.group = group_index;
      tenant.device = attachment->device->index;
      cluster.state.tenants.push_back(tenant);
    }
  }
  cluster.state.groups.push_back(view);
}

void Gatherer::Refresh(Cluster& cluster, const policy::Settings& settings, std::uint64_t now_ns) {
  cluster.state.settings = settings;
  // An idle client's counter stands still; it was read when it became idle.
  for (std::size_t i = 0; i < cluster.attachments.size(); ++i) {
    policy::Tenant& tenant = cluster.state.tenants[i];
    tenant.ran_ns = 0;
    tenant.launched = 0;
    if (!tenant.busy) continue;
    TakeLaunches(cluster, i);
    if (tenant.deadline_ns != 0) tenant.burst_ns = BurstNs(*cluster.attachments[i], now_ns);
    const std::uint64_t counter = cluster.counters[i].Read();
    if (counter == cluster.counted_ns[i] || cluster.attachments[i]->touched) continue;
    cluster.counted_ns[i] = counter;
    ReadGpuTime(cluster, i, now_ns);
    TakeGpuTime(cluster, i);
  }
  cluster.fresh.clear();
  cluster.fresh.swap(cluster.touched);
  for (const std::uint32_t i : cluster.fresh) {
    Attachment& attachment = *cluster.attachments[i];
    policy::Tenant& tenant = cluster.state.tenants[i];
    attachment.touched = false;
    tenant.busy = attachment.busy;
    tenant.waits = attachment.waits;
    tenant.idle_since_ns = attachment.idle_since_ns;
    tenant.busy_since_ns = attachment.busy ? attachment.busy_since_ns : 0;
    tenant.burst_ns = BurstNs(attachment, now_ns);
    tenant.usual_ns = attachment.burst.UsualNs();
    tenant.deadline_ns = attachment.deadline_ns;
    tenant.deadline_after_ns = attachment.deadline_after_ns;
    if (attachment.busy) {
      cluster.counted_ns[i] = cluster.counters[i].Read();
      ReadGpuTime(cluster, i, now_ns);
    }
    TakeGpuTime(cluster, i);
    TakeLaunches(cluster, i);  // also of a client just gone idle: the last of its burst
  }
}

}  // namespace xschedd
