// The peer according to the kernel and /proc, and how foreign text is cleaned.
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "daemon/registry/command_reader.h"
#include "daemon/registry/process.h"
#include "daemon/registry/process_key.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"

using namespace xschedd;

namespace {

UniqueFd PidFd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// A zombie child, whose pid cannot be reused.
class DeadChild {
 public:
  DeadChild() : pid_(::fork()) {
    if (pid_ == 0) ::_exit(0);
    pidfd_ = PidFd(pid_);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0);
  }
  ~DeadChild() { ::waitpid(pid_, nullptr, 0); }
  DeadChild(const DeadChild&) = delete;
  DeadChild& operator=(const DeadChild&) = delete;
  pid_t Pid() const { return pid_; }
  int PidFdNumber() const { return pidfd_.Get(); }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

// Waits for one answer of a CommandReader.
class Answer {
 public:
  CommandReader::Done Taker() {
    return [this](std::string command) {
      const std::lock_guard lock(mutex_);
      command_ = std::move(command);
      there_ = true;
      changed_.notify_all();
    };
  }
  std::string Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return there_; });
    return command_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string command_;
  bool there_ = false;
};

}  // namespace

TEST_CASE("client text becomes well-formed UTF-8 without control characters or quotes") {
  const struct {
    std::string_view from;
    std::string_view to;
  } cases[] = {
      {"plain", "plain"},
      {"a\x1b[31m\"\x7f\n", "a?[31m???"},
      {"\xc2\x9b\x33\x31m\xc2\xa0", "?31m\xc2\xa0"},  // U+009B begins a terminal's command
      {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},  // 2, 3 and 4 bytes
      {"\x80\xbf", "??"},                                                                // no lead
      {"\xc0\x80\xc1\xbf", "????"},                                                      // overlong, 2 bytes
      {"\xe0\x9f\xbf", "???"},                                                           // overlong, 3 bytes
      {"\xe0\xa0\x80", "\xe0\xa0\x80"},
      {"\xf0\x8f\xbf\xbf", "????"},  // overlong, 4 bytes
      {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
      {"\xed\xa0\x80", "???"},  // a surrogate
      {"\xed\x9f\xbf", "\xed\x9f\xbf"},
      {"\xf4\x90\x80\x80", "????"},  // beyond U+10FFFF
      {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
      {"\xf5\x80\x80\x80\xff", "?????"},
      {"\xe2\x82", "??"},       // ends too early
      {"\xe2\x28\xac", "?(?"},  // not a continuation
  };
  for (const auto& [from, to] : cases)
    CHECK(CleanText(from, 64) == to);
  CHECK(CleanText("12345", 3) == "123");
  CHECK(CleanText("12\xe2\x82\xac", 4) == "12");  // half a character is none
  CHECK(CleanText(std::string_view("a\0b", 3), 8) == "a?b");
}

TEST_CASE("the kernel identifies the process at the other end of a socket") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  const auto peer = ReadPeer(one.Get());
  REQUIRE(peer);
  CHECK(peer->pid == ::getpid());
  CHECK(peer->uid == ::getuid());
  CHECK(peer->gid == ::getgid());
  CHECK((::fcntl(peer->pidfd.Get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(!HasExited(peer->pidfd.Get()));

  SECTION("a file that is not a socket has no peer") {
    CHECK(ReadPeer(STDIN_FILENO).error().what.find("the kernel does not say which process connected") == 0);
    CHECK(!ReadPeer(-1));
  }
  SECTION("without a descriptor for its pidfd a peer is not admitted") {
    const test::FewDescriptors none(0);
    CHECK(!ReadPeer(one.Get()));
  }
}

TEST_CASE("a reused pid is not taken for the process that connected") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  const std::vector<uid_t> own(4, ::getuid());
  const std::vector<uid_t> others(4, ::getuid() + 1);
  int opened = 0;
  int looks = 0;
  // A kernel before 6.5 gives only the pid. `before`, `after`: what /proc says before and after the pidfd is opened.
  const auto as_of = [&](int error, std::optional<ProcessStatus> before, std::optional<ProcessStatus> after) {
    opened = looks = 0;
    const PeerCalls calls{.peer_pidfd =
                              [error](int) {
                                errno = error;
                                return -1;
                              },
                          .open_pidfd =
                              [&](pid_t pid) {
                                ++opened;
                                return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
                              },
                          .read_status = [&, before, after](pid_t) { return looks++ == 0 ? before : after; }};
    return ReadPeer(one.Get(), calls).has_value();
  };
  const ProcessStatus it{100, own};
  CHECK(as_of(ENOPROTOOPT, it, it));
  CHECK(opened == 1);
  CHECK_FALSE(as_of(ENOPROTOOPT, it, ProcessStatus{101, own}));  // it changed in between
  CHECK_FALSE(as_of(ENOPROTOOPT, std::nullopt, it));
  CHECK_FALSE(as_of(ENOPROTOOPT, it, std::nullopt));
  CHECK_FALSE(as_of(ENOPROTOOPT, ProcessStatus{0, own}, ProcessStatus{0, own}));            // not known
  CHECK_FALSE(as_of(ENOPROTOOPT, ProcessStatus{100, others}, ProcessStatus{100, others}));  // reused by another user
  // It connected as this user and has changed to another; one of its uids is still the first.
  CHECK(
      as_of(ENOPROTOOPT, ProcessStatus{100, others}, ProcessStatus{100, {::getuid() + 1, ::getuid() + 1, ::getuid()}}));
  // With these errors a newer kernel says that the peer is gone; its pid is not tried.
  for (const int error : {ESRCH, ENODATA, EINVAL, EMFILE}) {
    CHECK_FALSE(as_of(error, it, it));
    CHECK(opened == 0);
  }
}

TEST_CASE("what the kernel says about a process") {
  CHECK(StartTicks("12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20") == 4242);
  CHECK(StartTicks("12 (a) S 1 2") == 0);
  CHECK(StartTicks("") == 0);
  CHECK(UidsOf("Name:\tx\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n") ==
        std::vector<uid_t>{1000, 1001, 1002, 1003});
  CHECK(UidsOf("Name:\tUid: 7\n").empty());
  CHECK(LoginUidOf("1000") == 1000u);
  CHECK(LoginUidOf("0\n") == 0u);
  CHECK(!LoginUidOf("4294967295"));
  CHECK(!LoginUidOf(""));
  const auto look = SystemPeerCalls().read_status(::getpid());
  REQUIRE(look);
  CHECK(look->start_ticks == ReadProcessKey(::getpid(), PidFd(::getpid()).Get()).start_ticks);
  CHECK(look->uids.size() == 4);
  CHECK(!SystemPeerCalls().read_status(0x7fffffff));
}

TEST_CASE("/proc is ignored once the process has exited") {
  const DeadChild child;
  CHECK(HasExited(child.PidFdNumber()));
  const ProcessInfo info = ReadProcess(child.Pid(), child.PidFdNumber());
  CHECK(info.exe.empty());
  CHECK(info.cgroup.empty());
}

TEST_CASE("a process is described by /proc, as far as it can be read") {
  const UniqueFd own = PidFd(::getpid());
  const ProcessInfo info = ReadProcess(::getpid(), own.Get());
  CHECK(info.exe.find("unit_daemon") != std::string::npos);
  CHECK(!info.cgroup.empty());
  const ProcessInfo nobody = ReadProcess(0x7fffffff, own.Get());
  CHECK(nobody.exe.empty());
  CHECK(nobody.cgroup.empty());
}

TEST_CASE("command lines are read by another thread, and are empty where there is none") {
  const UniqueFd own = PidFd(::getpid());
  CommandReader reader;
  SECTION("a live process") {
    Answer answer;
    reader.Read(::getpid(), own.Get(), answer.Taker());
    CHECK(answer.Wait().find("unit_daemon") != std::string::npos);
  }
  SECTION("no process") {
    Answer answer;
    reader.Read(0x7fffffff, own.Get(), answer.Taker());
    CHECK(answer.Wait().empty());
  }
  SECTION("one that has exited") {
    const DeadChild child;
    Answer answer;
    reader.Read(child.Pid(), child.PidFdNumber(), answer.Taker());
    CHECK(answer.Wait().empty());
  }
  SECTION("one without a command line") {
    // Kernel threads have none, such as pid 2; in a container, pid 2 is something else or absent.
    Answer answer;
    reader.Read(2, own.Get(), answer.Taker());
    answer.Wait();
  }
  SECTION("without a descriptor nothing is read, and the next request is served") {
    {
      const test::FewDescriptors none(0);
      reader.Read(::getpid(), own.Get(), [](const std::string&) { FAIL("read without a descriptor"); });
    }
    Answer answer;
    reader.Read(::getpid(), own.Get(), answer.Taker());
    CHECK(!answer.Wait().empty());
  }
  SECTION("many at once, in order") {
    std::atomic<int> answered = 0;
    constexpr int kAsked = 200;
    for (int i = 0; i < kAsked; ++i)
      reader.Read(::getpid(), own.Get(), [&](const std::string&) { ++answered; });
    Answer last;
    reader.Read(::getpid(), own.Get(), last.Taker());
    last.Wait();
    CHECK(answered == kAsked);
  }
}
