#include "tools/xschedctl/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/xschedctl/names.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr std::string_view kUntracked = "untracked";
constexpr std::string_view kIdle = "idle";
constexpr std::string_view kRunning = "running";
constexpr std::string_view kHeld = "held";
constexpr std::string_view kUnknown = "unknown";

// Devices are shown as processes whose numbers no process has: Linux has at most 2^22.
constexpr std::uint64_t kFirstDeviceProcess = (1u << 22) + 1;
constexpr std::size_t kCommandShown = 120;

Json HeldArgs(const v1::Event& event) {
  Json args = {{"rule", event.rule()}, {"why", event.reason()}};
  if (event.for_pid() != 0) {
    args["for_pid"] = event.for_pid();
    args["for_priority"] = event.for_priority();
  }
  return args;
}

// Empty: the event changes no track's state.
std::string_view StateAfter(v1::EventKind kind) {
  switch (kind) {
    case v1::EVENT_KIND_DEVICE_ATTACHED:
    case v1::EVENT_KIND_UNTRACKED:
      return kUntracked;
    case v1::EVENT_KIND_TRACKED:
    case v1::EVENT_KIND_IDLE:
      return kIdle;
    case v1::EVENT_KIND_BUSY:
    case v1::EVENT_KIND_OPENED:
      return kRunning;
    case v1::EVENT_KIND_HELD:
      return kHeld;
    default:
      return {};
  }
}

// A slice's title says for whom it waits, so that this is visible without opening it.
std::string Title(const std::string& state, const Json& args) {
  if (args.contains("for_pid")) return fmt::format("{} for pid {}", state, args["for_pid"].get<std::uint64_t>());
  if (args.contains("for")) return state + " for " + args["for"].get<std::string>();
  if (args.contains("rule")) return state + ": " + args["rule"].get<std::string>();
  return state;
}

// Colours of chrome://tracing; ui.perfetto.dev gives its own.
std::string_view SliceColour(std::string_view state) {
  if (state == kRunning) return "good";
  if (state == kHeld) return "terrible";
  if (state == kUnknown) return "black";
  return "grey";
}

}  // namespace

Timeline::Client& Timeline::ClientOf(std::uint64_t id, std::uint64_t pid) {
  const auto [place, is_new] = clients_.try_emplace(id);
  if (is_new) {
    place->second.pid = pid;
    ++clients_seen_;
  }
  return place->second;
}

void Timeline::NameClient(Client& client, const std::string& command) {
  if (client.is_named) return;
  client.is_named = true;
  const std::string& what = command.empty() ? client.exe : command;
  trace_.NameProcess(client.pid, OneLine(fmt::format("pid {} {}", client.pid, what.substr(0, kCommandShown))), 1);
}

Timeline::Track& Timeline::TrackOf(Client& client, const std::string& device, std::uint64_t time_ns) {
  const auto [place, is_new] = client.tracks.try_emplace(device);
  Track& track = place->second;
  if (is_new) {
    track.place = {client.pid, next_line_++};
    track.device = device;
    track.state = kUnknown;
    track.since_ns = time_ns;
    track.args = Json::object();
    DeviceOf(device);
    trace_.NameLine(track.place, device);
  }
  return track;
}

Timeline::Device& Timeline::DeviceOf(const std::string& address) {
  const auto [place, is_new] = devices_.try_emplace(address);
  if (is_new) {
    place->second.process = kFirstDeviceProcess + devices_.size() - 1;
    trace_.NameProcess(place->second.process, "device " + address, 0);
  }
  return place->second;
}

void Timeline::NameDevice(const std::string& address, const std::string& name) {
  Device& device = DeviceOf(address);
  if (name.empty() || device.name == name) return;
  device.name = name;
  trace_.NameProcess(device.process, OneLine(fmt::format("device {} ({})", address, name)), 0);
}

void Timeline::CloseSlice(Track& track, std::uint64_t time_ns) {
  if (time_ns <= track.since_ns) return;
  trace_.Slice(track.place, OneLine(Title(track.state, track.args)), SliceColour(track.state), track.since_ns, time_ns,
               track.args);
  track.since_ns = time_ns;
}

void Timeline::AdjustCount(const std::string& device, const std::string& state, int change) {
  if (state == kRunning) DeviceOf(device).running += change;
  if (state == kHeld) DeviceOf(device).held += change;
}

void Timeline::WriteCounters(const std::string& device, std::uint64_t time_ns) {
  const Device& now = DeviceOf(device);
  trace_.Counter(now.process, "clients", time_ns, {{"running", now.running}, {"held", now.held}});
}

void Timeline::Enter(Track& track, std::string_view state, std::uint64_t time_ns, Json args) {
  if (track.state == state && track.args == args) return;
  CloseSlice(track, time_ns);
  const bool counts = track.state != state;
  if (counts) AdjustCount(track.device, track.state, -1);
  track.state = state;
  track.args = std::move(args);
  if (!counts) return;
  AdjustCount(track.device, track.state, 1);
  WriteCounters(track.device, time_ns);
}

void Timeline::EndClient(std::uint64_t id, std::uint64_t time_ns) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  for (auto& [device, track] : found->second.tracks) {
    CloseSlice(track, time_ns);
    AdjustCount(device, track.state, -1);
    WriteCounters(device, time_ns);
  }
  clients_.erase(found);
}

