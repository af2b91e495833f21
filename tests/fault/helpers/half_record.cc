// half_record RUNTIME_DIR HINT PCI_ADDRESS STEP: a client that stops just before the STEP-th step of reporting that it
// became busy, prints "there" and waits to be killed or stopped:
//   0  nothing reported                  3  published, the daemon not woken
//   1  level written                     4  all reported
//   2  record written, not published     5  waiting at a shut gate as a waiter, then as 4
// On a line of input it does the remaining steps, reports that it is idle, and ends. The steps are those of
// LedgerWriter::Report (common/ledger.cc), repeated here on the raw ledger. Thread rule: one thread.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/clock.h"
#include "tests/integration/daemon/fake_shim.h"

namespace {

using xschedd::abi::Transition;

int target = 0;

void At(int step) {
  if (step != target) return;
  std::puts("there");
  std::fflush(stdout);
  char line[16];
  if (std::fgets(line, sizeof line, stdin) == nullptr) std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  target = std::atoi(argv[4]);
  xschedd::test::FakeShim shim(argv[1], std::atoi(argv[2]));
  shim.Attach(0, argv[3]);
  while (!shim.IsTracked(0))
    ::usleep(500);
  xschedd::abi::Ledger* ledger = shim.RawLedger();
  At(0);
  ledger->devices[0].busy.store(1);
  At(1);
  const std::uint64_t head = ledger->control.ring_head.load();
  Transition& record = ledger->ring[head % xschedd::abi::kRingSize];
  record.time_ns = xschedd::MonotonicNs();
  record.kind = static_cast<std::uint32_t>(xschedd::abi::TransitionKind::kBusy);
  record.slot = 0;
  At(2);
  ledger->control.ring_head.store(head + 1);
  At(3);
  const std::uint64_t one = 1;
  if (::write(shim.EventFd(), &one, sizeof one) != sizeof one) return 1;
  if (target == 5) ledger->devices[0].waiters.fetch_add(1);
  At(4);
  At(5);
  shim.Report(0, false);
  return 0;
}
