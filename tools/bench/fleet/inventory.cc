#include "tools/bench/fleet/inventory.h"

#include <stdexcept>

namespace xschedd::fleet {

Inventory::Inventory(const FleetSize& size)
    : size_(size),
      free_(static_cast<std::size_t>(size.nodes) * size.gpus, size.shards),
      nodes_(size.nodes, Node{.free_shards = size.gpus * size.shards, .free_gpus = size.gpus}),
      free_nodes_(size.nodes) {}

bool Inventory::Fits(std::uint32_t node, const Demand& demand) const {
  if (demand.gpus > size_.gpus) return free_nodes_ >= NodesOf(demand);
  if (demand.shards == 0) return nodes_[node].free_gpus >= demand.gpus;
  if (nodes_[node].free_shards < demand.shards) return false;
  for (std::uint32_t i = 0; i < size_.gpus; ++i)
    if (free_[node * size_.gpus + i] >= demand.shards) return true;
  return false;
}

std::uint32_t Inventory::ShardGpu(std::uint32_t node, std::uint32_t shards, GpuOrder order) const {
  const std::uint32_t first = node * size_.gpus;
  std::uint32_t best = Gpus();
  for (std::uint32_t gpu = first; gpu < first + size_.gpus; ++gpu) {
    if (free_[gpu] < shards) continue;
    if (order == GpuOrder::kFirst) return gpu;
    if (best == Gpus() || free_[gpu] > free_[best]) best = gpu;
  }
  return best;
}

std::optional<Place> Inventory::FindNodes(std::uint32_t nodes, const NodeFilter& allows) const {
  if (free_nodes_ < nodes) return std::nullopt;
  Place place;
  for (std::uint32_t node = 0; node < size_.nodes; ++node) {
    if (nodes_[node].free_gpus != size_.gpus || (allows && !allows(node))) continue;
    for (std::uint32_t i = 0; i < size_.gpus; ++i)
      place.push_back(node * size_.gpus + i);
    if (place.size() == static_cast<std::size_t>(nodes) * size_.gpus) return place;
  }
  return std::nullopt;
}

std::optional<Place> Inventory::Find(const Demand& demand, NodeOrder nodes, GpuOrder gpus,
                                     const NodeFilter& allows) const {
  if (demand.gpus > size_.gpus) return FindNodes(NodesOf(demand), allows);
  std::uint32_t best = size_.nodes;
  for (std::uint32_t node = 0; node < size_.nodes; ++node) {
    if (best != size_.nodes) {
      const std::uint32_t own = nodes_[node].free_shards;
      const std::uint32_t other = nodes_[best].free_shards;
      if (nodes == NodeOrder::kLeastAllocated ? own <= other : own >= other) continue;
    }
    if (!Fits(node, demand) || (allows && !allows(node))) continue;
    best = node;
    if (nodes == NodeOrder::kFirst) break;
  }
  if (best == size_.nodes) return std::nullopt;
  if (demand.shards != 0) return Place{ShardGpu(best, demand.shards, gpus)};
  Place place;
  for (std::uint32_t i = 0; place.size() < demand.gpus; ++i)
    if (free_[best * size_.gpus + i] == size_.shards) place.push_back(best * size_.gpus + i);
  return place;
}

bool Inventory::CanHold(const Demand& demand) const {
  if (demand.shards != 0) return demand.shards <= size_.shards;
  if (demand.gpus <= size_.gpus) return size_.nodes > 0;
  return NodesOf(demand) <= size_.nodes;
}

void Inventory::Take(const Demand& demand, const Place& place) {
  Change(demand, place, true);
}
void Inventory::Release(const Demand& demand, const Place& place) {
  Change(demand, place, false);
}

void Inventory::Change(const Demand& demand, const Place& place, bool takes) {
  const std::uint32_t amount = demand.shards != 0 ? demand.shards : size_.shards;
  for (const std::uint32_t gpu : place) {
    Node& node = nodes_[NodeOf(gpu)];
    if (node.free_gpus == size_.gpus) --free_nodes_;
    if (free_[gpu] == size_.shards) --node.free_gpus;
    if (takes ? free_[gpu] < amount : size_.shards - free_[gpu] < amount)
      throw std::logic_error("more is taken from a GPU, or given back, than there is");
    free_[gpu] = takes ? free_[gpu] - amount : free_[gpu] + amount;
    node.free_shards = takes ? node.free_shards - amount : node.free_shards + amount;
    if (free_[gpu] == size_.shards) ++node.free_gpus;
    if (node.free_gpus == size_.gpus) ++free_nodes_;
  }
}

}  // namespace xschedd::fleet
