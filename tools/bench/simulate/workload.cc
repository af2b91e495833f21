#include "tools/bench/simulate/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/bench/simulate/fields.h"

namespace xschedd::simulate {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMaxDevices = 1024;
constexpr std::uint32_t kMaxClients = 100'000;

std::uint64_t FromUs(double us) {
  return static_cast<std::uint64_t>(std::llround(us * 1e3));
}
std::uint64_t FromMs(double ms) {
  return static_cast<std::uint64_t>(std::llround(ms * 1e6));
}

constexpr double kMaxMs = 1e9;
constexpr double kMinUs = 0.001;  // one nanosecond: virtual time must advance
// The shim reports a client idle that launches nothing for longer, which the model does not simulate.
constexpr double kMaxLaunchUs = 200;

Program ReadKernels(const Json* list) {
  if (list == nullptr || !list->is_array() || list->empty()) {
    throw FormatError("\"kernels\" must be a list such as [{\"us\": 900, \"count\": 8}]");
  }
  Program program;
  for (const Json& entry : *list) {
    Fields fields(entry, "an entry of kernels");
    Burst burst;
    burst.kernel_ns = FromUs(fields.Required("us", kMinUs, 1e9));
    burst.count = static_cast<std::uint32_t>(fields.Number("count", 1, 1, 1e9));
    burst.launch_ns = FromUs(fields.Number("launch_us", 0, 0, kMaxLaunchUs));
    burst.gap_ns = FromUs(fields.Number("gap_us", 0, 0, 1e9));
    fields.RejectUnknown();
    program.push_back(burst);
  }
  return program;
}

Program Repeated(const Program& program, std::uint32_t times) {
  Program all;
  for (std::uint32_t i = 0; i < times; ++i)
    all.insert(all.end(), program.begin(), program.end());
  return all;
}

Arrivals ReadArrivals(const Json* object) {
  if (object == nullptr)
    throw FormatError("a client needs \"arrivals\", such as {\"kind\": \"poisson\", \"rate\": 20}");
  Fields fields(*object, "arrivals");
  Arrivals arrivals;
  const std::string kind = fields.Text("kind", "");
  if (kind == "poisson") {
    arrivals.kind = ArrivalKind::kPoisson;
    arrivals.rate = fields.Required("rate", 1e-6, 1e7);
  } else if (kind == "periodic") {
    arrivals.kind = ArrivalKind::kPeriodic;
    arrivals.period_ns = FromMs(fields.Required("period_ms", 1e-3, kMaxMs));
    arrivals.phase_ns = FromMs(fields.Number("phase_ms", 0, 0, kMaxMs));
    arrivals.drops = fields.Flag("drop");
  } else if (kind == "onoff") {
    arrivals.kind = ArrivalKind::kOnOff;
    arrivals.rate = fields.Required("rate", 1e-6, 1e7);
    arrivals.on_ns = FromMs(fields.Required("on_ms", 1e-3, kMaxMs));
    arrivals.off_ns = FromMs(fields.Required("off_ms", 1e-3, kMaxMs));
  } else if (kind == "closed") {
    arrivals.kind = ArrivalKind::kClosed;
    arrivals.think_ns = FromMs(fields.Number("think_ms", 0, 0, kMaxMs));
  } else if (kind == "saturating") {
    arrivals.kind = ArrivalKind::kSaturating;
    arrivals.depth = static_cast<std::uint32_t>(fields.Number("depth", 16, 1, 1e6));
  } else if (kind == "given") {
    arrivals.kind = ArrivalKind::kGiven;
  } else if (kind == "given-closed") {
    arrivals.kind = ArrivalKind::kGivenClosed;
  } else {
    throw FormatError(
        fmt::format("unknown kind of arrivals \"{}\"; there are poisson, periodic, onoff, closed, saturating, "
                    "given and given-closed",
                    kind));
  }
  fields.RejectUnknown();
  return arrivals;
}

class Reader {
 public:
  void Line(const Json& line) {
    if (!line.is_object()) throw FormatError("each line must be an object");
    if (line.contains("workload")) return Head(line);
    if (line.contains("client")) return Client(line);
    if (line.contains("request")) return Request(line);
    throw FormatError("a line must have \"workload\", \"client\" or \"request\"");
  }

  Workload Finish() {
    if (workload_.length_ns == 0) throw FormatError("there is no line with \"workload\"");
    if (workload_.clients.empty()) throw FormatError("there is no client");
    for (ClientSpec& client : workload_.clients) {
      // Arrivals must not go back in time: requests of one client are served in order.
      if (client.arrivals.kind == ArrivalKind::kGiven) {
        std::stable_sort(client.given.begin(), client.given.end(),
                         [](const GivenRequest& a, const GivenRequest& b) { return a.at_ns < b.at_ns; });
      }
    }
    return std::move(workload_);
  }

