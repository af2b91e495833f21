// The last events, and sinks that get each one as it happens (WatchEvents). Thread rule: the daemon's one thread.
#pragma once

#include <boost/circular_buffer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/registry/registry.h"

namespace xschedd {

// The numbers are those of xschedd.v1.EventKind.
enum class EventKind {
  kClientConnected = 1,
  kClientGone = 2,
  kBusy = 3,
  kIdle = 4,
  kHeld = 5,
  kOpened = 6,
  kPriority = 7,
  kHold = 8,
  kRelease = 9,
  kPolicy = 10,
  kRefused = 11,
  kReloaded = 12,
  kDeviceAttached = 13,
  kQueueCreated = 14,
  kQueueDestroyed = 15,
  kLate = 17,  // a watcher makes 16 and 18: events were lost; live events follow
  kTracked = 19,
  kUntracked = 20,
  kWeight = 21,
  kSilent = 22,
  kLever = 23,
  kClaim = 24,
  kMemory = 25,
};

struct Event {
  EventKind kind = EventKind::kClientConnected;
  std::uint64_t time_ns = 0;
  std::uint64_t unix_ms = 0;
  std::uint64_t client_id = 0;
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;   // of the client
  PrincipalPtr principal;  // the client's; null: the event is about no client
  ClaimPtr claim;          // the client's; for kClaim the one that the event is about
  std::shared_ptr<const std::string> device;
  Reason reason;     // for kHeld and kOpened
  std::string text;  // for all others, if there is something to say
  int priority = 0;
  std::uint32_t weight = 0;

  std::string ReasonText() const;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Must not block and must not add events.
  virtual void OnEvent(const Event& event) = 0;
};

class EventLog {
 public:
  static constexpr std::size_t kRemembered = 4096;

  // Fills in unix_ms.
  void Add(Event event);
  const boost::circular_buffer<Event>& Remembered() const { return events_; }

  // Unsubscribe `sink` before it is destroyed.
  void Subscribe(EventSink* sink);
  void Unsubscribe(EventSink* sink);

 private:
  boost::circular_buffer<Event> events_{kRemembered};
  std::vector<EventSink*> sinks_;
  // A decision makes hundreds of events, all at one time.
  std::uint64_t last_ns_ = policy::kNever;
  std::uint64_t last_unix_ms_ = 0;
};

// An event about a client, or about a client on a device.
Event ClientEvent(EventKind kind, const Client& client, std::uint64_t now_ns, std::string text = {});
Event DeviceEvent(EventKind kind, const Attachment& attachment, std::uint64_t now_ns);

}  // namespace xschedd
