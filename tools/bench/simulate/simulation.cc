#include "tools/bench/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "daemon/policy/owner_weight.h"
#include "tools/bench/simulate/client.h"
#include "tools/bench/simulate/device.h"
#include "tools/bench/simulate/event_queue.h"
#include "tools/bench/simulate/lane.h"
#include "tools/bench/simulate/random.h"
#include "tools/bench/simulate/scheduler.h"
#include "tools/bench/simulate/share_meter.h"

namespace xschedd::simulate {
namespace {

constexpr std::uint64_t kWeightParts = 1 << 20;  // a weight's parts are whole numbers

class Simulation {
 public:
  Simulation(const Workload& workload, const Parameters& parameters)
      : workload_(workload),
        parameters_(parameters),
        devices_(workload.devices, Device(workload.kind)),
        device_event_ns_(workload.devices, policy::kNever),
        meters_(workload.devices) {
    MakeClients();
    MakeMeters();
    scheduler_.emplace(workload_, parameters_, lanes_, events_);
  }

  Results Run() {
    for (std::uint32_t i = 0; i < clients_.size(); ++i)
      Start(i);
    while (!events_.IsEmpty() && events_.NextNs() < workload_.length_ns) {
      const Event event = events_.Pop();
      now_ns_ = event.time_ns;
      ++handled_;
      Handle(event);
    }
    now_ns_ = workload_.length_ns;
    for (std::uint32_t i = 0; i < devices_.size(); ++i)
      Advance(i);
    return Finish();
  }

 private:
  void MakeClients() {
    if (!workload_.kind.HasSlices()) {
      for (Device& device : devices_)
        device.AddContext();
    }
    std::map<std::string, std::uint32_t> classes;
    std::map<std::string, std::uint32_t> barriers;
    std::uint64_t seed = parameters_.seed;
    for (const ClientSpec& spec : workload_.clients) {
      const auto index = static_cast<std::uint32_t>(clients_.size());
      const auto [known, is_new] = classes.emplace(spec.class_name, results_.classes.size());
      if (is_new) results_.classes.emplace_back().name = spec.class_name;
      ClassResult& class_result = results_.classes[known->second];
      ++class_result.clients;
      class_result.has_deadline = class_result.has_deadline || spec.deadline_ns != 0;
      seed = Random(seed).Next();
      clients_.push_back(Client{.spec = &spec,
                                .class_index = known->second,
                                .first_lane = static_cast<std::uint32_t>(lanes_.size()),
                                .source = ArrivalSource(spec, seed),
                                .backlog = {}});
      if (spec.barrier) {
        const auto [barrier, is_first] = barriers.emplace(spec.group, barriers_.size());
        if (is_first) barriers_.emplace_back();
        clients_.back().barrier = barrier->second;
        barriers_[barrier->second].members.push_back(index);
      }
      for (const std::uint32_t device : spec.devices) {
        Lane& lane = lanes_.emplace_back();
        lane.client = index;
        lane.device = device;
        lane.streams = spec.streams;
        lane.spread = spec.spread;
        if (workload_.kind.HasSlices()) lane.context = devices_[device].AddContext();
      }
    }
  }

  // Shares are measured only on devices that all clients saturate.
  void MakeMeters() {
    for (std::uint32_t device = 0; device < workload_.devices; ++device) {
      std::vector<double> due(results_.classes.size(), 0.0);
      double all = 0;
      bool is_saturated = true;
      std::map<std::string, policy::OwnerWeight> owners;
      const auto owner_of = [&](const Lane& lane) -> policy::OwnerWeight& {
        const ClientSpec& spec = *clients_[lane.client].spec;
        return owners[spec.owner.empty() ? "client " + std::to_string(lane.client) : "owner " + spec.owner];
      };
      for (const Lane& lane : lanes_) {
        if (lane.device != device) continue;
        const ClientSpec& spec = *clients_[lane.client].spec;
        is_saturated = is_saturated && spec.arrivals.kind == ArrivalKind::kSaturating;
        owner_of(lane).Add(spec.weight);
      }
      for (const Lane& lane : lanes_) {
        if (lane.device != device) continue;
        const auto part = static_cast<double>(owner_of(lane).PartOf(clients_[lane.client].spec->weight, kWeightParts));
        due[clients_[lane.client].class_index] += part;
        all += part;
      }
      if (!is_saturated || all == 0) continue;
      for (double& part : due)
        part /= all;
      meters_[device].emplace(due, workload_.length_ns);
    }
  }

  // ---- clients

  void Start(std::uint32_t index) {
    Client& client = clients_[index];
    if (client.source.IsOpen()) return PushArrival(index);
    const bool is_given = client.spec->arrivals.kind == ArrivalKind::kGivenClosed;
    if (is_given && client.spec->given.empty()) return;
    events_.Push(is_given ? client.spec->given[0].at_ns : 0, EventKind::kBegin, index);
  }

