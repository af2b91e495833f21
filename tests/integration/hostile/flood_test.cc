// After a flood of messages the real daemon's log is bounded and its memory has not grown. Times are not checked.
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

// As many as the daemon reads without a pause (daemon/connections/socket_relay.h): more would only take longer.
constexpr int kMessages = 2'400;

std::size_t Lines(const DaemonProcess& daemon) {
  const std::string log = daemon.Log();
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

// The daemon's memory in bytes.
std::size_t Resident(const DaemonProcess& daemon) {
  std::ifstream file("/proc/" + std::to_string(daemon.Pid()) + "/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

// Waits until the daemon has handled everything that was sent before.
void Settle(DaemonProcess& daemon, FakeShim& shim, int priority) {
  v1::ClientMessage last;
  last.mutable_hint()->set_priority(priority);
  shim.Send(last);
  REQUIRE(Eventually([&] { return Find(daemon, shim.Welcome().client_id())->priority_effective() == priority; }));
}

}  // namespace

TEST_CASE("a client that changes its hints all the time does not fill the log") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  v1::ClientMessage message;
  for (int i = 0; i < kMessages; ++i) {
    message.mutable_hint()->set_priority(i % 50);
    shim.Send(message);
  }
  Settle(daemon, shim, -77);
  CHECK(Lines(daemon) < kMessages / 2);
  // Administrators' changes are always logged.
  v1::SetRequest request;
  request.mutable_selector()->set_all(true);
  request.set_priority(33);
  v1::ChangeResponse response;
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
  CHECK(Eventually([&] { return daemon.Log().find("to=33 source=administrator") != std::string::npos; }));
}

TEST_CASE(
    "a user who changes many clients all the time does not fill the log, and an administrator's change is one line") {
  DaemonProcess daemon;
  constexpr int kShims = 40;
  std::vector<std::unique_ptr<FakeShim>> shims;
  for (int i = 0; i < kShims; ++i)
    shims.push_back(std::make_unique<FakeShim>(daemon.Dir(), 0));
  const auto owner = v1::Admin::NewStub(
      grpc::CreateChannel("unix:" + daemon.Dir() + "/client.sock", grpc::InsecureChannelCredentials()));
  const std::size_t before = Lines(daemon);
  int calls = 0;
  for (; calls < 100; ++calls) {
    v1::HoldRequest request;
    request.mutable_selector()->set_all(true);
    v1::ReleaseRequest release;
    release.mutable_selector()->set_all(true);
    v1::ChangeResponse response;
    grpc::ClientContext context;
    const bool hold = calls % 2 == 0;
    REQUIRE((hold ? owner->Hold(&context, request, &response) : owner->Release(&context, release, &response)).ok());
  }
  v1::SetRequest request;
  request.mutable_selector()->set_all(true);
  request.set_priority(-7);
  v1::ChangeResponse response;
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
  CHECK(Eventually([&] { return daemon.Log().find("priority set to -7 clients=40 pid=") != std::string::npos; }));
  CHECK(Lines(daemon) - before < static_cast<std::size_t>(calls * kShims / 4));
}

TEST_CASE("a log that is not read does not stop the daemon") {
  const TemporaryFolder folder;
  const std::string log = folder.Path() + "/log";
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
  UniqueFd reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader.IsValid());
  const pid_t pid = Spawn({DaemonProcess::Binary(), "--runtime-dir", folder.Path(), "--log-level", "debug"}, log);
  const auto admin = v1::Admin::NewStub(
      grpc::CreateChannel("unix:" + folder.Path() + "/admin.sock", grpc::InsecureChannelCredentials()));
  const auto call = [&](std::uint32_t linger_us) {
    v1::SetPolicyRequest request;
    request.set_linger_us(linger_us);
    v1::Policy policy;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return admin->SetPolicy(&context, request, &policy).ok();
  };
  // A pipe holds 64 KiB, which is some hundred lines.
  for (std::uint32_t i = 0; i < 1'500; ++i)
    REQUIRE(call(i));
  FakeShim shim(folder.Path(), 0);
  CHECK(shim.HasSession());
  // When it is read again, it continues.
  std::string text;
  const auto has_come = [&] {
    char buffer[65'536];
    for (ssize_t size = 0; (size = ::read(reader.Get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(size));
    return text.find("linger_us=1499") != std::string::npos;
  };
  CHECK(Eventually(has_come));
  // Nor does an unread log keep the daemon from ending.
  for (std::uint32_t i = 0; i < 1'500; ++i)
    REQUIRE(call(i));
  ::kill(pid, SIGTERM);
  CHECK(Reap(pid) == 0);
}

TEST_CASE("refused messages, and answers that a client does not read, are not kept") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  v1::ClientMessage wrong;
  wrong.mutable_device_attached()->set_slot(1);
  wrong.mutable_device_attached()->set_pci_address(std::string(200, 'x'));
  v1::ClientMessage giant = wrong;
  giant.mutable_device_attached()->set_pci_address(std::string(100'000, 'x'));
  const auto flood = [&](int times, int priority) {
    for (int i = 0; i < times; ++i)
      shim.Send(wrong);
    Settle(daemon, shim, priority);
  };
  // The first messages make gRPC's buffers grow to their final size.
  for (int i = 0; i < 5; ++i)
    shim.Send(giant);
  flood(100, -1);
  const std::size_t before = Resident(daemon);
  flood(300, -2);
  CHECK(Resident(daemon) < before + 8 * 1024 * 1024);
  const std::string notice = shim.NextNotice();
  CHECK(notice.find("is not a PCI address") != std::string::npos);
  CHECK(notice.size() < 200);
  CHECK(Find(daemon, shim.Welcome().client_id())->devices_size() == 0);
}

TEST_CASE("queues that are made and destroyed leave nothing behind") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  v1::ClientMessage message;
  const auto flood = [&](int times, int priority) {
    for (int i = 0; i < times; ++i) {
      const auto queue = static_cast<std::uint64_t>(i) + 1;
      message.mutable_queue_created()->set_queue(queue);
      shim.Send(message);
      message.mutable_queue_destroyed()->set_queue(queue);
      shim.Send(message);
    }
    Settle(daemon, shim, priority);
  };
  flood(600, -1);
  const std::size_t before = Resident(daemon);
  flood(600, -2);
  CHECK(Resident(daemon) < before + 4 * 1024 * 1024);
  CHECK(Find(daemon, shim.Welcome().client_id())->queues_size() == 0);
}
