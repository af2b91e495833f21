#include "daemon/metrics/metrics_families.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/registry/process.h"
#include "daemon/telemetry/log.h"
#include "daemon/telemetry/meter.h"

namespace xschedd {
namespace {

using Sources = MetricsSources;
using Each = MetricWriter::Each;
using Place = std::size_t;

constexpr char kDevice[] = "device";  // the PCI address
constexpr char kClass[] = "class";
constexpr char kClaim[] = "claim";
constexpr char kSpace[] = "space";  // a namespace or partition
// No claim has this name: it does not begin with a letter or a digit.
constexpr char kOtherClaims[] = "_other";  // and spaces
constexpr std::size_t kClaimLabelBytes = 64;
constexpr std::string_view kPhaseNames[kPhases] = {"untracked", "idle", "running", "held", "silent"};

const Meter& MeterOf(const Sources& from) {
  return from.core.GetScheduler().Records().Metrics();
}

// Null: that place is empty.
const DeviceAccount* DeviceAt(const Sources& from, Place place) {
  const DeviceAccount& device = MeterOf(from).Devices()[place];
  // "other" is shown only if something is in it.
  const bool is_empty = device.id.empty() || (place == 0 && device.decisions == 0);
  return is_empty ? nullptr : &device;
}

struct Row {
  const ClassAccount* account = nullptr;
  std::string_view device;
  std::string_view klass;
  explicit operator bool() const { return account != nullptr; }
  const Usage& Total() const { return account->total; }
  const Present& Now() const { return account->present; }
};

Row RowAt(const Sources& from, Place place) {
  const Meter& meter = MeterOf(from);
  const ClassAccount& account = meter.Accounts()[place];
  if (account.device == kNoAccount) return {};
  // "other" may be unused.
  const bool is_unused = place == 0 && account.total.became_busy == 0 && account.total.launches == 0 &&
                         account.present.clients == Present().clients;
  if (is_unused) return {};
  return {&account, meter.Devices()[account.device].id, meter.Classes()[account.klass]};
}

// `write` gets the name and the usage of each claim that has a series, and of all others together.
template <typename Write>
void ForClaims(const Sources& from, const Write& write) {
  const ClaimAccounts& claims = MeterOf(from).Claims();
  for (const std::uint64_t id : claims.Series()) {
    const ClaimAccount& account = *claims.Find(id);
    write(account.claim->name, account.in_series);
  }
  if (claims.IsUsed()) write(kOtherClaims, claims.Rest());
}

// The claims that last and have a series.
template <typename Write>
void ForLastingClaims(const Sources& from, const Write& write) {
  const ClaimAccounts& claims = MeterOf(from).Claims();
  for (const std::uint64_t id : claims.Series()) {
    const ClaimAccount& account = *claims.Find(id);
    if (account.end_order == 0) write(*account.claim);
  }
}

// The same for spaces.
template <typename Write>
void ForSpaces(const Sources& from, const Write& write) {
  const SpaceAccounts::Used& used = MeterOf(from).Spaces().AllUsed();
  if (used.IsEmpty()) return;
  used.ForEach(write);
  write(kOtherClaims, used.Rest());
}

std::string ShortLabel(const Claim& claim, const char* name) {
  return CleanText(LabelOf(claim, name), kClaimLabelBytes);
}

// When the daemon started, in s of the current wall clock.
double StartTime(const Core& core) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto wall_ns =
      static_cast<std::uint64_t>(now.tv_sec) * policy::kNsPerS + static_cast<std::uint64_t>(now.tv_nsec);
  // Rounded to ms, because the difference of two clocks varies slightly.
  const std::uint64_t wall_ms = (wall_ns - (MonotonicNs() - core.StartedNs())) / policy::kNsPerMs;
  return static_cast<double>(wall_ms) / 1000;
}

std::uint64_t CpuNs() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * policy::kNsPerS + static_cast<std::uint64_t>(time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

std::uint64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long pages = 0;
  const bool read = std::fscanf(file, "%*u %llu", &pages) == 1;
  std::fclose(file);
  return read ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

constexpr MetricWriter kWriters[] = {
    // ---- the daemon
    {{"xschedd_build", MetricType::kInfo, "", "Release of the daemon and of its shared-memory layout."},
     Each::kOnce,
     [](const Sources&, Place, Exposition& out) {
       out.Sample({{"version", kDaemonVersion}, {"abi", std::to_string(abi::Newest().version)}}, 1u);
     }},
    {{"process_start_time_seconds", MetricType::kGauge, "seconds", "When the daemon started, since the epoch."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, StartTime(from.core)); }},
    {{"process_cpu_seconds", MetricType::kCounter, "seconds", "Processor time that the daemon has used."},
     Each::kOnce,
     [](const Sources&, Place, Exposition& out) { out.Seconds({}, CpuNs()); }},
    {{"process_resident_memory_bytes", MetricType::kGauge, "bytes", "Memory of the daemon that is resident."},
     Each::kOnce,
     [](const Sources&, Place, Exposition& out) { out.Sample({}, ResidentBytes()); }},
    {{"xschedd_restarts", MetricType::kCounter, "",
      "How many daemons before this one have handed their state on, since the service was started."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.Restarts()); }},
    {{"xschedd_policy", MetricType::kInfo, "", "The policy in force."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       out.Sample({{"policy", policy::Text(from.core.Settings().policy.name)}}, 1u);
     }},
    {{"xschedd_enabled", MetricType::kGauge, "",
      "0 while xschedctl disable is in force: all gates are open and no new clients are taken."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.IsEnabled() ? 1u : 0u); }},
    {{"xschedd_draining", MetricType::kGauge, "", "1 - xschedd_enabled; its name in 0.1.0."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.IsEnabled() ? 0u : 1u); }},
    {{"xschedd_enforcing", MetricType::kGauge, "",
      "0 where the daemon observes only: nobody is held, and what is counted as held would have been."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.Settings().enforce ? 1u : 0u); }},
    {{"xschedd_clients", MetricType::kGauge, "", "Clients that have a session, with or without a device."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.Clients().Clients().size()); }},
    {{"xschedd_connections", MetricType::kCounter, "", "Connections that were accepted on both sockets."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.connections.Total()); }},
    {{"xschedd_refusals", MetricType::kCounter, "",
      "Connections, sessions and calls that were refused, for whatever reason."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Sample({}, from.core.RefusedTotal()); }},
    {{"xschedd_quota_refusals", MetricType::kCounter, "", "What quotas have refused or slowed down."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       for (std::size_t i = 0; i < kQuotaKinds; ++i) {
         const auto kind = static_cast<QuotaKind>(i);
         out.Sample({{"quota", Text(kind)}}, from.quotas.Refused(kind));
       }
     }},
    {{"xschedd_refused_records", MetricType::kCounter, "", "Jumps of a client's count of records in shared memory."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       out.Sample({}, from.core.GetScheduler().Counts().refused_records);
     }},
    {{"xschedd_log_lines_dropped", MetricType::kCounter, "", "Lines kept out of the log, so that nobody floods it."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       out.Sample({{"subject", "clients"}}, from.core.ClientLinesLeftOut());
       out.Sample({{"subject", "refusals"}}, from.core.RefusalLinesLeftOut());
       out.Sample({{"subject", "deadlines"}}, from.core.GetScheduler().Records().LateLinesLeftOut());
       out.Sample({{"subject", "libraries"}}, LibraryLinesLeftOut());
       out.Sample({{"subject", "anything"}}, LogLinesLost());
     }},
    {{"xschedd_gate_writes", MetricType::kCounter, "", "Gates that were written because a decision changed them."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       out.Sample({}, from.core.GetScheduler().Counts().gate_writes);
     }},
    {{"xschedd_metrics_requests", MetricType::kCounter, "", "Requests for these metrics, and what became of them."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       const MetricsCounts& counts = from.counts;
       out.Sample({{"source", "http"}, {"result", "answered"}}, counts.over_http);
       out.Sample({{"source", "http"}, {"result", "timed_out"}}, counts.timed_out);
       out.Sample({{"source", "http"}, {"result", "bad"}}, counts.bad_requests);
       out.Sample({{"source", "http"}, {"result", "displaced"}}, counts.displaced);
       out.Sample({{"source", "admin_socket"}, {"result", "answered"}}, counts.over_admin_socket);
     }},
    {{"xschedd_metrics_collection_seconds", MetricType::kGauge, "seconds",
      "Time of the daemon's thread that the last count of these metrics took, in small pieces."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) { out.Seconds({}, from.counts.last_cost_ns); }},

    // ---- devices
    {{"xschedd_device", MetricType::kInfo, "",
      "Devices that clients use or have used. The uuid is the driver's, by which the vendors' exporters name a GPU."},
     Each::kDevice,
     [](const Sources& from, Place place, Exposition& out) {
       if (const DeviceAccount* const device = DeviceAt(from, place)) {
         out.Sample({{kDevice, device->id}, {"uuid", device->uuid}, {"vendor", device->vendor}, {"name", device->name}},
                    1u);
       }
     }},
    {{"xschedd_device_utilization_ratio", MetricType::kGauge, "ratio",
      "Part of the last second that kernels of xschedd's clients ran, as these measure it. Absent while a client of "
      "the "
      "device is untracked: nobody measures then."},
     Each::kDevice,
     [](const Sources& from, Place place, Exposition& out) {
       const DeviceAccount* const device = DeviceAt(from, place);
       if (device == nullptr || device->utilization < 0) return;
       out.Sample({{kDevice, device->id}}, device->utilization);
     }},
    {{"xschedd_decisions", MetricType::kCounter, "",
      "Decisions about who may run on the device. One that concerns several devices counts for each."},
     Each::kDevice,
     [](const Sources& from, Place place, Exposition& out) {
       if (const DeviceAccount* const device = DeviceAt(from, place)) {
         out.Sample({{kDevice, device->id}}, device->decisions);
       }
     }},
    {{"xschedd_decision_latency_seconds", MetricType::kHistogram, "seconds",
      "From the moment that the daemon sees a transition until its gates are written."},
     Each::kDevice,
     [](const Sources& from, Place place, Exposition& out) {
       if (const DeviceAccount* const device = DeviceAt(from, place)) {
         out.Histogram({{kDevice, device->id}}, device->latency);
       }
     }},

    {{"xschedd_unscheduled_processes", MetricType::kGauge, "",
      "Processes that compute on the device and are no clients, nor children of one. Absent until the second count."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       if (!from.unscheduled) return;
       for (const auto& [device, count] : *from.unscheduled)
         out.Sample({{kDevice, device}}, count);
     }},

    // ---- claims
    {{"xschedd_claim", MetricType::kInfo, "", "The labels of a claim that has a series of its own."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       for (const std::uint64_t id : MeterOf(from).Claims().Series()) {
         const Claim& claim = *MeterOf(from).Claims().Find(id)->claim;
         out.Sample({{kClaim, claim.name},
                     {"namespace", ShortLabel(claim, "namespace")},
                     {"partition", ShortLabel(claim, "partition")},
                     {"pod", ShortLabel(claim, "pod")},
                     {"job", ShortLabel(claim, "job")},
                     {"step", ShortLabel(claim, "step")},
                     {"user", ShortLabel(claim, "user")}},
                    1u);
       }
     }},
    {{"xschedd_claim_gpu_time_seconds", MetricType::kCounter, "seconds",
      "GPU time that the clients of the claim have used on all devices while they were tracked."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForClaims(from, [&](std::string_view claim, const Usage& usage) {
         out.Seconds({{kClaim, claim}}, usage.gpu_ns);
       });
     }},
    {{"xschedd_claim_held_time_seconds", MetricType::kCounter, "seconds",
      "Time for which the clients of the claim had work and a shut gate."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForClaims(from, [&](std::string_view claim, const Usage& usage) {
         out.Seconds({{kClaim, claim}}, usage.held_ns);
       });
     }},
    {{"xschedd_claim_launches", MetricType::kCounter, "",
      "Launches of the clients of the claim while they were tracked."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForClaims(from, [&](std::string_view claim, const Usage& usage) {
         out.Sample({{kClaim, claim}}, usage.launches);
       });
     }},

    {{"xschedd_claim_memory_bytes", MetricType::kGauge, "bytes",
      "Device memory that the clients of the claim count as allocated together, on the device where that is most."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForLastingClaims(from, [&](const Claim& claim) {
         out.Sample({{kClaim, claim.name}}, MeterOf(from).Claims().MemoryBytes(claim.id));
       });
     }},
    {{"xschedd_claim_memory_limit_bytes", MetricType::kGauge, "bytes",
      "The most that they may have together on each device. Absent where the claim sets none."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForLastingClaims(from, [&](const Claim& claim) {
         if (claim.memory_limit) out.Sample({{kClaim, claim.name}}, *claim.memory_limit);
       });
     }},
    {{"xschedd_claim_memory_refusals", MetricType::kCounter, "",
      "Allocations of the clients of the claim that limits of device memory refused."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForClaims(from, [&](std::string_view claim, const Usage& usage) {
         out.Sample({{kClaim, claim}}, usage.memory_refused);
       });
     }},

    // ---- namespaces and partitions
    {{"xschedd_space_gpu_time_seconds", MetricType::kCounter, "seconds",
      "GPU time that the clients of a namespace or partition have used on all devices while they were tracked."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForSpaces(from, [&](std::string_view space, const auto& parts) { out.Seconds({{kSpace, space}}, parts[0]); });
     }},
    {{"xschedd_space_gained_gpu_time_seconds", MetricType::kCounter, "seconds",
      "Of this, the GPU time of clients that would not have had the GPU without sharing."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       ForSpaces(from, [&](std::string_view space, const auto& parts) { out.Seconds({{kSpace, space}}, parts[1]); });
     }},
    {{"xschedd_wait_seconds", MetricType::kCounter, "seconds",
      "Time for which clients of the waiter's namespace or partition had work and a shut gate for one of the "
      "blocker's."},
     Each::kOnce,
     [](const Sources& from, Place, Exposition& out) {
       const SpaceAccounts::Waits& waits = MeterOf(from).Spaces().AllWaits();
       if (waits.IsEmpty()) return;
       waits.ForEach([&](const std::pair<std::string, std::string>& pair, const auto& parts) {
         out.Seconds({{"waiter", pair.first}, {"blocker", pair.second}}, parts[0]);
       });
       out.Seconds({{"waiter", kOtherClaims}, {"blocker", kOtherClaims}}, waits.Rest()[0]);
     }},

    // ---- classes of clients on devices
    {{"xschedd_gpu_time_seconds", MetricType::kCounter, "seconds",
      "GPU time that clients have used while they were tracked, as they measure it."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Seconds({{kDevice, row.device}, {kClass, row.klass}}, row.Total().gpu_ns);
       }
     }},
    {{"xschedd_held_time_seconds", MetricType::kCounter, "seconds",
      "Time for which clients had work and a shut gate, including holds that still last."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Seconds({{kDevice, row.device}, {kClass, row.klass}}, row.Total().held_ns);
       }
     }},
    {{"xschedd_hold_duration_seconds", MetricType::kHistogram, "seconds",
      "How long holds lasted. One that changes its reason counts as two."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Histogram({{kDevice, row.device}, {kClass, row.klass}}, row.account->holds);
       }
     }},
    {{"xschedd_longest_hold_seconds", MetricType::kGauge, "seconds", "How long the longest present hold has lasted."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Seconds({{kDevice, row.device}, {kClass, row.klass}}, row.Now().longest_hold_ns);
       }
     }},
    {{"xschedd_transitions", MetricType::kCounter, "",
      "How often clients became busy and idle while they were tracked."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}, {"state", "busy"}}, row.Total().became_busy);
         out.Sample({{kDevice, row.device}, {kClass, row.klass}, {"state", "idle"}}, row.Total().became_idle);
       }
     }},
    {{"xschedd_launches", MetricType::kCounter, "", "Launches of clients while they were tracked."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Total().launches);
       }
     }},
    {{"xschedd_completions", MetricType::kCounter, "", "Of these launches, those that are known to have finished."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Total().completions);
       }
     }},
    {{"xschedd_passed_calls", MetricType::kCounter, "",
      "Calls let through a gate by configuration (passthrough) while clients were tracked."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Total().passed);
       }
     }},
    {{"xschedd_deadline_misses", MetricType::kCounter, "", "Bursts of work that finished after their deadline."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Total().late);
       }
     }},
    {{"xschedd_device_clients", MetricType::kGauge, "", "Clients that are attached to the device, by what they do."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       const Row row = RowAt(from, place);
       if (!row) return;
       for (std::size_t i = 0; i < kPhases; ++i)
         out.Sample({{kDevice, row.device}, {kClass, row.klass}, {"state", kPhaseNames[i]}}, row.Now().clients[i]);
     }},
    {{"xschedd_lever_clients", MetricType::kGauge, "",
      "Clients for which the daemon has measured whether holding others helps, by when it holds those others."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       const Row row = RowAt(from, place);
       if (!row) return;
       for (std::size_t i = 0; i < std::size(policy::kModeWords); ++i)
         out.Sample({{kDevice, row.device}, {kClass, row.klass}, {"others", policy::kModeWords[i]}},
                    row.Now().modes[i]);
     }},
    {{"xschedd_in_flight", MetricType::kGauge, "", "Launches of tracked clients that are believed unfinished."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Now().in_flight);
       }
     }},
    {{"xschedd_client_memory_bytes", MetricType::kGauge, "bytes",
      "Device memory that clients count as allocated, as their shims see it."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Now().memory_bytes);
       }
     }},
    {{"xschedd_client_memory_limit_bytes", MetricType::kGauge, "bytes",
      "The most device memory that one client may have: the smallest of the class. Absent where none has a limit."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       const Row row = RowAt(from, place);
       if (!row || row.Now().memory_limit_bytes == 0) return;
       out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Now().memory_limit_bytes);
     }},
    {{"xschedd_client_memory_refusals", MetricType::kCounter, "",
      "Allocations of clients that limits of device memory refused."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       if (const Row row = RowAt(from, place)) {
         out.Sample({{kDevice, row.device}, {kClass, row.klass}}, row.Total().memory_refused);
       }
     }},
    {{"xschedd_window_seconds", MetricType::kGauge, "seconds",
      "The most GPU time that one client with an open gate may have in flight: the largest of the class. Absent where "
      "there is none, or no limit."},
     Each::kAccount,
     [](const Sources& from, Place place, Exposition& out) {
       const Row row = RowAt(from, place);
       if (!row || row.Now().window_us == 0) return;
       out.Seconds({{kDevice, row.device}, {kClass, row.klass}}, row.Now().window_us * policy::kNsPerUs);
     }},
};

}  // namespace

std::span<const MetricWriter> MetricWriters() {
  return kWriters;
}

}  // namespace xschedd
