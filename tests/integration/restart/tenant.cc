// A client of a daemon that is restarted; it prints the content of its shared memory, before and after.
//   tenant RUNTIME_DIR HINT PCI_ADDRESS
// Reads one command a line and answers each with a line:
//   busy, idle    reports that level; "ok"
//   use NS N      adds N launches and so much GPU time; "ok"
//   look          "held=H tracked=T bound=B board=INODE ledger=INODE id=CLIENT"; bound: held, within the lease
//   bound NS      waits until the gate is held by a lease that ends after NS; the time at which that was seen, in ns
//   connect       another session in place of this one; "ok", or why not
//   hello         another connection, up to the welcome; "ok"
//   close         closes that connection; "ok"
//   fork          a child that keeps everything open and sleeps; its pid
//   scramble      writes nonsense into the ledger; "ok"
//   write         tries to map the board for writing; "refused" or "written"
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "common/clock.h"
#include "tests/integration/daemon/fake_shim.h"

namespace {

using xschedd::test::FakeShim;

void Answer(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::string Look(const FakeShim& shim) {
  const bool held = shim.IsHeld(0);
  return "held=" + std::to_string(held) + " tracked=" + std::to_string(shim.IsTracked(0)) +
         " bound=" + std::to_string(held && !shim.IsLeaseOver()) + " board=" + std::to_string(shim.BoardInode()) +
         " ledger=" + std::to_string(shim.LedgerInode()) + " id=" + std::to_string(shim.Welcome().client_id());
}

// A lease from before the daemon's end may still bind after it, so only a lease that lasts longer counts.
std::string WaitUntilBound(const FakeShim& shim, std::uint64_t not_before_ns) {
  for (;;) {
    if (shim.IsHeld(0) && shim.LeaseUntilNs() > not_before_ns) return std::to_string(xschedd::MonotonicNs());
    ::usleep(200);
  }
}

std::string Scramble(FakeShim& shim) {
  xschedd::abi::Ledger& ledger = *shim.RawLedger();
  ledger.control.ring_head = ~std::uint64_t{0} - 3;
  ledger.control.lost = 12345;
  std::memset(ledger.ring, 0xa5, sizeof ledger.ring);
  std::memset(&ledger.header, 0xa5, sizeof ledger.header);
  return "ok";
}

// Tries every descriptor of the board that this process can get: it has only the one that it was given.
std::string Write(const FakeShim& shim) {
  return shim.CanWriteBoard() ? "written" : "refused";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto connect = [&] {
    auto shim = std::make_unique<FakeShim>(argv[1], std::atoi(argv[2]));
    shim->Attach(0, argv[3]);
    return shim;
  };
  std::unique_ptr<FakeShim> shim = connect();
  bool is_busy = false;
  Answer("ready");
  xschedd::UniqueFd half;
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const std::string word(line, std::strcspn(line, " \n"));
    if (word == "busy" || word == "idle") {
      is_busy = word == "busy";
      shim->Report(0, is_busy);
      Answer("ok");
    } else if (word == "use") {
      char* rest = line + word.size();
      shim->RawLedger()->devices[0].gpu_time_ns += std::strtoull(rest, &rest, 10);
      shim->RawLedger()->devices[0].submitted += std::strtoull(rest, nullptr, 10);
      Answer("ok");
    } else if (word == "look") {
      Answer(Look(*shim));
    } else if (word == "bound") {
      Answer(WaitUntilBound(*shim, std::strtoull(line + word.size(), nullptr, 10)));
    } else if (word == "connect") {
      try {
        shim = connect();
        if (is_busy) shim->Report(0, true);  // as a shim does; otherwise it would count as silent
        Answer(shim->HasSession() ? "ok" : "no session");
      } catch (const std::exception& error) {
        Answer(error.what());
      }
    } else if (word == "hello") {
      half = xschedd::test::ConnectTo(std::string(argv[1]) + "/client.sock");
      const auto welcomed = xschedd::SayHello(half.Get(), xschedd::MakeHello(), xschedd::test::kAnswerLimitMs);
      Answer(welcomed && welcomed->welcome.status == xschedd::PreambleStatus::kOk ? "ok" : "no welcome");
    } else if (word == "close") {
      half.Reset();
      Answer("ok");
    } else if (word == "fork") {
      const pid_t child = ::fork();
      if (child == 0) {
        ::signal(SIGTERM, SIG_DFL);
        for (;;)
          ::pause();
      }
      Answer(std::to_string(child));
    } else if (word == "scramble") {
      Answer(Scramble(*shim));
    } else if (word == "write") {
      Answer(Write(*shim));
    } else {
      Answer("what?");
    }
  }
}
