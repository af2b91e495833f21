#include "tools/bench/fleet/report.h"

#include <fmt/format.h>

#include <cmath>

namespace xschedd::fleet {
namespace {

using Json = nlohmann::json;

// The figures of one way by the name of their row. Table and JSON are made of the same.
struct Row {
  std::string name;
  std::string key;             // in JSON
  std::vector<double> values;  // of each way; NaN: none
  std::string unit;
};

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : std::nan("");
}

template <typename Value>
Row MakeRow(const std::string& name, const std::string& key, const std::string& unit, const Comparison& comparison,
            Value value) {
  Row row{name, key, {}, unit};
  for (const Way& way : comparison.ways)
    row.values.push_back(value(way));
  return row;
}

struct Group {
  std::string title;
  std::string key;
  std::vector<Row> rows;
};

Group Gpus(const Comparison& comparison) {
  const auto part = [](double gpu_s, const FleetResults& r) { return Ratio(gpu_s, r.gpus * r.counted_s) * 100; };
  return {"GPUs",
          "gpus",
          {MakeRow("with a job", "used_percent", "%", comparison,
                   [&](const Way& way) { return part(way.results.used_gpu_s, way.results); }),
           MakeRow("with a running kernel", "busy_percent", "%", comparison,
                   [&](const Way& way) { return part(way.results.busy_gpu_s, way.results); }),
           MakeRow("most with a job at a time", "most_used", "", comparison,
                   [](const Way& way) { return static_cast<double>(way.results.most_used_gpus); }),
           MakeRow("needed for the waits of exclusive", "needed", "", comparison, [](const Way& way) {
             const auto of_a_node = way.results.gpus / way.results.nodes;
             return way.needed_nodes ? *way.needed_nodes * static_cast<double>(of_a_node) : std::nan("");
           })}};
}

Group Jobs(const Comparison& comparison) {
  return {"Jobs",
          "jobs",
          {MakeRow("ended, a day", "ended_a_day", "", comparison,
                   [](const Way& way) {
                     return Ratio(static_cast<double>(way.results.ended) * kDayS, way.results.counted_s);
                   }),
           MakeRow("of these after their time limit", "past_limit_percent", "%", comparison, [](const Way& way) {
             return Ratio(static_cast<double>(way.results.past_limit) * 100, static_cast<double>(way.results.ended));
           })}};
}

Group Waits(const Trace& trace, const Comparison& comparison, std::size_t space) {
  const auto of = [space](const Way& way) -> const SpaceResult& { return way.results.spaces[space]; };
  return {
      fmt::format("Space \"{}\"", trace.spaces[space].name),
      trace.spaces[space].name,
      {MakeRow("jobs", "jobs", "", comparison,
               [&](const Way& way) { return static_cast<double>(of(way).waits_s.size()); }),
       MakeRow("wait, mean", "wait_mean_min", "min", comparison, [&](const Way& way) { return of(way).MeanS() / 60; }),
       MakeRow("wait, p50", "wait_p50_min", "min", comparison,
               [&](const Way& way) { return of(way).QuantileS(0.5) / 60; }),
       MakeRow("wait, p99", "wait_p99_min", "min", comparison,
               [&](const Way& way) { return of(way).QuantileS(0.99) / 60; }),
       MakeRow("still waiting at the end", "waiting", "", comparison,
               [&](const Way& way) { return static_cast<double>(of(way).waiting); })}};
}

Group Work(const Patterns& patterns, const Comparison& comparison, std::size_t index) {
  const Pattern& pattern = patterns.all[index];
  const auto of = [index](const Way& way) -> const PatternResult& { return way.results.patterns[index]; };
  Group group{fmt::format("Pattern \"{}\"", pattern.client.name), pattern.client.name, {}};
  group.rows.push_back(MakeRow("GPUs of its running jobs, on average", "gpus", "", comparison,
                               [&](const Way& way) { return Ratio(of(way).gpu_s, way.results.counted_s); }));
  if (pattern.ends_with_work) {
    group.rows.push_back(
        MakeRow("work done, hours alone a day", "work_hours_a_day", "h", comparison,
                [&](const Way& way) { return Ratio(of(way).work_s / kHourS * kDayS, way.results.counted_s); }));
    group.rows.push_back(MakeRow("speed of a job, relative to alone", "speed_percent", "%", comparison,
                                 [&](const Way& way) { return Ratio(of(way).work_s, of(way).gpu_s) * 100; }));
    group.rows.push_back(MakeRow("running time, times alone, mean", "stretch", "×", comparison, [&](const Way& way) {
      return Ratio(of(way).stretch, static_cast<double>(of(way).ended));
    }));
    return group;
  }
  const Latencies& alone = comparison.alone[index];
  for (const auto& [name, fraction] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
    const double reference = alone.QuantileMs(fraction);
    group.rows.push_back(MakeRow(
        fmt::format("{} of latency, times alone ({:.1f} ms)", name, reference),
        fmt::format("latency_{}_times_alone", name), "×", comparison,
        [&, quantile = fraction](const Way& way) { return Ratio(of(way).latencies.QuantileMs(quantile), reference); }));
  }
  group.rows.push_back(MakeRow("requests served, relative to alone", "served_percent", "%", comparison,
                               [&](const Way& way) { return Ratio(of(way).work_s, of(way).gpu_s) * 100; }));
  return group;
}

struct Groups {
  std::vector<Group> general;
  std::vector<Group> spaces;
  std::vector<Group> patterns;
};

Groups MakeGroups(const Trace& trace, const Patterns& patterns, const Comparison& comparison) {
  Groups groups;
  groups.general = {Gpus(comparison), Jobs(comparison)};
  for (std::size_t i = 0; i < trace.spaces.size(); ++i)
    groups.spaces.push_back(Waits(trace, comparison, i));
  for (std::size_t i = 0; i < patterns.all.size(); ++i) {
    if (comparison.ways[0].results.patterns[i].gpu_s > 0 || comparison.ways[1].results.patterns[i].gpu_s > 0)
      groups.patterns.push_back(Work(patterns, comparison, i));
  }
  return groups;
}

std::string Text(double value, const std::string& unit) {
  if (std::isnan(value)) return "-";
  const std::string number = unit.empty()  ? fmt::format("{:.0f}", value)
                             : unit == "×" ? fmt::format("{:.2f}", value)
                                           : fmt::format("{:.1f}", value);
  return unit.empty() ? number : number + " " + unit;
}

// JSON has no NaN.
Json Maybe(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(std::round(value * 1000) / 1000);
}

// By columns, since a × is one column and two bytes.
std::string Padded(const std::string& text, std::size_t width) {
  std::size_t columns = 0;
  for (const char c : text)
    columns += (c & 0xc0) != 0x80 ? 1 : 0;
  return std::string(width > columns ? width - columns : 0, ' ') + text;
}

}  // namespace

