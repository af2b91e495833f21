#include "daemon/registry/history.h"

#include <algorithm>

namespace xschedd {
namespace {

using history::Bucket;
using history::Cause;
using history::kBucketNs;
using history::kBuckets;
using history::kSpans;
using history::PackedReason;

constexpr std::uint64_t kSampleNs = policy::kNsPerS / 2;
// A client may report GPU time after using it, at the end of a long kernel, but only this much later.
constexpr std::uint64_t kMaxArrearsNs = policy::kNsPerS;

PackedReason Pack(const Reason& reason) {
  return {static_cast<std::uint32_t>(reason.pid), static_cast<std::int16_t>(reason.priority),
          static_cast<std::uint8_t>(reason.why), 0, reason.is_observed};
}

Reason Unpack(const PackedReason& packed) {
  return {static_cast<policy::Why>(packed.why), packed.pid, packed.priority, packed.is_observed != 0};
}

std::size_t Index(Phase phase) {
  return static_cast<std::size_t>(phase);
}

std::uint64_t Scale(std::uint64_t value, std::uint64_t part, std::uint64_t whole) {
  __extension__ using Wide = unsigned __int128;  // ns times ns
  return static_cast<std::uint64_t>(static_cast<Wide>(value) * part / whole);
}

constexpr PackedReason kOthers{.pid = 0, .priority = 0, .why = 0, .is_others = 1, .is_observed = 0};

// The cause's place in the bucket; null: there is no room for another one.
Cause* FindCause(Bucket& bucket, const PackedReason& reason) {
  for (Cause& cause : bucket.causes) {
    if (cause.count == 0 || cause.reason == reason) return &cause;
  }
  return nullptr;
}

void AddHold(Bucket& bucket, const PackedReason& reason, std::uint64_t ns, bool begins_here) {
  Cause* cause = FindCause(bucket, reason);
  if (cause == nullptr) {
    cause = &bucket.causes.back();
    cause->reason = kOthers;
  } else if (cause->count == 0) {
    cause->reason = reason;
  }
  // A hold that began in an earlier bucket is counted there; but a cause that is in use must not have count 0.
  if (begins_here || cause->count == 0) ++cause->count;
  cause->total_ns += ns;
  const std::uint64_t us = std::min<std::uint64_t>(ns / policy::kNsPerUs, std::numeric_limits<std::uint32_t>::max());
  cause->longest_us = std::max(cause->longest_us, static_cast<std::uint32_t>(us));
}

HeldTotal& TotalFor(Account& account, const PackedReason& reason) {
  const Reason wanted = Unpack(reason);
  for (HeldTotal& total : account.causes) {
    if (total.is_others == (reason.is_others != 0) && total.reason == wanted) return total;
  }
  // One entry is kept for the others.
  if (account.causes.size() >= history::kTotals - 1 && reason.is_others == 0) return TotalFor(account, kOthers);
  account.causes.push_back({.reason = wanted, .is_others = reason.is_others != 0});
  return account.causes.back();
}

// Adds the part of the bucket after `from_ns`. What happened within a bucket is assumed to be spread evenly over it.
void AddBucket(const Bucket& bucket, std::uint64_t from_ns, History::Detail detail, Account& account) {
  const std::uint64_t whole = bucket.end_ns - bucket.start_ns;
  const std::uint64_t part = bucket.end_ns - std::max(bucket.start_ns, from_ns);
  if (whole == 0) {
    account.late += bucket.late;
    return;
  }
  PhaseTimes times{};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kPhases; ++i)
    sum += times[i] = Scale(bucket.phase_ns[i], part, whole);
  *std::max_element(times.begin(), times.end()) += part - sum;  // what rounding lost
  for (std::size_t i = 0; i < kPhases; ++i)
    account.phase_ns[i] += times[i];
  account.gpu_ns += Scale(bucket.gpu_ns, part, whole);
  account.late += Scale(bucket.late, part, whole);
  if (detail == History::Detail::kTimes) return;
  for (const Cause& cause : bucket.causes) {
    if (cause.count == 0) continue;
    HeldTotal& total = TotalFor(account, cause.reason);
    total.count += std::max<std::uint64_t>(1, Scale(cause.count, part, whole));
    total.total_ns += Scale(cause.total_ns, part, whole);
    total.longest_ns = std::max(total.longest_ns, std::min(part, cause.longest_us * policy::kNsPerUs));
  }
}

}  // namespace

// Not initialised: pages of the pool that have not been used cost no memory.
HistoryPool::HistoryPool() : buckets_(new Bucket[kBuckets]) {}

std::uint64_t HistoryPool::Take() {
  buckets_[next_ % kBuckets] = Bucket{};
  return next_++;
}

Bucket* HistoryPool::Find(std::uint64_t number) {
  if (number == 0 || number + kBuckets < next_) return nullptr;
  return &buckets_[number % kBuckets];
}

void History::Begin(std::uint64_t now_ns) {
  settled_ns_ = entered_ns_ = now_ns;
}

bool History::Change(HistoryPool& pool, Phase phase, const Reason& reason, const Moment& moment) {
  const PackedReason packed = phase == Phase::kHeld ? Pack(reason) : PackedReason{};
  if (phase == phase_ && packed == reason_) return false;
  Settle(pool, moment);
  if (phase_ == Phase::kHeld) AddSpan(settled_ns_);
  if (phase_ == Phase::kUntracked) {
    samples_.fill(moment);
    gpu_settled_ns_ = moment.gpu_ns;  // GPU time counts only while tracked
  }
  phase_ = phase;
  reason_ = packed;
  entered_ns_ = settled_ns_;
  return true;
}

