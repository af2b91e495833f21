#include "client-shim/core/environment.h"

#include <cstdlib>
#include <string_view>

#include "client-shim/core/deadlines.h"
#include "client-shim/core/launcher_group.h"
#include "client-shim/core/standard_error.h"
#include "common/latency.h"
#include "common/memory_limit.h"
#include "common/parse_number.h"
#include "common/priority.h"

namespace xschedd::shim {
namespace {

enum class Level { kQuiet, kWarn, kInfo };

Level LogLevel() {
  static const Level level = [] {
    const std::string text = EnvironmentVariable("XSCHEDD_LOG");
    return text == "quiet" ? Level::kQuiet : text == "info" ? Level::kInfo : Level::kWarn;
  }();
  return level;
}

// A whole number from 1 to `max`. Another value is reported, with `fallback`: what applies instead.
std::optional<std::uint64_t> GetNumber(const char* name, std::uint64_t max, const char* fallback) {
  const std::string text = EnvironmentVariable(name);
  if (text.empty()) return std::nullopt;
  const auto value = ParseNumber<std::uint64_t>(text);
  if (value && *value >= 1 && *value <= max) return value;
  Warn(std::string(name) + ": \"" + text + "\" is not a number from 1 to " + std::to_string(max) + "; " + fallback);
  return std::nullopt;
}

void Write(const std::string& line) {
  const std::string whole = "xschedd: " + line + "\n";
  WriteStandardError(whole.data(), whole.size());
}

}  // namespace

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Environment Environment::Read() {
  Environment environment;
  if (const std::string notice = EnvironmentVariable("XSCHEDD_NOTICE"); !notice.empty()) Warn(notice);
  environment.group = EnvironmentVariable("XSCHEDD_GROUP");
  if (environment.group.empty()) environment.group = LauncherGroup();
  environment.passthrough = EnvironmentVariable("XSCHEDD_PASSTHROUGH");
  if (const std::string text = EnvironmentVariable("XSCHEDD_PRIORITY"); !text.empty()) {
    const Result<int> priority = ParsePriority(text);
    if (priority) {
      environment.priority = *priority;
    } else {
      Warn("XSCHEDD_PRIORITY: " + priority.error().Line() + "; the default is used");
    }
  }
  if (const auto weight = GetNumber("XSCHEDD_WEIGHT", kHighestWeight, "the default is used")) {
    environment.weight = static_cast<std::uint32_t>(*weight);
  }
  environment.latency = EnvironmentVariable("XSCHEDD_LATENCY");
  if (!environment.latency.empty() && !LatencyFrom(environment.latency)) {
    Warn("XSCHEDD_LATENCY: \"" + environment.latency + "\" is neither strict nor auto; the default is used");
    environment.latency.clear();
  }
  environment.deadline_us = GetNumber("XSCHEDD_DEADLINE_US", Deadlines::kLongestUs, "none is set");
  const std::string streams = EnvironmentVariable("XSCHEDD_STREAMS");
  environment.schedules_streams = streams == "1";
  if (!streams.empty() && streams != "0" && streams != "1") {
    Warn("XSCHEDD_STREAMS: \"" + streams + "\" is neither 0 nor 1; streams are not scheduled against each other");
  }
  if (const std::string text = EnvironmentVariable("XSCHEDD_MEMORY"); !text.empty()) {
    const Result<std::uint64_t> bytes = ParseMemoryLimit(text);
    if (bytes) {
      environment.memory_bytes = *bytes;
    } else {
      Warn("XSCHEDD_MEMORY: " + bytes.error().Line() + "; no limit is set");
    }
  }
  return environment;
}

void Warn(const std::string& line) {
  if (LogLevel() != Level::kQuiet) Write(line);
}

void Info(const std::string& line) {
  if (LogLevel() == Level::kInfo) Write(line);
}

}  // namespace xschedd::shim
