#include "daemon/telemetry/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "common/clock.h"
#include "daemon/registry/process.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {
namespace {

// systemd sets JOURNAL_STREAM to the "device:inode" of the stderr that it passes; a shell in between may have
// redirected stderr.
bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

// "<4>": a line's priority by syslog(3), in the form of sd-daemon(3).
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    static constexpr std::string_view kPriorities[] = {"<7>", "<7>", "<6>", "<4>", "<3>", "<2>", "<6>"};
    const std::string_view priority = kPriorities[message.level];
    out.append(priority.data(), priority.data() + priority.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JournalPriority>(); }
};

// No time for the journal, which adds its own.
std::unique_ptr<spdlog::formatter> Format() {
  auto format = std::make_unique<spdlog::pattern_formatter>();
  format->add_flag<JournalPriority>('*').set_pattern(StderrIsJournal() ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%e%z %-7l %v");
  return format;
}

constexpr double kLibraryLinesPerSecond = 1;
constexpr double kLibraryLinesBurst = 10;
constexpr std::size_t kLibraryTextLimit = 512;
std::atomic<std::uint64_t> library_lines_left_out{0};

// Limits what gRPC and protobuf would write to stderr themselves. They write a line per invalid message, so any peer
// could make them write as fast as it sends.
void LogOfLibrary(const char* library, std::string_view text) {
  static std::mutex mutex;
  static TokenBucket lines(kLibraryLinesPerSecond, kLibraryLinesBurst);
  {
    const std::lock_guard lock(mutex);
    if (!lines.Take(MonotonicNs())) {
      library_lines_left_out.fetch_add(1, std::memory_order_relaxed);  // just a number; orders no other data
      return;
    }
  }
  SPDLOG_WARN("message from a library library={} text=\"{}\"", library, CleanText(text, kLibraryTextLimit));
}

// Queues lines; its one thread writes them.
std::shared_ptr<spdlog::details::thread_pool> pool;

// Writes, before the next line, how many lines were lost. Only the pool's one thread uses it.
class LossReporter final : public spdlog::sinks::sink {
 public:
  LossReporter(spdlog::sink_ptr to, spdlog::details::thread_pool& lines) : sink_(std::move(to)), lines_(lines) {}

  void log(const spdlog::details::log_msg& message) override {
    const std::uint64_t now = lines_.overrun_counter();
    if (now != reported_) {
      const std::string text =
          "log lines were lost because they were not read in time lines=" + std::to_string(now - reported_);
      reported_ = now;
      sink_->log({message.logger_name, spdlog::level::warn, text});
    }
    sink_->log(message);
  }
  void flush() override { sink_->flush(); }
  void set_pattern(const std::string& pattern) override { sink_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    sink_->set_formatter(std::move(formatter));
  }

 private:
  const spdlog::sink_ptr sink_;
  spdlog::details::thread_pool& lines_;  // this runs on its thread
  std::uint64_t reported_ = 0;
};

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
  spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_formatter(Format());
  pool = std::make_shared<spdlog::details::thread_pool>(kWaitingLines, 1);
  auto logger =
      std::make_shared<spdlog::async_logger>("xschedd", std::make_shared<LossReporter>(std::move(sink), *pool), pool,
                                             spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  TakeOverLibraries();
  return {};
}

void EndLog() {
  // The logger stays, because a library's thread may still log.
  spdlog::default_logger()->set_level(spdlog::level::off);
  // The pool ends with its last user, after writing everything.
  pool.reset();
}

std::uint64_t LogLinesLost() {
  return pool == nullptr ? 0 : pool->overrun_counter();
}

void WriteLastLine(std::string_view line) {
  pollfd error{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&error, 1, 0) != 1 || (error.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::uint64_t LibraryLinesLeftOut() {
  return library_lines_left_out.load(std::memory_order_relaxed);
}

}  // namespace xschedd