void Timeline::Take(const v1::ListClientsResponse& snapshot) {
  taken_ns_ = last_ns_ = snapshot.time_ns();
  std::set<std::uint64_t> present;
  for (const v1::Device& device : snapshot.devices())
    NameDevice(device.pci_address(), device.name());
  for (const v1::Client& listed : snapshot.clients()) {
    present.insert(listed.id());
    Client& client = ClientOf(listed.id(), listed.pid());
    client.exe = listed.exe();
    if (listed.devices_size() > 0) NameClient(client, listed.command());
    for (const v1::ClientDevice& device : listed.devices()) {
      Track& track = TrackOf(client, device.device(), taken_ns_);
      Json args = Json::object();
      // Events have only one kind of shut gate.
      const bool is_held = device.state() == v1::CLIENT_STATE_HELD || device.state() == v1::CLIENT_STATE_PASSING;
      const std::string_view state = Name(is_held ? v1::CLIENT_STATE_HELD : device.state());
      // The list does not have the reason; the next event does.
      if (is_held && !device.held_for().empty()) args["for"] = device.held_for();
      if (track.state == state) args = track.args;
      Enter(track, state, taken_ns_, std::move(args));
    }
  }
  std::set<std::uint64_t> gone;
  for (const auto& [id, client] : clients_) {
    if (!present.contains(id)) gone.insert(id);
  }
  for (const std::uint64_t id : gone)
    EndClient(id, taken_ns_);
}

bool Timeline::Add(const v1::Event& event) {
  if (event.kind() == v1::EVENT_KIND_LIVE) return true;
  if (event.kind() == v1::EVENT_KIND_LOST) {
    const std::uint64_t time = std::max(event.time_ns(), last_ns_);
    for (auto& [id, client] : clients_) {
      for (auto& [device, track] : client.tracks)
        Enter(track, kUnknown, time);
    }
    trace_.Instant(0, fmt::format("{} lost: xschedctl was too slow", Count(event.count(), "event")), time,
                   Json::object());
    return false;
  }
  if (event.time_ns() < taken_ns_) return true;
  last_ns_ = event.time_ns();
  if (event.kind() == v1::EVENT_KIND_CLIENT_CONNECTED) {
    ClientOf(event.client_id(), event.pid()).exe = event.reason();
    return true;
  }
  if (event.kind() == v1::EVENT_KIND_CLIENT_GONE) {
    EndClient(event.client_id(), event.time_ns());
    return true;
  }
  Mark(event);
  const std::string_view state = StateAfter(event.kind());
  if (state.empty()) return true;
  Client& client = ClientOf(event.client_id(), event.pid());
  if (!client.is_named) NameClient(client, command_of_(event.pid()));
  Enter(TrackOf(client, event.device(), event.time_ns()), state, event.time_ns(),
        state == kHeld ? HeldArgs(event) : Json::object());
  return true;
}

void Timeline::Sample(const v1::ListClientsResponse& snapshot) {
  const auto write = [&](std::uint64_t process, const std::string& name, const char* unit, std::int64_t& last,
                         std::int64_t now) {
    if (last == now) return;
    last = now;
    trace_.Counter(process, name, snapshot.time_ns(), {{unit, now}});
  };
  for (const v1::Device& device : snapshot.devices())
    NameDevice(device.pci_address(), device.name());
  std::map<std::string, std::int64_t> in_flight;
  for (const auto& [address, device] : devices_)
    in_flight[address] = 0;
  for (const v1::Client& listed : snapshot.clients()) {
    const auto client = clients_.find(listed.id());
    if (client == clients_.end()) continue;
    for (const v1::ClientDevice& listed_device : listed.devices()) {
      const auto track = client->second.tracks.find(listed_device.device());
      if (track == client->second.tracks.end()) continue;
      in_flight[listed_device.device()] += listed_device.in_flight();
      const std::string where = " on " + listed_device.device();
      write(client->second.pid, "in flight" + where, "launches", track->second.in_flight, listed_device.in_flight());
      write(client->second.pid, "window" + where, "us", track->second.window_us, listed_device.window_us());
    }
  }
  for (auto& [address, device] : devices_)
    write(device.process, "in flight", "launches", device.in_flight, in_flight[address]);
}

void Timeline::Mark(const v1::Event& event) {
  const Json args = {{"why", event.reason()}};
  switch (event.kind()) {
    case v1::EVENT_KIND_PRIORITY:
      return trace_.Instant(event.pid(), fmt::format("priority {}", event.priority()), event.time_ns(), args);
    case v1::EVENT_KIND_WEIGHT:
      return trace_.Instant(event.pid(), fmt::format("weight {}", event.weight()), event.time_ns(), args);
    case v1::EVENT_KIND_HOLD:
    case v1::EVENT_KIND_RELEASE:
    case v1::EVENT_KIND_LATE:
    case v1::EVENT_KIND_LEVER:
    case v1::EVENT_KIND_SILENT:
      return trace_.Instant(event.pid(), Name(event.kind()), event.time_ns(), args);
    case v1::EVENT_KIND_POLICY:
    case v1::EVENT_KIND_RELOADED:
    case v1::EVENT_KIND_REFUSED:
      return trace_.Instant(0, Name(event.kind()), event.time_ns(), args);
    default:
      return;
  }
}

void Timeline::End(std::uint64_t time_ns) {
  while (!clients_.empty())
    EndClient(clients_.begin()->first, time_ns);
}

}  // namespace xschedd::ctl
