// The daemon's WatchEvents, read with a time limit. Thread rule: main thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "tools/xschedctl/admin_client.h"

namespace xschedd::ctl {

class EventStream {
 public:
  // The daemon sends all that it remembers at once, so that a pause this long means that it is stopped.
  static constexpr std::chrono::seconds kReplayLimit{5};

  // `client` outlives it.
  EventStream(AdminClient& client, bool replay);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  enum class Wait {
    kEvent,  // Event() is the next one
    kEnded,  // there will be no more; Finish() says why
    kQuiet,  // none came within the limit; call again
  };
  // Without a limit: waits as long as it takes.
  Wait Next(std::optional<std::chrono::milliseconds> limit);
  // Valid after kEvent, until the next call.
  const v1::Event& Event() const { return event_; }

  // Why the stream ended. Only after kEnded.
  Failure Finish();

 private:
  struct Call;
  Wait Await(std::optional<std::chrono::milliseconds> limit);

  const AdminConnection& connection_;
  std::unique_ptr<Call> call_;
  v1::Event event_;
  bool is_open_ = false;
  bool is_reading_ = false;
};

}  // namespace xschedd::ctl
