#include "client-shim/core/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "common/priority.h"

namespace xschedd::shim {
namespace {

std::string Get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

enum class Level { kQuiet, kWarn, kInfo };

Level LogLevel() {
  static const Level level = [] {
    const std::string text = Get("XSCHEDD_LOG");
    return text == "quiet" ? Level::kQuiet : text == "info" ? Level::kInfo : Level::kWarn;
  }();
  return level;
}

void Write(const std::string& line) {
  const std::string whole = "xschedd: " + line + "\n";
  // Nothing can be done about a standard error that takes no line.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace

Environment Environment::Read() {
  Environment environment;
  environment.group = Get("XSCHEDD_GROUP");
  environment.passthrough = Get("XSCHEDD_PASSTHROUGH");
  if (const std::string text = Get("XSCHEDD_PRIORITY"); !text.empty()) {
    const Result<int> priority = ParsePriority(text);
    if (priority) {
      environment.priority = *priority;
    } else {
      Warn("XSCHEDD_PRIORITY: " + priority.error().Line() + "; the default is used");
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
