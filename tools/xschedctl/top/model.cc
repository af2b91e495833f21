#include "tools/xschedctl/top/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>

#include "tools/xschedctl/names.h"

namespace xschedd::ctl {
namespace {

constexpr double kNsPerS = 1e9;

std::optional<double> GpuOf(const v1::ClientDevice& device) {
  if (device.recent_ns() == 0) return std::nullopt;
  return static_cast<double>(device.recent_gpu_ns()) / static_cast<double>(device.recent_ns());
}

const v1::Client* FindClient(const v1::ListClientsResponse& answer, std::uint64_t id) {
  const auto found = std::find_if(answer.clients().begin(), answer.clients().end(),
                                  [id](const v1::Client& client) { return client.id() == id; });
  return found == answer.clients().end() ? nullptr : &*found;
}

// Growth of a counter per second; nullopt if it went back (a new session).
std::optional<double> Rate(std::uint64_t before, std::uint64_t after, std::uint64_t time_ns) {
  if (time_ns == 0 || after < before) return std::nullopt;
  return static_cast<double>(after - before) / (static_cast<double>(time_ns) / kNsPerS);
}

// "/usr/bin/python3 serve.py" becomes "python3 serve.py": what does not fit is cut at the end.
std::string WithoutFolder(const std::string& command) {
  const std::size_t end = std::min(command.find(' '), command.size());
  const std::size_t slash = command.rfind('/', end);
  return slash == std::string::npos ? command : command.substr(slash + 1);
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return text;
}

bool Fits(const TopRow& row, const std::string& lower_filter) {
  if (lower_filter.empty()) return true;
  const std::string all = std::to_string(row.pid) + '\n' + std::to_string(row.uid) + '\n' + row.state + '\n' +
                          row.device + '\n' + row.group + '\n' + row.claim + '\n' + row.labels + row.command;
  return Lower(all).find(lower_filter) != std::string::npos;
}

// The number to sort by; nullopt: not known.
std::optional<double> Key(const TopRow& row, TopSort sort) {
  switch (sort) {
    case TopSort::kGpu:
      return row.gpu;
    case TopSort::kPriority:
      return row.priority;
    case TopSort::kHeld:
      return row.held;
    case TopSort::kP99:
      return row.p99_hold_ns ? std::optional(static_cast<double>(*row.p99_hold_ns)) : std::nullopt;
    case TopSort::kLaunches:
      return row.launches_s;
    case TopSort::kInFlight:
      return row.in_flight;
    case TopSort::kMemory:
      return row.memory ? std::optional(static_cast<double>(row.memory->bytes)) : std::nullopt;
    case TopSort::kPid:
    case TopSort::kCommand:
      break;
  }
  return 0;
}

}  // namespace

std::string_view Name(TopSort sort) {
  switch (sort) {
    case TopSort::kGpu:
      return "GPU";
    case TopSort::kPriority:
      return "PRIO";
    case TopSort::kHeld:
      return "HELD";
    case TopSort::kP99:
      return "P99-HOLD";
    case TopSort::kLaunches:
      return "LAUNCH/S";
    case TopSort::kInFlight:
      return "IN-FL";
    case TopSort::kMemory:
      return "MEMORY";
    case TopSort::kPid:
      return "PID";
    case TopSort::kCommand:
      return "COMMAND";
  }
  return "";
}

void TopModel::Add(v1::ListClientsResponse answer, DeviceMemory memory) {
  memory_ = std::move(memory);
  const std::uint64_t now = answer.time_ns();
  answers_.push_back(std::move(answer));
  // Keeps one answer older than kRateNs, so that rates span at least that time.
  while (answers_.size() > 2 && now - answers_[1].time_ns() >= kRateNs)
    answers_.pop_front();
}

void TopModel::Forget() {
  answers_.clear();
  holds_ = Holds();
}

std::vector<TopDevice> TopModel::Devices() const {
  std::vector<TopDevice> devices;
  if (IsEmpty()) return devices;
  for (const v1::Device& device : answers_.back().devices()) {
    TopDevice& added = devices.emplace_back();
    added.address = device.pci_address();
    added.name = device.name();
    added.clients = device.clients();
    added.busy = device.busy();
    added.held = device.held();
    for (const v1::Client& client : answers_.back().clients()) {
      for (const v1::ClientDevice& part : client.devices()) {
        const auto gpu = part.device() == added.address ? GpuOf(part) : std::nullopt;
        if (gpu) added.gpu = added.gpu.value_or(0) + *gpu;
      }
    }
  }
  return devices;
}

std::vector<TopRow> TopModel::Rows(TopSort sort, bool reverse, const std::string& filter) const {
  std::vector<TopRow> rows;
  if (IsEmpty()) return rows;
  const v1::ListClientsResponse& now = answers_.back();
  const v1::ListClientsResponse& before = answers_.front();
  const std::uint64_t passed_ns = now.time_ns() - before.time_ns();
  const std::string wanted = Lower(filter);

  std::map<std::string, double> used;
  for (const TopDevice& device : Devices())
    used[device.address] = device.gpu.value_or(0);

  for (const v1::Client& client : now.clients()) {
    const v1::Client* const old = FindClient(before, client.id());
    TopRow row;
    row.client_id = client.id();
    row.pid = client.pid();
    row.uid = client.uid();
    row.priority = client.priority_effective();
    row.weight = client.weight();
    row.hold = client.hold();
    row.group = client.group();
    if (client.has_claim()) {
      row.claim = client.claim().text().empty() ? client.claim().name() : client.claim().text();
      row.labels = client.claim().name() + '\n';
    }
    for (const auto& [name, value] : client.claim().labels())
      row.labels += fmt::format("{}={}\n", name, value);
    row.command = WithoutFolder(client.command().empty() ? client.exe() : client.command());
    row.state = "no device";
    if (client.devices().empty() && Fits(row, wanted)) rows.push_back(row);
    for (const v1::ClientDevice& device : client.devices()) {
      TopRow part = row;
      part.device = device.device();
      part.state = std::string(Name(device.state()));
      part.waits_for = device.held_for();
      part.in_flight = device.in_flight();
      part.memory = ShownMemory(memory_.Of(client.pid(), part.device), CountedMemory(device));
      part.memory_limit = device.memory_limit();
      part.gpu = GpuOf(device);
      if (part.gpu && used[part.device] > 0) part.share = *part.gpu / used[part.device];
      const bool lasts = device.state() == v1::CLIENT_STATE_HELD || device.state() == v1::CLIENT_STATE_PASSING;
      part.p99_hold_ns = holds_.P99(client.id(), part.device, now.time_ns(), lasts);
      if (old != nullptr) {
        for (const v1::ClientDevice& earlier : old->devices()) {
          if (earlier.slot() != device.slot()) continue;
          const auto held = Rate(earlier.held_ns(), device.held_ns(), passed_ns);
          if (held) part.held = std::min(*held / kNsPerS, 1.0);
          // Launches of an untracked client are not counted.
          if (device.state() != v1::CLIENT_STATE_UNTRACKED) {
            part.launches_s = Rate(earlier.submitted(), device.submitted(), passed_ns);
          }
        }
      }
      if (Fits(part, wanted)) rows.push_back(std::move(part));
    }
  }

  std::stable_sort(rows.begin(), rows.end(), [&](const TopRow& a, const TopRow& b) {
    if (sort == TopSort::kCommand && a.command != b.command) return (a.command < b.command) != reverse;
    if (sort == TopSort::kPid && a.pid != b.pid) return (a.pid < b.pid) != reverse;
    const std::optional<double> x = Key(a, sort);
    const std::optional<double> y = Key(b, sort);
    if (x.has_value() != y.has_value()) return x.has_value();
    if (x != y) return (*x > *y) != reverse;
    return std::tie(a.pid, a.device) < std::tie(b.pid, b.device);
  });
  return rows;
}

}  // namespace xschedd::ctl