 private:
  void Head(const Json& line) {
    if (workload_.length_ns != 0) throw FormatError("there is more than one line with \"workload\"");
    Fields fields(line, "the workload");
    workload_.name = fields.Text("workload", "");
    workload_.devices = static_cast<std::uint32_t>(fields.Number("devices", 1, 1, kMaxDevices));
    DeviceKind& kind = workload_.kind;
    kind.side_by_side = static_cast<std::uint32_t>(fields.Number("side_by_side", 1, 1, 1024));
    kind.slower = fields.Number("slower", 0, 0, 10);
    kind.slice_ns = FromUs(fields.Number("slice_us", 0, 0, 1e6));
    kind.switch_ns = FromUs(fields.Number("switch_us", 0, 0, 1e6));
    if (kind.switch_ns != 0 && !kind.HasSlices()) throw FormatError("\"switch_us\" needs \"slice_us\"");
    workload_.length_ns = static_cast<std::uint64_t>(fields.Required("seconds", 1e-3, 1e6) * 1e9);
    fields.RejectUnknown();
  }

  void Client(const Json& line) {
    if (workload_.length_ns == 0) throw FormatError("the line with \"workload\" must come first");
    Fields fields(line, "a client");
    ClientSpec spec;
    spec.name = fields.Text("client", "");
    spec.class_name = fields.Text("class", spec.name);
    spec.group = fields.Text("group", "");
    spec.owner = fields.Text("owner", "");
    spec.priority = static_cast<int>(fields.Number("priority", 0, -100, 100));
    spec.weight = static_cast<std::uint32_t>(fields.Number("weight", 100, 1, 10'000));
    spec.deadline_ns = FromMs(fields.Number("deadline_ms", 0, 0, 3.6e6));
    spec.streams = static_cast<std::uint32_t>(fields.Number("streams", 1, 1, 64));
    spec.spread = fields.Number("spread", 0, 0, 0.99);
    spec.barrier = fields.Flag("barrier");
    spec.arrivals = ReadArrivals(fields.Take("arrivals"));
    const bool given = spec.arrivals.kind == ArrivalKind::kGiven || spec.arrivals.kind == ArrivalKind::kGivenClosed;
    const Json* const kernels = fields.Take("kernels");
    const auto repeat = static_cast<std::uint32_t>(fields.Number("repeat", 1, 1, 1e5));
    if (!given) spec.programs.push_back(Repeated(ReadKernels(kernels), repeat));
    if (given && (kernels != nullptr || repeat != 1))
      throw FormatError("with arrivals \"given\", kernels are in each request");
    if (spec.arrivals.kind == ArrivalKind::kSaturating && spec.programs[0][0].gap_ns != 0) {
      throw FormatError("a saturating client has no gaps; use closed arrivals");
    }
    const auto count = static_cast<std::uint32_t>(fields.Number("count", 1, 1, kMaxClients));
    const Json* const devices = fields.Take("devices");
    fields.RejectUnknown();
    const bool dealt = devices != nullptr && devices->is_string() && devices->get<std::string>() == "dealt";
    if (!dealt) spec.devices = Devices(devices);
    if (workload_.clients.size() + count > kMaxClients)
      throw FormatError(fmt::format("more than {} clients", kMaxClients));
    for (std::uint32_t i = 0; i < count; ++i) {
      ClientSpec one = spec;
      if (count > 1) one.name += fmt::format("-{}", i);
      if (dealt) one.devices = {i % workload_.devices};
      if (!by_name_.emplace(one.name, workload_.clients.size()).second) {
        throw FormatError(fmt::format("there is already a client \"{}\"", one.name));
      }
      workload_.clients.push_back(std::move(one));
    }
  }

  std::vector<std::uint32_t> Devices(const Json* list) const {
    if (list == nullptr) return {0};
    std::vector<std::uint32_t> devices;
    if (!list->is_array() || list->empty()) throw FormatError("\"devices\" must be \"dealt\" or a list such as [0]");
    for (const Json& entry : *list) {
      if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() >= workload_.devices) {
        throw FormatError(fmt::format("there is no device {}; the workload has {}", entry.dump(), workload_.devices));
      }
      devices.push_back(entry.get<std::uint32_t>());
    }
    std::sort(devices.begin(), devices.end());
    if (std::adjacent_find(devices.begin(), devices.end()) != devices.end())
      throw FormatError("a device is named twice");
    return devices;
  }

  void Request(const Json& line) {
    Fields fields(line, "a request");
    const std::string name = fields.Text("request", "");
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) throw FormatError(fmt::format("there is no client \"{}\" above this request", name));
    ClientSpec& client = workload_.clients[found->second];
    GivenRequest request;
    if (client.arrivals.kind == ArrivalKind::kGiven) {
      request.at_ns = FromMs(fields.Required("at_ms", 0, kMaxMs));
    } else if (client.arrivals.kind == ArrivalKind::kGivenClosed) {
      request.at_ns = FromMs(fields.Number("think_ms", 0, 0, kMaxMs));
    } else {
      throw FormatError(
          fmt::format("client \"{}\" makes its own arrivals; requests need kind given or given-closed", name));
    }
    Program program = ReadKernels(fields.Take("kernels"));
    fields.RejectUnknown();
    // Recorded requests are often equal: sharing one program keeps long traces small.
    request.program = static_cast<std::uint32_t>(client.programs.size());
    if (!client.programs.empty() && Same(client.programs.back(), program)) {
      --request.program;
    } else {
      client.programs.push_back(std::move(program));
    }
    client.given.push_back(request);
  }

