// What HIP and the CUDA driver answer about memory pools, in the same way: how much memory they keep on a device, and
// that they give back what is not handed out. The pools that are asked are the device's default and current one, those
// that the program has made, and the one of all graphs. Thread rule: any thread; calls the runtime.
#pragma once

#include "client-shim/stub/made_pools.h"
#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim {

// The runtime's functions; null: it has none.
struct PoolFunctions {
  Result (*default_pool)(Handle*, int);
  Result (*current_pool)(Handle*, int);
  Result (*attribute)(Handle, int, uint64_t*);
  Result (*trim)(Handle, size_t);
  Result (*graph_attribute)(int, int, uint64_t*);
  Result (*trim_graphs)(int);

  // Bytes on `device`. `all_answered`: no call has failed.
  uint64_t Kept(int device, const MadePools& made, bool* all_answered) const {
    constexpr int kReserved = 5;        // hipMemPoolAttrReservedMemCurrent, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
    constexpr int kGraphsReserved = 2;  // hipGraphMemAttrReservedMemCurrent, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
    uint64_t kept = 0;
    *all_answered = ForEach(device, made, [&](Handle pool) {
      uint64_t bytes = 0;
      if (attribute == nullptr || attribute(pool, kReserved, &bytes) != kSuccess) return false;
      kept = Sum(kept, bytes);
      return true;
    });
    uint64_t graphs = 0;
    if (graph_attribute != nullptr) *all_answered &= graph_attribute(device, kGraphsReserved, &graphs) == kSuccess;
    return Sum(kept, graphs);
  }
  // False: a call has failed.
  bool Trim(int device, const MadePools& made) const {
    bool is_done = ForEach(device, made, [&](Handle pool) { return trim == nullptr || trim(pool, 0) == kSuccess; });
    if (trim_graphs != nullptr) is_done &= trim_graphs(device) == kSuccess;
    return is_done;
  }

 private:
  // Each pool once. False: one was not to be had, or `body` has said so.
  template <typename Body>
  bool ForEach(int device, const MadePools& made, Body body) const {
    bool is_right = true;
    Handle standard = nullptr;
    Handle current = nullptr;
    if (default_pool != nullptr) is_right &= default_pool(&standard, device) == kSuccess;
    if (current_pool != nullptr) is_right &= current_pool(&current, device) == kSuccess;
    if (standard != nullptr) is_right &= body(standard);
    bool is_made = false;
    made.ForEachOn(device, [&](Handle pool) {
      is_made |= pool == current;
      is_right &= body(pool);
    });
    if (current != nullptr && current != standard && !is_made) is_right &= body(current);
    return is_right;
  }
};

}  // namespace xschedd::shim