  void PushArrival(std::uint32_t index) {
    const std::uint64_t next = clients_[index].source.Next();
    if (next < workload_.length_ns) events_.Push(next, EventKind::kArrival, index);
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kArrival:
        Arrive(event.index);
        break;
      case EventKind::kBegin:
        Begin(event.index, now_ns_);
        break;
      case EventKind::kDevice:
        AdvanceDevice(event.index);
        break;
      case EventKind::kHostEnd:
        lanes_[event.index].is_prepared = true;
        Launch(event.index);
        break;
      case EventKind::kGapEnd:
        if (lanes_[event.index].next_launch.IsAtEnd(*lanes_[event.index].program)) {
          EndLane(event.index);
        } else {
          Launch(event.index);
        }
        break;
      case EventKind::kWake:
      case EventKind::kPoll:
        lanes_[event.index].is_waking = false;
        Launch(event.index);
        break;
      case EventKind::kDecide:
        scheduler_->Decide(event.index, now_ns_);
        break;
      case EventKind::kLook:
        scheduler_->DecideIfDue(event.index, now_ns_);
        break;
    }
  }

  void Arrive(std::uint32_t index) {
    Client& client = clients_[index];
    PushArrival(index);
    if (client.is_serving && client.spec->arrivals.drops) {
      ClassResult& result = results_.classes[client.class_index];
      ++result.dropped;
      return;
    }
    client.backlog.Add(now_ns_);
    if (!client.is_serving) Serve(index);
  }

  void Serve(std::uint32_t index) {
    if (!clients_[index].backlog.IsEmpty()) Begin(index, clients_[index].backlog.Take());
  }

  void Begin(std::uint32_t index, std::uint64_t arrival_ns) {
    Client& client = clients_[index];
    const ClientSpec& spec = *client.spec;
    client.is_serving = true;
    client.arrival_ns = arrival_ns;
    client.lanes_left = static_cast<std::uint32_t>(spec.devices.size());
    const Program& program = spec.programs[spec.given.empty() ? 0 : spec.given[client.begun].program];
    ++client.begun;
    for (std::uint32_t i = 0; i < spec.devices.size(); ++i) {
      Lane& lane = lanes_[client.first_lane + i];
      lane.program = &program;
      lane.next_launch = lane.next_start = lane.next_end = Cursor{};
      // The shim does not know when a request arrived, only when its work begins.
      lane.deadline_ns = spec.deadline_ns != 0 ? now_ns_ + spec.deadline_ns : 0;
    }
    for (std::uint32_t i = 0; i < spec.devices.size(); ++i)
      Launch(client.first_lane + i);
  }

  void EndLane(std::uint32_t index) {
    Lane& lane = lanes_[index];
    lane.waiting = Waiting::kNothing;
    Client& client = clients_[lane.client];
    if (--client.lanes_left != 0) return;
    if (!client.spec->barrier) return EndRequest(lane.client);
    Barrier& barrier = barriers_[client.barrier];
    if (++barrier.waiting < barrier.members.size()) return;
    barrier.waiting = 0;
    for (const std::uint32_t member : barrier.members)
      EndRequest(member);
  }

  void EndRequest(std::uint32_t index) {
    Client& client = clients_[index];
    const ClientSpec& spec = *client.spec;
    ClassResult& result = results_.classes[client.class_index];
    const std::uint64_t latency = now_ns_ - client.arrival_ns;
    ++result.requests;
    result.latencies_ns.push_back(latency);
    result.misses += spec.deadline_ns != 0 && latency > spec.deadline_ns ? 1 : 0;
    client.is_serving = false;
    if (client.source.IsOpen()) return Serve(index);
    std::uint64_t think = spec.arrivals.think_ns;
    if (spec.arrivals.kind == ArrivalKind::kGivenClosed) {
      if (client.begun == spec.given.size()) return;
      think = spec.given[client.begun].at_ns;
    }
    events_.Push(now_ns_ + think, EventKind::kBegin, index);
  }

  // ---- the launching thread