  static bool Same(const Program& a, const Program& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Burst& x, const Burst& y) {
      return x.kernel_ns == y.kernel_ns && x.count == y.count && x.launch_ns == y.launch_ns && x.gap_ns == y.gap_ns;
    });
  }

  Workload workload_;
  std::map<std::string, std::size_t> by_name_;
};

Json WriteKernels(const Program& program) {
  Json list = Json::array();
  for (const Burst& burst : program) {
    Json entry = {{"us", static_cast<double>(burst.kernel_ns) / 1e3}};
    if (burst.count != 1) entry["count"] = burst.count;
    if (burst.launch_ns != 0) entry["launch_us"] = static_cast<double>(burst.launch_ns) / 1e3;
    if (burst.gap_ns != 0) entry["gap_us"] = static_cast<double>(burst.gap_ns) / 1e3;
    list.push_back(entry);
  }
  return list;
}

Json WriteArrivals(const Arrivals& arrivals) {
  const auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e6; };
  switch (arrivals.kind) {
    case ArrivalKind::kPoisson:
      return {{"kind", "poisson"}, {"rate", arrivals.rate}};
    case ArrivalKind::kPeriodic:
      return {{"kind", "periodic"},
              {"period_ms", ms(arrivals.period_ns)},
              {"phase_ms", ms(arrivals.phase_ns)},
              {"drop", arrivals.drops}};
    case ArrivalKind::kOnOff:
      return {
          {"kind", "onoff"}, {"rate", arrivals.rate}, {"on_ms", ms(arrivals.on_ns)}, {"off_ms", ms(arrivals.off_ns)}};
    case ArrivalKind::kClosed:
      return {{"kind", "closed"}, {"think_ms", ms(arrivals.think_ns)}};
    case ArrivalKind::kSaturating:
      return {{"kind", "saturating"}, {"depth", arrivals.depth}};
    case ArrivalKind::kGiven:
      return {{"kind", "given"}};
    case ArrivalKind::kGivenClosed:
      break;
  }
  return {{"kind", "given-closed"}};
}

}  // namespace

Result<Workload> ReadWorkload(std::istream& input, const std::string& source) {
  Reader reader;
  std::string text;
  std::size_t number = 0;
  try {
    while (std::getline(input, text)) {
      ++number;
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      reader.Line(Json::parse(text));
    }
    return reader.Finish();
  } catch (const Json::exception& error) {
    return Fail(fmt::format("{}:{}: not JSON: {}", source, number, error.what()), "write one object a line");
  } catch (const FormatError& error) {
    return Fail(fmt::format("{}:{}: {}", source, number, error.what()),
                "docs/contributing/simulator.md describes the format");
  }
}

void WriteWorkload(const Workload& workload, std::ostream& output) {
  const DeviceKind& kind = workload.kind;
  Json head = {{"workload", workload.name},
               {"devices", workload.devices},
               {"side_by_side", kind.side_by_side},
               {"seconds", static_cast<double>(workload.length_ns) / 1e9}};
  if (kind.slower != 0) head["slower"] = kind.slower;
  if (kind.HasSlices()) head["slice_us"] = static_cast<double>(kind.slice_ns) / 1e3;
  if (kind.switch_ns != 0) head["switch_us"] = static_cast<double>(kind.switch_ns) / 1e3;
  output << head << '\n';
  for (const ClientSpec& client : workload.clients) {
    Json line = {{"client", client.name},
                 {"class", client.class_name},
                 {"devices", client.devices},
                 {"priority", client.priority},
                 {"weight", client.weight},
                 {"streams", client.streams},
                 {"arrivals", WriteArrivals(client.arrivals)}};
    if (!client.group.empty()) line["group"] = client.group;
    if (!client.owner.empty()) line["owner"] = client.owner;
    if (client.deadline_ns != 0) line["deadline_ms"] = static_cast<double>(client.deadline_ns) / 1e6;
    if (client.barrier) line["barrier"] = true;
    if (client.spread != 0) line["spread"] = client.spread;
    const bool given = client.arrivals.kind == ArrivalKind::kGiven || client.arrivals.kind == ArrivalKind::kGivenClosed;
    if (!given) line["kernels"] = WriteKernels(client.programs[0]);
    output << line << '\n';
    const char* const when = client.arrivals.kind == ArrivalKind::kGivenClosed ? "think_ms" : "at_ms";
    for (const GivenRequest& request : client.given) {
      output << Json{{"request", client.name},
                     {when, static_cast<double>(request.at_ns) / 1e6},
                     {"kernels", WriteKernels(client.programs[request.program])}}
             << '\n';
    }
  }
}

}  // namespace xschedd::simulate
