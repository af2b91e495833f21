#include "daemon/telemetry/exposition.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace xschedd {
namespace {

constexpr std::uint64_t kNsPerS = 1'000'000'000;

std::string_view TypeText(MetricType type, MetricFormat format) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kInfo:
      return format == MetricFormat::kOpenMetrics ? "info" : "gauge";
  }
  return "unknown";
}

// The suffix that samples add to the family's name.
std::string_view EndingOf(MetricType type) {
  return type == MetricType::kCounter ? "_total" : type == MetricType::kInfo ? "_info" : "";
}

// "1.5" for 1,500,000,000: no trailing zeros, but at least `least` decimals.
std::string Decimal(std::uint64_t ns, std::size_t least) {
  std::string text = fmt::format("{}.{:09}", ns / kNsPerS, ns % kNsPerS);
  const std::size_t point = text.find('.');
  while (text.back() == '0' && text.size() > point + 1 + least)
    text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string_view ContentType(MetricFormat format) {
  return format == MetricFormat::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
}

std::string BoundText(std::uint64_t ns) {
  // The format asks for floats as Go writes them: 5e-06, not 0.000005.
  constexpr std::uint64_t kShortestDecimal = 100'000;
  if (ns >= kShortestDecimal || ns == 0) return Decimal(ns, 1);
  return fmt::format("{}", static_cast<double>(ns) / static_cast<double>(kNsPerS));
}

void Exposition::Begin(const MetricFamily& family) {
  family_ = &family;
  const bool is_open = format_ == MetricFormat::kOpenMetrics;
  const std::string_view ending = is_open ? "" : EndingOf(family.type);
  fmt::format_to(std::back_inserter(text_), "# TYPE {}{} {}\n", family.name, ending, TypeText(family.type, format_));
  if (is_open && !family.unit.empty()) {
    fmt::format_to(std::back_inserter(text_), "# UNIT {} {}\n", family.name, family.unit);
  }
  fmt::format_to(std::back_inserter(text_), "# HELP {}{} ", family.name, ending);
  Escaped(family.help, is_open);
  text_ += '\n';
}

void Exposition::Start(std::string_view ending, Labels labels, std::string_view bound) {
  text_ += family_->name;
  text_ += ending.empty() ? EndingOf(family_->type) : ending;
  if (labels.size() != 0 || !bound.empty()) {
    char before = '{';
    const auto add = [&](std::string_view name, std::string_view value) {
      text_ += before;
      text_ += name;
      text_ += "=\"";
      Escaped(value, true);
      text_ += '"';
      before = ',';
    };
    for (const auto& [name, value] : labels)
      add(name, value);
    if (!bound.empty()) add("le", bound);
    text_ += '}';
  }
  text_ += ' ';
}

void Exposition::Number(std::uint64_t value) {
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

void Exposition::Sample(Labels labels, double value) {
  Start("", labels);
  if (std::isnan(value)) {
    text_ += "NaN\n";
  } else if (std::isinf(value)) {
    text_ += value > 0 ? "+Inf\n" : "-Inf\n";
  } else {
    fmt::format_to(std::back_inserter(text_), "{}\n", value);
  }
}

void Exposition::Seconds(Labels labels, std::uint64_t ns) {
  Start("", labels);
  text_ += Decimal(ns, 0);
  text_ += '\n';
}

void Exposition::Histogram(Labels labels, const TimeHistogram& histogram) {
  std::uint64_t count = 0;
  std::size_t place = 0;
  for (const std::uint64_t bound : histogram.BoundsNs()) {
    count += histogram.Count(place++);
    Start("_bucket", labels, BoundText(bound));
    Number(count);
  }
  count += histogram.Count(place);
  Start("_bucket", labels, "+Inf");
  Number(count);
  Start("_count", labels);
  Number(count);
  Start("_sum", labels);
  text_ += Decimal(histogram.SumNs(), 0);
  text_ += '\n';
}

std::string Exposition::Finish() {
  if (format_ == MetricFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

void Exposition::Escaped(std::string_view text, bool with_quotes) {
  for (const char c : text) {
    if (c == '\\') {
      text_ += "\\\\";
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '"' && with_quotes) {
      text_ += "\\\"";
    } else {
      text_ += c;
    }
  }
}

}  // namespace xschedd
