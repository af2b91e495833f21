// Writes metrics as text: OpenMetrics 1.0, or the older Prometheus text format (0.0.4), which promtool reads.
//
// This is our own, because Debian 12's prometheus-cpp 1.0 writes only the older format, lacks units and info metrics,
// and brings an HTTP server with threads. The caller keeps the formats' order: each family once, with all its samples.
// Names are ours; label values may come from anybody and are escaped. Thread rule: one owner.
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

// The HTTP Content-Type.
std::string_view ContentType(MetricFormat format);

// `name` excludes the suffixes of samples ("_total", "_info") but includes the unit, if any.
struct MetricFamily {
  std::string_view name;
  MetricType type;
  std::string_view unit;  // "seconds", "bytes", "ratio"; empty: a count
  std::string_view help;
};

using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

class Exposition {
 public:
  explicit Exposition(MetricFormat format) : format_(format) {}

  // Samples that follow belong to this family, which must outlive them.
  void Begin(const MetricFamily& family);
  void Sample(Labels labels, std::unsigned_integral auto value) {
    Start("", labels);
    Number(value);
  }
  void Sample(Labels labels, double value);
  // Writes ns as seconds, exactly.
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

// "0.0025", "5.0": a histogram bound in seconds.
std::string BoundText(std::uint64_t ns);

}  // namespace xschedd
