// Future events in order of time; events of the same time in the order in which they were pushed. Thread rule: belongs
// to one simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace xschedd::simulate {

enum class EventKind : std::uint8_t {
  kArrival,  // of a client's next request
  kBegin,    // of a closed loop's next request, of a client
  kDevice,   // a kernel has ended, a slice is over, or a change of contexts
  kHostEnd,  // a lane's host work before a launch is done
  kGapEnd,   // a lane's host work is done
  kWake,     // a lane's thread, which waited at its gate, looks at it
  kPoll,     // a lane's thread, whose window was full, looks again
  kDecide,   // about a component that something happened to
  kLook,     // about a component, because the last decision asked for it
};

struct Event {
  std::uint64_t time_ns;
  std::uint64_t order;
  EventKind kind;
  std::uint32_t index;  // of the client, lane, device or component
};

class EventQueue {
 public:
  bool IsEmpty() const { return heap_.empty(); }
  std::uint64_t NextNs() const { return heap_.front().time_ns; }
  std::uint64_t Count() const { return order_; }

  void Push(std::uint64_t time_ns, EventKind kind, std::uint32_t index) {
    heap_.push_back({time_ns, order_++, kind, index});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  Event Pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool Later(const Event& a, const Event& b) {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
  }

  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace xschedd::simulate
