// What is written when somebody sends nonsense: libraries that complain of it do not fill the log.
#include "daemon/telemetry/log.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "admin.pb.h"
#include "common/unique_fd.h"
#include "tests/catch.h"

namespace {

// What goes to standard error while `action` runs.
template <typename Action>
std::string StandardErrorOf(Action action) {
  char path[] = "/tmp/xschedd-log-test-XXXXXX";
  const xschedd::UniqueFd file(::mkostemp(path, O_CLOEXEC));
  ::unlink(path);
  const xschedd::UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(file.Get(), STDERR_FILENO);
  action();
  std::fflush(stderr);
  ::dup2(before.Get(), STDERR_FILENO);
  std::string text(static_cast<std::size_t>(::lseek(file.Get(), 0, SEEK_END)), '\0');
  CHECK(::pread(file.Get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return text;
}

}  // namespace

TEST_CASE("what is no UTF-8 is told of, a few times") {
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
  CHECK(lines <= 100);  // of 2000; a few more a second on a machine that is very slow
  CHECK(text.find("library=protobuf") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}
