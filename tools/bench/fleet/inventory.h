// The GPUs of all nodes and what is free on them: each GPU is divided into shards, and a job has whole GPUs or shards
// of one. Never more is taken than there is. Thread rule: belongs to one simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

struct FleetSize {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 8;    // of a node
  std::uint32_t shards = 4;  // of a GPU
};

// GPUs of the inventory: node * gpus + number on the node.
using Place = std::vector<std::uint32_t>;

class Inventory {
 public:
  explicit Inventory(const FleetSize& size);

  // Which node is better; the first of the best is chosen.
  enum class NodeOrder { kFirst, kLeastAllocated, kMostAllocated };
  // Which GPU of the node serves shards.
  enum class GpuOrder { kFirst, kLeastAllocated };
  using NodeFilter = std::function<bool(std::uint32_t node)>;

  // A place where the demand fits now. More GPUs than a node has are whole nodes, all of which must be free.
  std::optional<Place> Find(const Demand& demand, NodeOrder nodes, GpuOrder gpus, const NodeFilter& allows = {}) const;
  // Whether it fits on this node now; of a demand of several nodes: whether as many nodes are free.
  bool Fits(std::uint32_t node, const Demand& demand) const;
  // Whether it can ever fit.
  bool CanHold(const Demand& demand) const;

  void Take(const Demand& demand, const Place& place);
  void Release(const Demand& demand, const Place& place);

  const FleetSize& Size() const { return size_; }
  std::uint32_t Gpus() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t NodeOf(std::uint32_t gpu) const { return gpu / size_.gpus; }
  std::uint32_t FreeShards(std::uint32_t gpu) const { return free_[gpu]; }

 private:
  struct Node {
    std::uint32_t free_shards = 0;  // of all its GPUs
    std::uint32_t free_gpus = 0;    // with nothing taken
  };

  std::uint32_t NodesOf(const Demand& demand) const { return (demand.gpus + size_.gpus - 1) / size_.gpus; }
  std::uint32_t ShardGpu(std::uint32_t node, std::uint32_t shards, GpuOrder order) const;
  std::optional<Place> FindNodes(std::uint32_t nodes, const NodeFilter& allows) const;
  void Change(const Demand& demand, const Place& place, bool takes);

  FleetSize size_;
  std::vector<std::uint32_t> free_;  // shards, of each GPU
  std::vector<Node> nodes_;
  std::uint32_t free_nodes_;  // with nothing taken
};

}  // namespace xschedd::fleet