void History::AddLate(HistoryPool& pool, const Moment& moment) {
  Settle(pool, moment);
  Bucket* bucket = pool.Find(last_bucket_);
  if (bucket == nullptr) bucket = &BucketFor(pool, 0);
  ++bucket->late;
}

// Adds the time since the last change to a bucket.
void History::Settle(HistoryPool& pool, const Moment& moment) {
  if (moment.now_ns <= settled_ns_) return;
  const std::uint64_t length = moment.now_ns - settled_ns_;
  Bucket& bucket = BucketFor(pool, length);
  bucket.phase_ns[Index(phase_)] += length;
  if (phase_ == Phase::kHeld) AddHold(bucket, reason_, length, entered_ns_ == settled_ns_);
  const std::uint64_t gpu = GpuSince(moment);
  bucket.gpu_ns += gpu;
  gpu_settled_ns_ += gpu;
  const bool went_back = moment.gpu_ns < gpu_settled_ns_;
  if (went_back || moment.gpu_ns - gpu_settled_ns_ > kMaxArrearsNs) {
    gpu_settled_ns_ = went_back ? moment.gpu_ns : moment.gpu_ns - kMaxArrearsNs;
  }
  bucket.end_ns = settled_ns_ = moment.now_ns;
}

Bucket& History::BucketFor(HistoryPool& pool, std::uint64_t length_ns) {
  Bucket* const current = pool.Find(last_bucket_);
  if (current != nullptr) {
    const std::uint64_t age = settled_ns_ - current->start_ns;
    const bool has_room = phase_ != Phase::kHeld || FindCause(*current, reason_) != nullptr;
    // A long time in one phase gets a bucket of its own, so that a part of it can be cut off exactly.
    const bool is_full =
        age >= kBucketNs || (length_ns >= kBucketNs && age != 0) || (!has_room && age >= history::kShortBucketNs);
    if (!is_full) return *current;
  }
  const std::uint64_t number = pool.Take();
  Bucket& fresh = *pool.Find(number);
  fresh.start_ns = fresh.end_ns = settled_ns_;
  // A predecessor more than kBuckets back has been overwritten anyway.
  if (last_bucket_ != 0 && number - last_bucket_ < kBuckets)
    fresh.back = static_cast<std::uint32_t>(number - last_bucket_);
  last_bucket_ = number;
  return fresh;
}

std::uint64_t History::GpuSince(const Moment& moment) const {
  if (phase_ == Phase::kUntracked || moment.gpu_ns <= gpu_settled_ns_ || moment.now_ns <= settled_ns_) return 0;
  return std::min(moment.gpu_ns - gpu_settled_ns_, moment.now_ns - settled_ns_);
}

void History::AddSpan(std::uint64_t end_ns) {
  if (end_ns == entered_ns_) return;
  if (spans_ == nullptr) spans_ = std::make_unique<Spans>();
  (*spans_)[span_count_++ % kSpans] = {entered_ns_, end_ns, reason_};
}

Account History::Since(const HistoryPool& pool, std::uint64_t from_ns, const Moment& moment, Detail detail) const {
  Account account;
  account.to_ns = std::max(moment.now_ns, settled_ns_);
  account.from_ns = settled_ns_;
  // Backwards in time: first what is in no bucket yet.
  Bucket now{};
  now.start_ns = settled_ns_;
  now.end_ns = account.to_ns;
  now.phase_ns[Index(phase_)] = now.end_ns - now.start_ns;
  now.gpu_ns = GpuSince(moment);
  if (phase_ == Phase::kHeld && now.end_ns > now.start_ns)
    AddHold(now, reason_, now.end_ns - now.start_ns, entered_ns_ == settled_ns_);
  if (now.end_ns > from_ns) AddBucket(now, from_ns, detail, account);
  std::uint64_t number = last_bucket_;
  while (const Bucket* bucket = pool.Find(number)) {
    if (bucket->end_ns <= from_ns) break;
    AddBucket(*bucket, from_ns, detail, account);
    account.from_ns = bucket->start_ns;
    if (bucket->back == 0) break;
    number -= bucket->back;
  }
  account.from_ns = std::min(std::max(account.from_ns, from_ns), account.to_ns);
  if (detail == Detail::kTimes) return account;

  const std::uint64_t kept = std::min<std::uint64_t>(span_count_, kSpans);
  for (std::uint64_t i = span_count_ - kept; i < span_count_; ++i) {
    const Span& span = (*spans_)[i % kSpans];
    if (span.end_ns > from_ns)
      account.spans.push_back({std::max(span.start_ns, from_ns), span.end_ns, Unpack(span.reason)});
  }
  if (phase_ == Phase::kHeld && account.to_ns > entered_ns_)
    account.spans.push_back({std::max(entered_ns_, from_ns), account.to_ns, Unpack(reason_)});
  return account;
}

void History::Sample(HistoryPool& pool, const Moment& moment) {
  if (phase_ == Phase::kRunning && moment.now_ns >= settled_ns_ + kBucketNs) Settle(pool, moment);
  if (moment.now_ns - samples_[2].now_ns < kSampleNs) return;
  samples_ = {samples_[1], samples_[2], moment};
}

History::Recently History::Recent(const Moment& moment) const {
  const Moment& then = samples_[0];
  if (phase_ == Phase::kUntracked || moment.now_ns <= then.now_ns) return {};
  const std::uint64_t time = moment.now_ns - then.now_ns;
  return {time, std::min(time, moment.gpu_ns > then.gpu_ns ? moment.gpu_ns - then.gpu_ns : 0)};
}

}  // namespace xschedd
