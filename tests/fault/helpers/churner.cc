// churner RUNTIME_DIR cycle N PARALLEL PCI_ADDRESS: N times a process that connects, works (a few transitions), and is
//   killed by kill -9; PARALLEL of them at a time. For each it writes a line "PID NANOSECONDS" (CLOCK_MONOTONIC, of the
//   kill) to standard output, or "failed" if the process did not get to work (the reason is on standard error).
// churner RUNTIME_DIR stopped PCI_ADDRESS STEP: a process that prints "there" and sleeps at STEP, to be stopped:
//   0 in the middle of its hello  1 before its session  2 attached, a record written and not published  3 busy, without
//   reading what the daemon sends
//
// Thread rule: one thread a process.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/clock.h"
#include "common/preamble_client.h"
#include "tests/fault/helpers/raw_client.h"

namespace xschedd::fault {
namespace {

constexpr int kTransitions = 4;
constexpr int kLooks = 3'000;

void AwaitTracked(const RawClient& client) {
  for (int i = 0; i < kLooks && (client.Board().Word(0) & abi::kTracked) == 0; ++i)
    ::usleep(200);
}

// Reports by one byte that it has worked, and waits to be killed. It needs no cleanup at exit.
[[noreturn]] void Work(const std::string& runtime_dir, const std::string& pci_address, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto client = RawClient::Connect(runtime_dir);
  char verdict = 'f';
  if (client == nullptr) {
    std::fprintf(stderr, "pid %d: no welcome to the preamble: %s\n", ::getpid(), std::strerror(errno));
  } else if (!client->Open(-10, pci_address) || !client->AwaitWelcome()) {
    std::fprintf(stderr, "pid %d: no session:%s\n", ::getpid(), client->Said().c_str());
  } else {
    AwaitTracked(*client);
    for (int i = 0; i < kTransitions; ++i) {
      client->Ledger().Report(0, i % 2 == 0 ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, MonotonicNs());
    }
    // Every second one dies while it is busy.
    if (::getpid() % 2 == 0) client->Ledger().Report(0, abi::TransitionKind::kBusy, MonotonicNs());
    verdict = 'r';
  }
  [[maybe_unused]] const ssize_t said = ::write(pipe, &verdict, 1);
  for (;;)
    ::pause();
}

struct Child {
  pid_t pid = 0;
  int pipe = -1;
};

Child Start(const std::string& runtime_dir, const std::string& pci_address) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) Work(runtime_dir, pci_address, ends[1]);
  ::close(ends[1]);
  if (pid > 0) return {pid, ends[0]};
  ::close(ends[0]);
  return {};
}

int Cycle(const std::string& runtime_dir, long cycles, std::size_t parallel, const std::string& pci_address) {
  // A client of another priority, so that the others are tracked.
  const auto anchor = RawClient::Connect(runtime_dir);
  if (anchor == nullptr || !anchor->Open(50, pci_address) || !anchor->AwaitWelcome()) return 1;
  std::vector<Child> children(parallel);
  std::vector<pollfd> waiting(parallel);
  long started = 0;
  long ended = 0;
  while (ended < cycles) {
    for (std::size_t i = 0; i < parallel; ++i) {
      if (children[i].pid == 0 && started < cycles) {
        children[i] = Start(runtime_dir, pci_address);
        if (children[i].pid == 0) return 1;
        ++started;
      }
      waiting[i] = {children[i].pipe, POLLIN, 0};
    }
    ::poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = 0; i < parallel; ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      char verdict = 'f';
      const bool worked = ::read(children[i].pipe, &verdict, 1) == 1 && verdict == 'r';
      const std::uint64_t now = MonotonicNs();
      ::kill(children[i].pid, SIGKILL);
      if (worked) {
        std::printf("%d %llu\n", children[i].pid, static_cast<unsigned long long>(now));
      } else {
        std::puts("failed");
      }
      ::waitpid(children[i].pid, nullptr, 0);
      ::close(children[i].pipe);
      children[i] = {};
      ++ended;
    }
  }
  return 0;
}

[[noreturn]] void Sleep() {
  std::puts("there");
  std::fflush(stdout);
  for (;;)
    ::pause();
}

int Stopped(const std::string& runtime_dir, const std::string& pci_address, int step) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (step == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (runtime_dir + "/client.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    const PreambleHello hello = MakeHello();
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 1;
    if (::send(socket, &hello, sizeof hello / 2, MSG_NOSIGNAL) < 0) return 1;
    Sleep();
  }
  const auto client = RawClient::Connect(runtime_dir);
  if (client == nullptr) return 1;
  if (step == 1) Sleep();
  if (!client->Open(-10, pci_address) || !client->AwaitWelcome()) return 1;
  AwaitTracked(*client);
  if (step == 2) {
    client->Raw()->devices[0].busy.store(1);
    client->Raw()->ring[0].slot = 0;
    Sleep();
  }
  client->Ledger().Report(0, abi::TransitionKind::kBusy, MonotonicNs());
  client->Ledger().AddWaiter(0);
  Sleep();
}

}  // namespace
}  // namespace xschedd::fault

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[2] : "";
  if (verb == "cycle" && argc == 6) {
    return xschedd::fault::Cycle(argv[1], std::atol(argv[3]), static_cast<std::size_t>(std::atol(argv[4])), argv[5]);
  }
  if (verb == "stopped" && argc == 5) return xschedd::fault::Stopped(argv[1], argv[3], std::atoi(argv[4]));
  std::fprintf(stderr, "usage: churner RUNTIME_DIR cycle N PARALLEL PCI_ADDRESS | stopped PCI_ADDRESS STEP\n");
  return 2;
}
