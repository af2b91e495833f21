// How a client spent its time on a device, as far as the daemon remembers: for Explain and ps.
//
//   buckets   about a second each, added up by phase and by cause. They come from one pool for the whole daemon, a ring
//             in order of time: the oldest bucket of all is overwritten. So a few clients are remembered for hours, a
//             hundred for minutes, a thousand for tens of seconds. A period in which only GPU time changed is one
//             bucket, however long it is; an idle client costs nothing.
//   spans     the last kSpans holds of each client on each device, exactly.
//   samples   the GPU time of the last second, for ps.
//
// A change costs O(1), some tens of ns, and allocates nothing, except at the first hold of a client on a device (its
// spans). Memory: 2.8 MB for the pool, touched as it fills; 112 bytes for each client and device, and 400 more once it
// has been held. 1,000 clients on 8 devices, all of which have been held: 6.8 MB.
//
// Thread rule: the daemon's one thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/registry/reason.h"

namespace xschedd {

// What a client does on a device. Untracked: it runs freely and does not report. Silent: it was busy, has not been
// heard from for too long, and counts as idle.
enum class Phase : std::uint8_t { kUntracked, kIdle, kRunning, kHeld, kSilent };
inline constexpr std::size_t kPhases = 5;

using PhaseTimes = std::array<std::uint64_t, kPhases>;  // ns, by Phase

// A time by the daemon's clock, and the client's GPU time in its ledger at that time. The client may have falsified the
// latter: what is counted is limited to the time that has passed.
struct Moment {
  std::uint64_t now_ns = 0;
  std::uint64_t gpu_ns = 0;
};

struct HeldSpan {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  Reason reason;
};

// All holds for one reason. `is_others`: those that did not fit into the bounded memory, for whatever reasons.
struct HeldTotal {
  Reason reason;
  bool is_others = false;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t longest_ns = 0;
};

// What a client did on a device in a span of time.
struct Account {
  std::uint64_t from_ns = 0;  // as requested, or later if the daemon does not remember that far back
  std::uint64_t to_ns = 0;
  PhaseTimes phase_ns{};  // adds up to to_ns - from_ns
  std::uint64_t gpu_ns = 0;
  std::uint64_t late = 0;         // deadlines missed
  std::vector<HeldTotal> causes;  // at most history::kTotals; the rest is added up in one entry with `is_others`
  std::vector<HeldSpan> spans;    // oldest first, cut to from_ns; the current one ends at to_ns
};

namespace history {

inline constexpr std::size_t kBuckets = 16'384;
inline constexpr std::size_t kCauses = 4;  // of a bucket; if there are more causes, the last one stands for the rest
inline constexpr std::size_t kSpans = 16;
inline constexpr std::size_t kTotals = 64;
inline constexpr std::uint64_t kBucketNs = policy::kNsPerS;
// A bucket with no room for another cause ends early, but not before this.
inline constexpr std::uint64_t kShortBucketNs = kBucketNs / 4;

struct PackedReason {
  std::uint32_t pid;
  std::int16_t priority;
  std::uint8_t why;
  std::uint8_t is_others : 1;
  std::uint8_t is_observed : 1;
  bool operator==(const PackedReason&) const = default;
};

struct Cause {
  PackedReason reason;
  std::uint64_t total_ns;
  std::uint32_t longest_us;
  std::uint32_t count;  // 0: not in use
};

// Longer than two seconds only if one phase fills it, and not if that is kRunning.
struct Bucket {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  PhaseTimes phase_ns;
  std::uint64_t gpu_ns;
  std::uint32_t late;
  std::uint32_t back;  // how many buckets back in the pool its predecessor in the same history is; 0: there is none
  std::array<Cause, kCauses> causes;
};
static_assert(sizeof(Bucket) == 168);

}  // namespace history

// The buckets of all clients. Only the last kBuckets exist.
class HistoryPool {
 public:
  HistoryPool();

  // The number of a new bucket, all zero. Numbers grow by one and are never 0.
  std::uint64_t Take();
  // Null when the bucket has been overwritten.
  history::Bucket* Find(std::uint64_t number);
  const history::Bucket* Find(std::uint64_t number) const { return const_cast<HistoryPool*>(this)->Find(number); }

 private:
  std::unique_ptr<history::Bucket[]> buckets_;
  std::uint64_t next_ = 1;
};

// The history of one client on one device.
class History {
 public:
  // The client was attached, and is still untracked.
  void Begin(std::uint64_t now_ns);

  Phase Current() const { return phase_; }
  // Enters a phase; `reason` counts for kHeld only. False: nothing changed.
  bool Change(HistoryPool& pool, Phase phase, const Reason& reason, const Moment& moment);
  // The client is gone: accounts for the time up to `moment`, in its current phase.
  void End(HistoryPool& pool, const Moment& moment) { Settle(pool, moment); }
  // A deadline was missed.
  void AddLate(HistoryPool& pool, const Moment& moment);

  enum class Detail { kTimes, kCauses };  // without or with causes and spans
  // `from_ns` 0: as far back as is remembered. The cost grows with what it finds: 6 ms where one client has filled the
  // pool.
  Account Since(const HistoryPool& pool, std::uint64_t from_ns, const Moment& moment,
                Detail detail = Detail::kCauses) const;

  // Call it at least twice a second while tracked: for Recent, and so that GPU time is known by the second even if the
  // client runs without a pause.
  void Sample(HistoryPool& pool, const Moment& moment);
  struct Recently {
    std::uint64_t time_ns = 0;
    std::uint64_t gpu_ns = 0;
  };
  // GPU time of the last second and up to half a second more; nothing while untracked.
  Recently Recent(const Moment& moment) const;

 private:
  struct Span {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    history::PackedReason reason;
  };
  using Spans = std::array<Span, history::kSpans>;

  void Settle(HistoryPool& pool, const Moment& moment);
  history::Bucket& BucketFor(HistoryPool& pool, std::uint64_t length_ns);
  std::uint64_t GpuSince(const Moment& moment) const;
  void AddSpan(std::uint64_t end_ns);

  std::uint64_t settled_ns_ = 0;  // everything before this is in the buckets
  std::uint64_t entered_ns_ = 0;  // the current phase
  std::uint64_t gpu_settled_ns_ = 0;
  std::uint64_t last_bucket_ = 0;  // 0: none
  std::unique_ptr<Spans> spans_;
  std::uint64_t span_count_ = 0;
  std::array<Moment, 3> samples_{};  // oldest first, half a second apart
  history::PackedReason reason_{};
  Phase phase_ = Phase::kUntracked;
};
static_assert(sizeof(History) <= 128);

}  // namespace xschedd
