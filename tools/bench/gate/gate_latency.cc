// The latency from a transition in one client to the gate of another: two processes with a fake client each, and the
// real daemon between them; in alternation with a bare futex round trip between the same two processes.
//
//   held     the important client becomes busy  → the other one's gate word says held (polled, as a launch path
//            reads it)
//   opened   the important client becomes idle  → the thread that sleeps at the other one's gate runs again
//   futex    one process wakes the other, which wakes it back: two wake-ups, as `opened` needs two
//
// Set the daemon's linger to 0 first (xschedctl policy set --linger 0), or `opened` includes it.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <vector>

#include "common/clock.h"
#include "common/command_syntax.h"
#include "tools/bench/gate/fake_client.h"

namespace xschedd::bench {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Shared by the two processes; anonymous memory made before the fork.
struct Shared {
  std::atomic<std::uint32_t> ready;    // processes with a session
  std::atomic<std::uint32_t> armed;    // the waiting side is about to look for the next change
  std::atomic<std::uint32_t> seen;     // changes the waiting side has seen
  std::atomic<std::uint64_t> seen_at;  // when it saw the last one
  std::atomic<std::uint32_t> ping;     // futex words of the bare round trip
  std::atomic<std::uint32_t> pong;
  std::atomic<std::uint32_t> failed;
};

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}
void FutexWake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Pause(long microseconds) {
  const timespec time{0, microseconds * 1000};
  nanosleep(&time, nullptr);
}

void AwaitCount(const std::atomic<std::uint32_t>& word, std::uint32_t count) {
  while (word.load() < count)
    Pause(20);
}

// The side that is held and opened: notes each change as soon as it can.
void Watch(Shared& shared, FakeClient& client, std::uint32_t rounds) {
  std::uint32_t changes = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    shared.armed = ++changes;
    // Yields, because on a machine without a spare core spinning would delay the daemon that is being measured.
    while (!client.IsHeld())
      sched_yield();
    shared.seen_at = MonotonicNs();
    shared.seen = changes;

    shared.armed = ++changes;
    client.Ledger().AddWaiter(0);
    for (std::uint32_t word = client.Board().Word(0); (word & abi::kHeld) != 0; word = client.Board().Word(0)) {
      client.Board().Wait(0, word, kNever);
    }
    shared.seen_at = MonotonicNs();
    client.Ledger().RemoveWaiter(0);
    shared.seen = changes;

    while (shared.ping.load() != round)
      FutexWait(shared.ping, round - 1);
    shared.pong = round;
    FutexWake(shared.pong);
  }
}

struct Samples {
  std::vector<double> held, opened, futex;
};

// The side that makes the changes and takes the times.
Samples Drive(Shared& shared, FakeClient& client, std::uint32_t rounds) {
  Samples samples;
  std::uint32_t changes = 0;
  const auto change = [&](bool busy) {
    AwaitCount(shared.armed, ++changes);
    // Lets the other side and the daemon fall asleep, because a transition usually finds a sleeping daemon.
    Pause(300 + changes % 7 * 50);
    const std::uint64_t start = MonotonicNs();
    client.ReportBusy(busy);
    AwaitCount(shared.seen, changes);
    return static_cast<double>(shared.seen_at.load() - start);
  };
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    samples.held.push_back(change(true));
    samples.opened.push_back(change(false));
    Pause(300);
    const std::uint64_t start = MonotonicNs();
    shared.ping = round;
    FutexWake(shared.ping);
    while (shared.pong.load() != round)
      FutexWait(shared.pong, round - 1);
    samples.futex.push_back(static_cast<double>(MonotonicNs() - start));
  }
  return samples;
}

void PrintQuantiles(const char* name, std::vector<double> values, const char* end) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) {
    return values[std::min(values.size() - 1, static_cast<std::size_t>(fraction * static_cast<double>(values.size())))];
  };
  std::printf("\"%s\": {\"p50_ns\": %.0f, \"p99_ns\": %.0f}%s", name, at(0.5), at(0.99), end);
}

std::unique_ptr<FakeClient> ConnectOrReport(Shared& shared, const std::string& runtime_dir, int priority) {
  // A device of its own, so that no other client's transitions move these gates.
  auto client = FakeClient::Connect(runtime_dir, priority, "", {"0000:fa:ce.1", "no device (gate_latency)"});
  if (!client) {
    std::fprintf(stderr, "gate_latency: %s\n", client.error().Line().c_str());
    shared.failed = 1;
    return nullptr;
  }
  return std::move(*client);
}

int WatchingProcess(Shared& shared, const std::string& runtime_dir, std::uint32_t rounds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto client = ConnectOrReport(shared, runtime_dir, 0);
  if (client == nullptr) return 1;
  AwaitCount(shared.ready, 1);
  while (!client->IsTracked())
    Pause(1000);
  client->ReportBusy(true);
  shared.ready = 2;
  Watch(shared, *client, rounds);
  return 0;
}

int DrivingProcess(Shared& shared, const std::string& runtime_dir, std::uint32_t rounds) {
  const auto client = ConnectOrReport(shared, runtime_dir, 50);
  if (client == nullptr) return 1;
  shared.ready = 1;
  while (shared.ready.load() != 2) {
    if (shared.failed.load() != 0) return 1;
    Pause(1000);
  }
  Pause(50'000);
  const Samples samples = Drive(shared, *client, rounds);
  std::printf("{\"rounds\": %u, ", rounds);
  PrintQuantiles("held", samples.held, ", ");
  PrintQuantiles("opened", samples.opened, ", ");
  PrintQuantiles("futex_round_trip", samples.futex, "}\n");
  return 0;
}

}  // namespace
}  // namespace xschedd::bench

int main(int argc, char** argv) {
  std::string runtime_dir;
  std::uint32_t rounds = 2000;
  xschedd::CommandSyntax syntax("Measures how long a transition takes to reach another client's gate.");
  syntax.AddOption("--runtime-dir", runtime_dir, "folder of the daemon's sockets");
  syntax.AddOption("--rounds", rounds, "number of rounds", {.value = xschedd::OptionForm::Value::kPositive});
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  void* const memory =
      mmap(nullptr, sizeof(xschedd::bench::Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) xschedd::bench::Shared{};
  // Fork before gRPC makes threads.
  const pid_t watcher = fork();
  if (watcher < 0) return 1;
  if (watcher == 0) return xschedd::bench::WatchingProcess(shared, runtime_dir, rounds);
  const int status = xschedd::bench::DrivingProcess(shared, runtime_dir, rounds);
  if (status != 0) kill(watcher, SIGKILL);
  int ended = 0;
  waitpid(watcher, &ended, 0);
  return status != 0 || ended != 0 ? 1 : 0;
}
