#include "daemon/scheduler/events.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace xschedd {

std::string Event::ReasonText() const {
  const bool has_reason = kind == EventKind::kHeld || kind == EventKind::kOpened;
  return has_reason ? reason.Text() : text;
}

void EventLog::Add(Event event) {
  if (std::exchange(last_ns_, event.time_ns) != event.time_ns) last_unix_ms_ = UnixMs();
  event.unix_ms = last_unix_ms_;
  for (EventSink* sink : sinks_)
    sink->OnEvent(event);
  events_.push_back(std::move(event));
}

void EventLog::Subscribe(EventSink* sink) {
  sinks_.push_back(sink);
}

void EventLog::Unsubscribe(EventSink* sink) {
  std::erase(sinks_, sink);
}

Event ClientEvent(EventKind kind, const Client& client, std::uint64_t now_ns, std::string text) {
  Event event;
  event.kind = kind;
  event.time_ns = now_ns;
  event.client_id = client.id;
  event.pid = client.identity.pid;
  event.uid = client.identity.uid;
  event.principal = client.principal;
  event.claim = client.claim;
  event.priority = client.effective.priority;
  event.weight = client.effective.weight;
  event.text = std::move(text);
  return event;
}

Event DeviceEvent(EventKind kind, const Attachment& attachment, std::uint64_t now_ns) {
  Event event = ClientEvent(kind, *attachment.client, now_ns);
  event.device = attachment.device->shared_address;
  event.reason = attachment.reason;
  return event;
}

}  // namespace xschedd
