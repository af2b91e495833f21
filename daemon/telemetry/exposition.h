// Writes metrics as text: OpenMetrics 1.0, or the older text format of Prometheus (0.0.4), which promtool reads.
//
// A serialiser of our own, because the one that Debian 12 has (prometheus-cpp 1.0) writes the older format only, knows
// neither units nor info metrics, and brings an HTTP server with threads. Whoever writes keeps the formats' order: a
// family once, with all its samples, none twice. Names are ours; label values may be anybody's, and are escaped.
// Thread rule: one owner.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/telemetry/histogram.h"

namespace xschedd {

enum class MetricType { kCounter, kGauge, kHistogram, kInfo };
enum class MetricFormat { kOpenMetrics, kPrometheus };

// As HTTP names it.
std::string_view ContentType(MetricFormat format);

// `name`: without the endings that belong to samples ("_total", "_info"), but with the unit, where there is one.
struct MetricFamily {
  std::string_view name;
  MetricType type;
  std::string_view unit;  // "seconds", "bytes", "ratio"; empty: it counts something
  std::string_view help;
};

using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

class Exposition {
 public:
  explicit Exposition(MetricFormat format) : format_(format) {}

  // All samples that follow are of this family, which must outlive them.
  void Begin(const MetricFamily& family);
  void Sample(Labels labels, std::unsigned_integral auto value) {
    Start("", labels);
    Number(value);
  }
  void Sample(Labels labels, double value);
  // A time that is kept in ns, exactly, in seconds.
  void Seconds(Labels labels, std::uint64_t ns);
  void Histogram(Labels labels, const TimeHistogram& histogram);

  std::string Finish();

 private:
  void Start(std::string_view ending, Labels labels, std::string_view bound = {});
  void Number(std::uint64_t value);
  void Escaped(std::string_view text, bool with_quotes);

  const MetricFormat format_;
  const MetricFamily* family_ = nullptr;
  std::string text_;
};

// "0.0025", "5.0": seconds as a bound of a histogram must be written.
std::string BoundText(std::uint64_t ns);

}  // namespace xschedd
