// Renews the busy state of clients without a shim, as a shim's agent does (abi.h), so that they do not count as silent.
// One thread per process, from the first ledger on. Thread rule: any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "common/ledger.h"

namespace xschedd::bench {

class Renewer {
 public:
  // From here until Remove; the ledger must live as long.
  static void Add(LedgerWriter* ledger) {
    Shared& shared = Instance();
    const std::lock_guard lock(shared.mutex);
    shared.ledgers.push_back(ledger);
    if (shared.ledgers.size() == 1 && !shared.runs) {
      shared.runs = true;
      std::thread(&Renewer::Run).detach();
    }
  }

  static void Remove(LedgerWriter* ledger) {
    Shared& shared = Instance();
    const std::lock_guard lock(shared.mutex);
    std::erase(shared.ledgers, ledger);
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::vector<LedgerWriter*> ledgers;
    bool runs = false;
  };

  // Never destroyed: the thread uses it until the process ends.
  static Shared& Instance() {
    static auto* const shared = new Shared;
    return *shared;
  }

  static void Run() {
    Shared& shared = Instance();
    for (;;) {
      {
        const std::lock_guard lock(shared.mutex);
        for (LedgerWriter* ledger : shared.ledgers) {
          if (ledger->IsAnyBusy()) ledger->Renew();
        }
      }
      std::this_thread::sleep_for(std::chrono::nanoseconds(abi::kRenewNs / 2));
    }
  }
};

}  // namespace xschedd::bench
