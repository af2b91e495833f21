#include "daemon/telemetry/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "daemon/build_config.h"
#if XSCHEDD_HAVE_SYSTEMD
#include <spdlog/sinks/systemd_sink.h>
#endif

namespace xschedd {
namespace {

// systemd sets JOURNAL_STREAM to "device:inode" of the stream that it gave us as stderr; the shell that started us may
// have sent stderr elsewhere since.
bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

}  // namespace

Result<void> StartLog(const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return Fail("there is no log level \"" + level + "\"", "choose trace, debug, info, warning, error or off");
  }
  std::shared_ptr<spdlog::logger> logger;
#if XSCHEDD_HAVE_SYSTEMD
  if (StderrIsJournal()) {
    logger = std::make_shared<spdlog::logger>("xschedd", std::make_shared<spdlog::sinks::systemd_sink_mt>());
    logger->set_pattern("%v");  // the journal has time and level of its own
  }
#endif
  if (logger == nullptr) {
    logger = std::make_shared<spdlog::logger>("xschedd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern(StderrIsJournal() ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %-7l %v");
  }
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace xschedd
