#include "daemon/telemetry/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/registry/process.h"
#include "daemon/registry/token_bucket.h"
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

constexpr double kLibraryLinesPerSecond = 1;
constexpr double kLibraryLinesBurst = 10;
constexpr std::size_t kLibraryTextLimit = 512;
std::atomic<std::uint64_t> library_lines_left_out{0};

// What gRPC and protobuf would write to standard error themselves, a line for each message that is wrong: anybody who
// may connect can have them write as fast as he sends.
void LogOfLibrary(const char* library, std::string_view text) {
  static std::mutex mutex;
  static TokenBucket lines(kLibraryLinesPerSecond, kLibraryLinesBurst);
  {
    const std::lock_guard lock(mutex);
    if (!lines.Take(MonotonicNs())) {
      library_lines_left_out.fetch_add(1, std::memory_order_relaxed);  // a number, no other data hangs on it
      return;
    }
  }
  SPDLOG_WARN("message of a library library={} text=\"{}\"", library, CleanText(text, kLibraryTextLimit));
}

void TakeOverLibraries() {
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel level, const char*, int, const std::string& text) {
    if (level >= google::protobuf::LOGLEVEL_WARNING) LogOfLibrary("protobuf", text);
  });
  gpr_set_log_function([](gpr_log_func_args* args) {
    if (args->severity >= GPR_LOG_SEVERITY_ERROR) LogOfLibrary("grpc", args->message);
  });
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
  TakeOverLibraries();
  return {};
}

std::uint64_t LibraryLinesLeftOut() {
  return library_lines_left_out.load(std::memory_order_relaxed);
}

}  // namespace xschedd