  // Launches until the thread has to wait.
  void Launch(std::uint32_t index) {
    Lane& lane = lanes_[index];
    const Arrivals& arrivals = clients_[lane.client].spec->arrivals;
    const bool saturates = arrivals.kind == ArrivalKind::kSaturating;
    for (;;) {
      if (lane.next_launch.IsAtEnd(*lane.program)) {
        if (!saturates) break;
        lane.next_launch = Cursor{};
      }
      if (saturates && lane.InFlight() >= arrivals.depth) {
        lane.waiting = Waiting::kDepth;
        return;
      }
      const Burst& burst = (*lane.program)[lane.next_launch.burst];
      if (burst.launch_ns != 0 && !lane.is_prepared) {
        lane.waiting = Waiting::kHost;
        events_.Push(now_ns_ + burst.launch_ns, EventKind::kHostEnd, index);
        return;
      }
      SetBusy(lane, true);
      if (lane.gate.held) {
        lane.waiting = Waiting::kGate;
        return;
      }
      if (!lane.HasRoom()) {
        lane.waiting = Waiting::kWindow;
        return;
      }
      const bool syncs = burst.gap_ns != 0;
      lane.is_prepared = false;
      lane.launched_cost_ns += burst.kernel_ns;
      lane.next_launch.Advance(*lane.program);
      ++lane.launched;
      ++results_.launched;
      if (lane.heads < lane.streams) {
        ++lane.heads;
        Advance(lane.device);
        devices_[lane.device].Enqueue(lane.context, index);
        StartKernels(lane.device);
      }
      if (syncs) break;
    }
    lane.waiting = Waiting::kSync;
    if (lane.gate.tells_waits) scheduler_->Touch(lane, now_ns_);
  }

  void SetBusy(Lane& lane, bool busy) {
    if (lane.busy == busy) return;
    if (lane.busy) lane.busy_ns += now_ns_ - lane.busy_changed_ns;
    if (busy) lane.progress_ns = now_ns_;
    lane.busy = busy;
    lane.busy_changed_ns = now_ns_;
    if (lane.gate.tracked) scheduler_->Touch(lane, now_ns_);
  }

  // ---- the device

  // Advances the device to now and counts the time of the kernels that ran.
  void Advance(std::uint32_t index) {
    devices_[index].Advance(now_ns_, [&](std::uint32_t lane_index, std::uint64_t from_ns) {
      Lane& lane = lanes_[lane_index];
      if (meters_[index]) meters_[index]->Add(clients_[lane.client].class_index, from_ns, now_ns_);
      if (lane.gpu_until_ns == now_ns_) return;  // another of its kernels ran, too
      lane.gpu_until_ns = now_ns_;
      lane.gpu_ns += now_ns_ - from_ns;
    });
  }

  void AdvanceDevice(std::uint32_t index) {
    if (device_event_ns_[index] == now_ns_) device_event_ns_[index] = policy::kNever;
    Advance(index);
    std::vector<std::uint32_t> ended = std::move(ended_);
    devices_[index].TakeEnded(ended);
    for (const std::uint32_t lane : ended)
      EndKernel(lane);
    ended_ = std::move(ended);
    StartKernels(index);
  }

  void StartKernels(std::uint32_t device_index) {
    Device& device = devices_[device_index];
    device.Choose([this](std::uint32_t lane) {
      const std::uint32_t slice_us = lanes_[lane].gate.slice_us;
      return slice_us != 0 ? slice_us * policy::kNsPerUs : workload_.kind.slice_ns;
    });
    while (device.CanStart()) {
      const std::uint32_t index = device.NextLane();
      Lane& lane = lanes_[index];
      if (lane.next_start.IsAtEnd(*lane.program)) lane.next_start = Cursor{};  // of a saturating client
      device.Start(Duration(index));
      lane.next_start.Advance(*lane.program);
      ++lane.started;
      ++lane.running;
      lane.StartMeasuring(now_ns_);
    }
    const std::uint64_t next = device.NextNs();
    if (next >= device_event_ns_[device_index]) return;
    device_event_ns_[device_index] = next;
    events_.Push(next, EventKind::kDevice, device_index);
  }

