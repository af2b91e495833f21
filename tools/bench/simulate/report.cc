#include "tools/bench/simulate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace xschedd::simulate {
namespace {

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : std::nan("");
}
double Kept(const ClassResult& own, const ClassResult& reference) {
  return Ratio(static_cast<double>(own.gpu_ns), static_cast<double>(reference.gpu_ns));
}
double Share(const ClassResult& own, const Results& all) {
  return Ratio(static_cast<double>(own.gpu_ns), static_cast<double>(all.GpuNs()));
}
double PartOfWork(std::uint64_t ns, const ClassResult& own) {
  return Ratio(static_cast<double>(ns), static_cast<double>(own.work_ns));
}
double Utilisation(const Results& results, std::size_t device) {
  return Ratio(static_cast<double>(results.device_busy_ns[device]), static_cast<double>(results.length_ns));
}
double PerSecond(std::uint64_t count, const Results& results) {
  return static_cast<double>(count) / (static_cast<double>(results.length_ns) / 1e9);
}
double MeanUtilisation(const Results& results) {
  double sum = 0;
  for (std::size_t i = 0; i < results.device_busy_ns.size(); ++i)
    sum += Utilisation(results, i);
  return Ratio(sum, static_cast<double>(results.device_busy_ns.size()));
}

// A dash for NaN.
std::string Number(double value, const char* format = "{:.2f}") {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(format), value);
}
std::string Percent(double part) {
  return std::isnan(part) ? "-" : fmt::format("{:.1f}%", part * 100);
}
std::string Misses(const ClassResult& result) {
  if (!result.has_deadline) return "-";
  return Percent(Ratio(static_cast<double>(result.misses + result.dropped),
                       static_cast<double>(result.requests + result.dropped)));
}

constexpr const char* kClassHeader =
    "{:<14} {:>7} {:>9} {:>9} {:>9} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}\n";

std::string ClassHeader(const std::string& first) {
  return fmt::format(fmt::runtime(kClassHeader), first, "clients", "requests", "p50 ms", "p99 ms", "(unsched.)",
                     "(unsched.)", "misses", "GPU", "kept", "held", "beside", "longest s", "share off");
}
std::string ClassLine(const std::string& first, const ClassResult& own, const Results& results,
                      const ClassResult& reference) {
  return fmt::format(fmt::runtime(kClassHeader), first, own.clients, own.requests, Number(own.QuantileMs(.5)),
                     Number(own.QuantileMs(.99)), Number(reference.QuantileMs(.5)), Number(reference.QuantileMs(.99)),
                     Misses(own), Percent(Share(own, results)), Percent(Kept(own, reference)),
                     Percent(PartOfWork(own.held_ns, own)), Percent(PartOfWork(own.beside_ns, own)),
                     Number(static_cast<double>(own.longest_ns) / 1e9), Number(own.share_error));
}

// JSON has no NaN.
nlohmann::json Maybe(double value) {
  return std::isnan(value) ? nlohmann::json(nullptr) : nlohmann::json(value);
}

}  // namespace

std::string Table(const Results& results, const Results& reference) {
  std::string text = ClassHeader("class");
  for (std::size_t i = 0; i < results.classes.size(); ++i) {
    const ClassResult& own = results.classes[i];
    text += ClassLine(own.name, own, results, reference.classes[i]);
  }
  text += "devices busy ";
  for (std::size_t i = 0; i < results.device_busy_ns.size(); ++i)
    text += fmt::format(" {}", Percent(Utilisation(results, i)));
  text += fmt::format("; unscheduled {} on average\n", Percent(MeanUtilisation(reference)));
  text += fmt::format("{} decisions ({:.0f} a second), {} gates changed\n", results.decisions,
                      PerSecond(results.decisions, results), results.gate_changes);
  if (results.context_switches != 0) {
    text.pop_back();
    text += fmt::format(", {:.0f} context switches a second\n", PerSecond(results.context_switches, results));
  }
  return text;
}

std::string SweepTable(const std::string& setting, const std::vector<SweepPoint>& points, const Results& reference) {
  constexpr const char* kLine = "{:<17} {:<14} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>9}   {:>7} {:>12}";
  std::string text = fmt::format(kLine, setting, "class", "p50 ms", "p99 ms", "misses", "kept", "held", "beside",
                                 "share off", "busy", "decisions/s") +
                     "\n";
  const auto add = [&](const std::string& value, const Results& results) {
    for (std::size_t i = 0; i < results.classes.size(); ++i) {
      const ClassResult& own = results.classes[i];
      const std::string busy = i == 0 ? Percent(MeanUtilisation(results)) : "";
      const std::string rate = i == 0 ? Number(PerSecond(results.decisions, results), "{:.0f}") : "";
      std::string line =
          fmt::format(kLine, i == 0 ? value : "", own.name, Number(own.QuantileMs(.5)), Number(own.QuantileMs(.99)),
                      Misses(own), Percent(Kept(own, reference.classes[i])), Percent(PartOfWork(own.held_ns, own)),
                      Percent(PartOfWork(own.beside_ns, own)), Number(own.share_error), busy, rate);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  };
  add("unscheduled", reference);
  for (const SweepPoint& point : points)
    add(point.value, point.results);
  return text;
}

nlohmann::json ToJson(const Results& results, const Results& reference) {
  nlohmann::json classes = nlohmann::json::array();
  for (std::size_t i = 0; i < results.classes.size(); ++i) {
    const ClassResult& own = results.classes[i];
    const ClassResult& without = reference.classes[i];
    classes.push_back({{"class", own.name},
                       {"clients", own.clients},
                       {"requests", own.requests},
                       {"p50_ms", Maybe(own.QuantileMs(.5))},
                       {"p99_ms", Maybe(own.QuantileMs(.99))},
                       {"unscheduled_p50_ms", Maybe(without.QuantileMs(.5))},
                       {"unscheduled_p99_ms", Maybe(without.QuantileMs(.99))},
                       {"deadline_misses", own.has_deadline ? nlohmann::json(own.misses) : nlohmann::json(nullptr)},
                       {"dropped", own.dropped},
                       {"kernels", own.kernels},
                       {"gpu_s", static_cast<double>(own.gpu_ns) / 1e9},
                       {"gpu_share", Maybe(Share(own, results))},
                       {"kept", Maybe(Kept(own, without))},
                       {"work_s", static_cast<double>(own.work_ns) / 1e9},
                       {"held_s", static_cast<double>(own.held_ns) / 1e9},
                       {"beside_s", static_cast<double>(own.beside_ns) / 1e9},
                       {"longest_s", static_cast<double>(own.longest_ns) / 1e9},
                       {"share_error_points", Maybe(own.share_error)}});
  }
  nlohmann::json busy = nlohmann::json::array();
  for (std::size_t i = 0; i < results.device_busy_ns.size(); ++i)
    busy.push_back(Utilisation(results, i));
  return {{"seconds", static_cast<double>(results.length_ns) / 1e9},
          {"classes", classes},
          {"device_busy", busy},
          {"unscheduled_device_busy", MeanUtilisation(reference)},
          {"decisions", results.decisions},
          {"gate_changes", results.gate_changes},
          {"context_switches", results.context_switches},
          {"events", results.events},
          {"kernels", {{"launched", results.launched}, {"completed", results.completed}, {"left", results.left}}}};
}

}  // namespace xschedd::simulate