std::string Table(const Subject& subject, const Trace& trace, const Patterns& patterns, const Comparison& comparison) {
  const FleetOptions& fleet = subject.options.fleet;
  const FleetResults& first = comparison.ways[0].results;
  std::string text = fmt::format(
      "{}: {} jobs on {} nodes of {} GPUs of {} shards, engine {}, placing {}; {:.1f} days are counted\n"
      "GPUs as patterns {} describe them, policy {}. A model: no figure here was measured on a GPU\n\n",
      subject.trace, subject.jobs, fleet.size.nodes, fleet.size.gpus, fleet.size.shards, subject.engine,
      subject.placing, first.counted_s / kDayS, subject.patterns, subject.policy);
  constexpr std::size_t kName = 46;
  constexpr std::size_t kValue = 18;
  text += std::string(kName, ' ');
  for (const char* const title : {"exclusive", "shared, no xschedd", "shared by claims"})
    text += Padded(title, kValue + 2);
  text += "\n";
  const Groups groups = MakeGroups(trace, patterns, comparison);
  for (const std::vector<Group>* part : {&groups.general, &groups.spaces, &groups.patterns}) {
    for (const Group& group : *part) {
      text += group.title + "\n";
      for (const Row& row : group.rows) {
        std::string line = "  " + row.name;
        line += std::string(line.size() < kName ? kName - line.size() : 1, ' ');
        for (const double value : row.values)
          line += Padded(Text(value, row.unit), kValue + 2);
        text += line + "\n";
      }
    }
  }
  return text;
}

Json ToJson(const Subject& subject, const Trace& trace, const Patterns& patterns, const Comparison& comparison) {
  const FleetOptions& fleet = subject.options.fleet;
  Json json = {{"model", "virtual time; no figure was measured on a GPU"},
               {"trace", subject.trace},
               {"patterns", subject.patterns},
               {"engine", subject.engine},
               {"placing", subject.placing},
               {"policy", subject.policy},
               {"commit", subject.commit},
               {"date", subject.date},
               {"jobs", subject.jobs},
               {"nodes", fleet.size.nodes},
               {"gpus_of_a_node", fleet.size.gpus},
               {"shards_of_a_gpu", fleet.size.shards},
               {"counted_s", comparison.ways[0].results.counted_s},
               {"mix_warm_up_s", subject.options.mix_warm_up_s},
               {"mix_s", subject.options.mix_seconds},
               {"ways", Json::object()}};
  const Groups groups = MakeGroups(trace, patterns, comparison);
  for (std::size_t i = 0; i < comparison.ways.size(); ++i) {
    Json way = {{"mixes", comparison.ways[i].results.mixes}};
    const auto put = [&](Json& into, const std::vector<Group>& part) {
      for (const Group& group : part)
        for (const Row& row : group.rows)
          into[group.key][row.key] = Maybe(row.values[i]);
    };
    put(way, groups.general);
    put(way["spaces"], groups.spaces);
    put(way["patterns"], groups.patterns);
    json["ways"][comparison.ways[i].name] = way;
  }
  return json;
}

std::string Page(const Subject& subject, const Trace& trace, const Patterns& patterns, const Comparison& comparison,
                 const std::string& command, const std::string& json) {
  return fmt::format(
      "# What sharing gives a fleet, by the simulator: {}\n\n"
      "**This is a model. No figure here was measured on a GPU.** [The fleet "
      "simulator](../contributing/fleet-simulator.md) "
      "says what it\ncomputes with the daemon's own code, and what it assumes. xschedd {}, {}.\n\n"
      "```\n$ {}\n{}```\n\n"
      "*Exclusive*: each job has GPUs of its own. *Shared, no xschedd*: jobs that ask for shards share GPUs, and all "
      "kernels are "
      "equal.\n*Shared by claims*: the same, and xschedd keeps the order of the jobs' priorities. The same figures as "
      "JSON: "
      "[{}]({}).\n",
      subject.trace, subject.commit, subject.date, command, Table(subject, trace, patterns, comparison), json, json);
}

}  // namespace xschedd::fleet
