// Libraries that complain about nonsense from peers do not fill the log, and an unread log does not block the daemon.
#include "daemon/telemetry/log.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "admin.pb.h"
#include "common/unique_fd.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"

namespace {

// What `action` writes to stderr.
template <typename Action>
std::string StandardErrorOf(Action action) {
  const xschedd::test::Folder folder;
  const xschedd::UniqueFd file(::open((folder.Path() + "/stderr").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const xschedd::UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(file.Get(), STDERR_FILENO);
  action();
  xschedd::EndLog();
  std::fflush(stderr);
  ::dup2(before.Get(), STDERR_FILENO);
  std::string text(static_cast<std::size_t>(::lseek(file.Get(), 0, SEEK_END)), '\0');
  CHECK(::pread(file.Get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return text;
}

}  // namespace

TEST_CASE("a flood of invalid UTF-8 is logged only a few times") {
  const auto logger = spdlog::default_logger();
  const std::string text = StandardErrorOf([] {
    REQUIRE(xschedd::StartLog("info"));
    for (int i = 0; i < 1000; ++i) {
      xschedd::v1::SetPolicyRequest request;
      CHECK_FALSE(request.ParseFromString("\x0a\x01\xff"));  // name: a byte that is no text
      gpr_log(GPR_ERROR, "a frame \x1b[31m is wrong");
    }
  });
  spdlog::set_default_logger(logger);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  CHECK(lines >= 1);
  CHECK(lines <= 100);  // of 2000; a very slow machine allows a few more per second
  CHECK(text.find("library=protobuf") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("an unread log does not block the daemon, and later says how many lines were lost") {
  const auto logger = spdlog::default_logger();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const xschedd::UniqueFd reader(ends[0]);
  xschedd::UniqueFd writer(ends[1]);
  REQUIRE(::fcntl(writer.Get(), F_SETPIPE_SZ, 4096) > 0);
  const xschedd::UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(writer.Get(), STDERR_FILENO);
  writer.Reset();
  REQUIRE(xschedd::StartLog("info"));
  const std::uint64_t lines = xschedd::kWaitingLines + 3'000;
  for (std::uint64_t i = 0; i < lines; ++i)
    SPDLOG_INFO("line number={}", i);  // must return, or the test never ends
  const std::uint64_t lost = xschedd::LogLinesLost();
  CHECK(lost > 0);
  CHECK(lost < lines);
  pollfd full{STDERR_FILENO, POLLOUT, 0};
  while (::poll(&full, 1, 0) == 1)
    ::usleep(1'000);  // until the log's thread has filled it
  xschedd::WriteLastLine("not waited for");
  std::string text;
  std::thread reads([&] {
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(reader.Get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(size));
  });
  xschedd::EndLog();
  ::dup2(before.Get(), STDERR_FILENO);
  reads.join();
  spdlog::set_default_logger(logger);
  // In several messages if the log's thread read lines meanwhile.
  constexpr std::string_view kLostLines = "log lines were lost because they were not read in time lines=";
  std::uint64_t reported = 0;
  std::uint64_t tellings = 0;
  for (std::size_t at = 0; (at = text.find(kLostLines, at)) != std::string::npos; ++tellings) {
    at += kLostLines.size();
    reported += std::strtoull(text.c_str() + at, nullptr, 10);
  }
  CHECK(reported == lost);
  CHECK(text.find("line number=" + std::to_string(lines - 1)) != std::string::npos);
  CHECK(text.find("not waited for") == std::string::npos);
  CHECK(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')) == lines - lost + tellings);
}
