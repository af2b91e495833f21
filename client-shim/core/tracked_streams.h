// The streams of one device that the client has submitted to, what is known of each, and how the legacy default stream
// relates to them. Pure: no clock, no runtime.
//
// Thread rule: guarded by its device's lock. A stream stays where it is until it is forgotten; code that releases the
// lock and comes back to a stream pins it, or compares Forgets().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "client-shim/core/stream_work.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// hipStreamPerThread, CU_STREAM_PER_THREAD: one handle for the default streams of all threads. Null and 1 are the
// legacy default stream (hip_runtime_api.h).
inline constexpr std::uintptr_t kPerThreadHandle = 2;
inline constexpr std::uintptr_t kLegacyHandle = 1;
inline bool IsDefaultStream(const void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= kPerThreadHandle;
}
// The legacy default stream has one name here, whatever the program calls it.
inline void* ByOneName(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == kLegacyHandle ? nullptr : stream;
}

// A stream on one device. `thread` tells the per-thread default streams apart.
struct StreamKey {
  void* handle = nullptr;
  std::uint64_t thread = 0;
  auto operator<=>(const StreamKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

struct Activity {
  StreamKey stream;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
};

struct TrackedStream {
  static constexpr std::uint64_t kRecording = ~std::uint64_t{0};

  StreamWork work;
  InFlight in_flight;              // admitted or launched, and not settled; kept by Admission
  std::uint32_t admitted = 0;      // threads that are admitted and have not left
  std::uint32_t turn = 0;          // counts those admitted
  std::uint64_t end_ns = 0;        // of the marker clock: the end of what was measured last
  std::uint64_t started_ns = 0;    // when a start marker was recorded last
  std::uint32_t left_out = 0;      // start markers since then that were not needed
  std::uint64_t submitted_ns = 0;  // when somebody last asked to submit to it and had not to wait
  std::uint64_t marked_at_ns = 0;  // that, when it was marked last
  // A marker of ours that may not be reached yet: batches from this number on were begun after it had been recorded.
  // 0: none; kRecording: it is being recorded.
  std::uint64_t own_marker = 0;
  std::uint64_t recorded_ns = 0;    // when a marker of ours was recorded last
  std::uint64_t progress_ns = 0;    // when work on it settled last, or when it got its first after it had none
  std::uint64_t busy_since_ns = 0;  // kept while there are deadlines
  std::uint32_t pins = 0;           // threads that record on it with the lock released
  bool non_blocking = false;
  bool is_gone = false;  // its thread has ended: forgotten when it is idle
  Activity activity;

  // Forgets what was submitted; what the stream is, and our markers on it, stay.
  void ForgetWork() {
    TrackedStream fresh;
    fresh.pins = pins;
    fresh.own_marker = own_marker;
    fresh.recorded_ns = recorded_ns;
    fresh.progress_ns = progress_ns;
    fresh.non_blocking = non_blocking;
    fresh.is_gone = is_gone;
    fresh.activity.stream = activity.stream;
    *this = std::move(fresh);
  }
};

class TrackedStreams {
 public:
  using Map = std::map<StreamKey, TrackedStream>;

  // The stream; it is known from now on. A launch finds its stream without the map.
  TrackedStream& Find(const StreamKey& key) {
    const Found& found = found_[PlaceOf(key)];
    return found.key == key ? *found.stream : FindInMap(key);
  }
  // Null: nothing was submitted to it.
  TrackedStream* Known(const StreamKey& key) {
    const auto found = streams_.find(key);
    return found == streams_.end() ? nullptr : &found->second;
  }
  const TrackedStream* Known(const StreamKey& key) const { return const_cast<TrackedStreams*>(this)->Known(key); }
  Map::iterator begin() { return streams_.begin(); }
  Map::iterator end() { return streams_.end(); }
  Map::const_iterator begin() const { return streams_.begin(); }
  Map::const_iterator end() const { return streams_.end(); }
  // The first behind `last`, which may have been forgotten; nothing: the first of all.
  Map::iterator After(const std::optional<StreamKey>& last) {
    return last ? streams_.upper_bound(*last) : streams_.begin();
  }
  std::size_t Size() const { return streams_.size(); }
  bool IsAnyPinned() const {
    return std::any_of(begin(), end(), [](const auto& entry) { return entry.second.pins > 0; });
  }

  // ---- forgetting
  void Forget(const StreamKey& key) {
    DropFound();
    streams_.erase(key);
  }
  void ForgetAll() {
    DropFound();
    streams_.clear();
    non_blocking_.clear();
    blocking_.clear();
    gone_ = 0;
  }
  // Its thread has ended. ForgetGone forgets it once it is idle.
  void NoteGone(TrackedStream* stream) {
    stream->is_gone = true;
    ++gone_;
  }
  void ForgetGone() {
    if (gone_ == 0) return;
    DropFound();
    std::erase_if(streams_, [this](const auto& entry) {
      const bool is_over = entry.second.is_gone && entry.second.work.IsIdle() && entry.second.pins == 0;
      gone_ -= is_over ? 1 : 0;
      return is_over;
    });
  }
  // How often streams have been forgotten: code that saw another number looks for its stream again.
  std::uint32_t Forgets() const { return forgets_; }

  // ---- the legacy default stream
  // A stream that the program has made. `non_blocking`: the legacy default stream does not wait for it.
  void NoteMade(void* handle, bool non_blocking) { (non_blocking ? non_blocking_ : blocking_).insert(handle); }
  void NoteDestroyed(void* handle) {
    non_blocking_.erase(handle);
    blocking_.erase(handle);
  }
  // Whether success of a synchronisation with `key` says that `other`, a stream in the state `state`, has finished,
  // too. The legacy default stream waits for all streams of its device that are not made non-blocking, but not for the
  // default streams of threads.
  static bool IsWaitedFor(const StreamKey& key, const StreamKey& other, const TrackedStream& state) {
    return key == other || (key == StreamKey{} && other.thread == 0 && !state.non_blocking);
  }
  // Whether a marker may be recorded on the stream, or the runtime be asked about it, outside of its own launches: not
  // on the default stream of a thread, nor on the legacy one while others wait for it and it for them.
  bool MayMarkElsewhere(const StreamKey& key) const {
    return key.thread == 0 && !(key == StreamKey{} && !blocking_.empty());
  }

 private:
  // Those that were found last.
  struct Found {
    StreamKey key{nullptr, ~std::uint64_t{0}};  // nobody's
    TrackedStream* stream = nullptr;
  };
  static constexpr unsigned kFoundBits = 6;

  static std::size_t PlaceOf(const StreamKey& key) {
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(key.handle) + key.thread) * 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(mixed >> (64 - kFoundBits));
  }
  [[gnu::noinline]] TrackedStream& FindInMap(const StreamKey& key) {
    const auto [found, is_new] = streams_.try_emplace(key);
    if (is_new) {
      found->second.activity.stream = key;
      found->second.non_blocking = non_blocking_.count(key.handle) != 0;
      if (key != StreamKey{} && !found->second.non_blocking) blocking_.insert(key.handle);
    }
    found_[PlaceOf(key)] = Found{key, &found->second};
    return found->second;
  }
  void DropFound() {
    found_ = {};
    ++forgets_;
  }

  Map streams_;
  std::array<Found, std::size_t{1} << kFoundBits> found_{};
  std::unordered_set<void*> non_blocking_;
  std::unordered_set<void*> blocking_;  // not the legacy default stream itself
  std::uint32_t gone_ = 0;              // streams whose thread has ended
  std::uint32_t forgets_ = 0;
};

}  // namespace xschedd::shim
