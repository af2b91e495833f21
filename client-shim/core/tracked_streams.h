// The streams of one device that the client has submitted to, what is known of each, and how the legacy default stream
// relates to them. Has no clock and calls no runtime.
//
// Thread rule: guarded by its device's lock. A stream's address is stable until it is forgotten. Code that releases the
// lock and comes back to a stream must pin it, or compare Forgets().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "client-shim/core/fibonacci_hash.h"
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
// The handle by which the stream is known here: the legacy default stream, which has two, is null.
inline void* CanonicalStream(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == kLegacyHandle ? nullptr : stream;
}

// A stream on one device. `thread` distinguishes the per-thread default streams; 0 for all others.
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
  InFlight in_flight;                // admitted or launched, and not settled; maintained by Admission
  std::uint32_t admitted = 0;        // launches that are admitted and have not left
  std::uint32_t admissions = 0;      // launches admitted so far, modulo 2^32
  std::uint64_t end_ns = 0;          // on the marker clock: the end of the work that was measured last
  std::uint64_t started_ns = 0;      // when a start marker was last recorded
  std::uint32_t starts_skipped = 0;  // since then: how often the stream became busy without one
  std::uint64_t submitted_ns = 0;    // when a launch last entered or was let through
  std::uint64_t marked_at_ns = 0;    // submitted_ns when a marker was last recorded
  // A marker of ours that may not be reached yet: batches from this number on were begun after it was recorded. 0:
  // none; kRecording: it is being recorded.
  std::uint64_t own_marker = 0;
  std::uint64_t recorded_ns = 0;    // when a marker of ours was last recorded
  std::uint64_t progress_ns = 0;    // when work on it last settled, or when it became busy, whichever is later
  std::uint64_t busy_since_ns = 0;  // maintained while there are deadlines; 0: not busy
  std::uint32_t pins = 0;           // threads that use it with the lock released
  bool is_non_blocking = false;     // the legacy default stream does not wait for it
  bool is_gone = false;             // its thread has ended: it is forgotten once it is idle
  Activity activity;

  // Forgets what was submitted. The stream's properties, and our markers on it, stay.
  void ForgetWork() {
    TrackedStream fresh;
    fresh.pins = pins;
    fresh.own_marker = own_marker;
    fresh.recorded_ns = recorded_ns;
    fresh.progress_ns = progress_ns;
    fresh.is_non_blocking = is_non_blocking;
    fresh.is_gone = is_gone;
    fresh.activity.stream = activity.stream;
    *this = std::move(fresh);
  }
};

class TrackedStreams {
 public:
  using Map = std::map<StreamKey, TrackedStream>;

  // The stream, which is added if it is unknown. Usually does not search the map.
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
  // The first behind `last`, which may have been forgotten. Without a value: the first of all.
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
  // Changes when streams are forgotten. After a change, code must find its stream again.
  std::uint32_t Forgets() const { return forgets_; }

  // ---- the legacy default stream
  // A stream that the program has made. `is_non_blocking`: the legacy default stream does not wait for it.
  void NoteMade(void* handle, bool is_non_blocking) { (is_non_blocking ? non_blocking_ : blocking_).insert(handle); }
  void NoteDestroyed(void* handle) {
    non_blocking_.erase(handle);
    blocking_.erase(handle);
  }
  // Whether a successful synchronisation with `key` proves that `other`, whose state is `state`, has finished, too. The
  // legacy default stream waits for all streams of its device except those made non-blocking and the default streams of
  // threads.
  static bool IsWaitedFor(const StreamKey& key, const StreamKey& other, const TrackedStream& state) {
    return key == other || (key == StreamKey{} && other.thread == 0 && !state.is_non_blocking);
  }
  // Whether a marker may be recorded on the stream, or the stream be queried, outside of its own launches. Not on the
  // default stream of a thread, nor on the legacy one while there are blocking streams.
  bool MayMarkElsewhere(const StreamKey& key) const {
    return key.thread == 0 && !(key == StreamKey{} && !blocking_.empty());
  }

 private:
  // A cache of look-ups.
  struct Found {
    StreamKey key{nullptr, ~std::uint64_t{0}};  // no stream's
    TrackedStream* stream = nullptr;
  };
  static constexpr unsigned kFoundBits = 6;

  static std::size_t PlaceOf(const StreamKey& key) {
    return FibonacciHash<kFoundBits>(reinterpret_cast<std::uintptr_t>(key.handle) + key.thread);
  }
  [[gnu::noinline]] TrackedStream& FindInMap(const StreamKey& key) {
    const auto [found, is_new] = streams_.try_emplace(key);
    if (is_new) {
      found->second.activity.stream = key;
      found->second.is_non_blocking = non_blocking_.count(key.handle) != 0;
      if (key != StreamKey{} && !found->second.is_non_blocking) blocking_.insert(key.handle);
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
  std::unordered_set<void*> blocking_;  // without the legacy default stream itself
  std::uint32_t gone_ = 0;              // streams whose thread has ended
  std::uint32_t forgets_ = 0;
};

}  // namespace xschedd::shim