  std::uint64_t Duration(std::uint32_t index) const {
    const Lane& lane = lanes_[index];
    const std::uint64_t usual = (*lane.program)[lane.next_start.burst].kernel_ns;
    if (lane.spread == 0) return usual;
    // Depends on the kernel's number, not on the order of events, so that a kernel takes equally long under every
    // policy.
    Random random(parameters_.seed ^ (std::uint64_t{index} << 40) ^ lane.started);
    const double factor = 1 + lane.spread * (2 * random.Uniform() - 1);
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(usual) * factor), 1);
  }

  void EndKernel(std::uint32_t index) {
    Lane& lane = lanes_[index];
    ++lane.completed;
    lane.NoteProgress(now_ns_);
    ++results_.completed;
    if (lane.next_end.IsAtEnd(*lane.program)) lane.next_end = Cursor{};  // of a saturating client
    lane.completed_cost_ns += (*lane.program)[lane.next_end.burst].kernel_ns;
    lane.next_end.Advance(*lane.program);
    --lane.running;
    --lane.heads;
    if (workload_.kind.HasSlices() ? lane.InFlight() == 0 : lane.running == 0) lane.StopMeasuring(now_ns_);
    const std::uint64_t queued = lane.launched - lane.started;
    if (queued > lane.heads - lane.running) {
      ++lane.heads;
      devices_[lane.device].Enqueue(lane.context, index);
    }
    StartKernels(lane.device);

    ClassResult& result = results_.classes[clients_[lane.client].class_index];
    ++result.kernels;
    const std::uint64_t report_ns = parameters_.report_us * policy::kNsPerUs;
    const bool is_done = lane.InFlight() == 0;
    // A marker or a synchronisation proves the completion.
    if (is_done || lane.IsMarkerReached(report_ns)) lane.Settle(now_ns_);
    switch (lane.waiting) {
      case Waiting::kSync:
        if (is_done) EndSync(index);
        break;
      case Waiting::kDepth:
        Launch(index);
        break;
      case Waiting::kWindow:
        if (!lane.is_waking && lane.HasRoom()) {
          lane.is_waking = true;
          events_.Push(now_ns_ + parameters_.poll_us * policy::kNsPerUs, EventKind::kPoll, index);
        }
        break;
      case Waiting::kNothing:
      case Waiting::kGate:
      case Waiting::kHost:
      case Waiting::kGap:
        break;
    }
  }

  void EndSync(std::uint32_t index) {
    Lane& lane = lanes_[index];
    SetBusy(lane, false);
    // The kernel that the thread waited for is the one before the next launch.
    const Cursor& next = lane.next_launch;
    const Burst& burst = (*lane.program)[next.done > 0 ? next.burst : next.burst - 1];
    if (burst.gap_ns == 0) return EndLane(index);
    lane.waiting = Waiting::kGap;
    events_.Push(now_ns_ + burst.gap_ns, EventKind::kGapEnd, index);
  }

  // ---- results

  Results Finish() {
    results_.length_ns = workload_.length_ns;
    results_.events = handled_;
    results_.decisions = scheduler_->Decisions();
    results_.gate_changes = scheduler_->GateChanges();
    for (const Device& device : devices_) {
      results_.device_busy_ns.push_back(device.BusyNs());
      results_.context_switches += device.Switches();
    }
    for (Lane& lane : lanes_) {
      const Client& client = clients_[lane.client];
      ClassResult& result = results_.classes[client.class_index];
      results_.left += lane.InFlight();
      result.gpu_ns += lane.gpu_ns;
      lane.NoteProgress(now_ns_);
      result.longest_ns = std::max(result.longest_ns, lane.longest_ns);
      result.work_ns += lane.busy_ns + (lane.busy ? now_ns_ - lane.busy_changed_ns : 0);
      result.held_ns += scheduler_->HeldNs(lane, now_ns_);
      result.beside_ns += scheduler_->BesideNs(lane, now_ns_);
      if (client.spec->arrivals.kind == ArrivalKind::kSaturating) result.requests += lane.completed;
    }
    for (std::uint32_t i = 0; i < results_.classes.size(); ++i) {
      ClassResult& result = results_.classes[i];
      std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
      result.share_error = WorstShareError(i);
    }
    return std::move(results_);
  }

  double WorstShareError(std::uint32_t class_index) const {
    double worst = std::numeric_limits<double>::quiet_NaN();
    for (const Lane& lane : lanes_) {
      if (clients_[lane.client].class_index != class_index) continue;
      if (!meters_[lane.device]) return std::numeric_limits<double>::quiet_NaN();
      worst = std::fmax(worst, meters_[lane.device]->WorstError(class_index));
    }
    return worst;
  }

  const Workload& workload_;
  const Parameters& parameters_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t handled_ = 0;
  EventQueue events_;
  std::vector<Device> devices_;
  std::vector<std::uint64_t> device_event_ns_;     // of each device, the earliest kDevice on its way
  std::vector<std::uint32_t> ended_;               // scratch
  std::vector<std::optional<ShareMeter>> meters_;  // of each device
  std::vector<Client> clients_;
  std::vector<Lane> lanes_;
  std::vector<Barrier> barriers_;
  std::optional<Scheduler> scheduler_;  // when the lanes are complete
  Results results_;
};

}  // namespace

double ClassResult::QuantileMs(double fraction) const {
  if (latencies_ns.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(fraction * static_cast<double>(latencies_ns.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return static_cast<double>(latencies_ns[std::min(index, latencies_ns.size() - 1)]) / 1e6;
}

std::uint64_t Results::GpuNs() const {
  std::uint64_t sum = 0;
  for (const ClassResult& result : classes)
    sum += result.gpu_ns;
  return sum;
}

Results Simulate(const Workload& workload, const Parameters& parameters) {
  return Simulation(workload, parameters).Run();
}

}  // namespace xschedd::simulate
