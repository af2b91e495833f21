// Turns the daemon's events into a timeline: for each client and device a track that is at each moment untracked, idle,
// running or held (and for whom); counters for each device and, sampled, for each track (work in flight, window); marks
// for administrators' changes.
//
// It begins with a snapshot, so that clients that do nothing new during the recording are in it. After an event LOST it
// needs another snapshot; the time between is "unknown". A track has no gaps and no overlaps from where it begins
// (start of the recording, or attached) to where it ends (gone, or end). Memory grows with the connected clients only.
// Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "admin.pb.h"
#include "tools/xschedctl/chrome_trace.h"

namespace xschedd::ctl {

class Timeline {
 public:
  // The command line of a client that connected during the recording; empty: not known.
  using CommandOf = std::function<std::string(std::uint64_t pid)>;

  // `trace` outlives it.
  Timeline(ChromeTrace& trace, CommandOf command_of) : trace_(trace), command_of_(std::move(command_of)) {}

  // The state at the snapshot's time: at first, and after LOST.
  void Take(const v1::ListClientsResponse& snapshot);
  // In the order in which they come. One from before the last snapshot changes nothing. False: events were lost, and
  // Take must be called.
  bool Add(const v1::Event& event);
  // What no event reports: the current work in flight and windows. Only changes are written.
  void Sample(const v1::ListClientsResponse& snapshot);
  // Ends all tracks.
  void End(std::uint64_t time_ns);

  std::size_t ClientsSeen() const { return clients_seen_; }

 private:
  struct Track {
    ChromeTrace::Track place;
    std::string device;
    std::string state;
    Json args;
    std::uint64_t since_ns = 0;
    std::int64_t in_flight = -1;  // as last written; -1: not yet
    std::int64_t window_us = -1;
  };
  struct Client {
    std::uint64_t pid = 0;
    std::string exe;
    bool is_named = false;
    std::map<std::string, Track> tracks;  // by device
  };
  struct Device {
    std::uint64_t process = 0;
    std::string name;
    int running = 0;
    int held = 0;
    std::int64_t in_flight = -1;
  };

  Client& ClientOf(std::uint64_t id, std::uint64_t pid);
  void NameClient(Client& client, const std::string& command);
  // The track, made if it does not exist.
  Track& TrackOf(Client& client, const std::string& device, std::uint64_t time_ns);
  Device& DeviceOf(const std::string& address);
  void NameDevice(const std::string& address, const std::string& name);
  void Enter(Track& track, std::string_view state, std::uint64_t time_ns, Json args = Json::object());
  void CloseSlice(Track& track, std::uint64_t time_ns);
  void AdjustCount(const std::string& device, const std::string& state, int change);
  void WriteCounters(const std::string& device, std::uint64_t time_ns);
  void EndClient(std::uint64_t id, std::uint64_t time_ns);
  void Mark(const v1::Event& event);

  ChromeTrace& trace_;
  CommandOf command_of_;
  std::map<std::uint64_t, Client> clients_;  // by client id
  std::map<std::string, Device> devices_;
  std::uint64_t taken_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t next_line_ = 1;
  std::size_t clients_seen_ = 0;
};

}  // namespace xschedd::ctl
