// The last clients that ended, and their histories, for questions after the end of a job. Bounded: kClients; the oldest
// is forgotten first. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "daemon/registry/registry.h"
#include "daemon/registry/same_program.h"

namespace xschedd {

struct PastDevice {
  std::shared_ptr<const std::string> address;
  History history;
  std::uint64_t gpu_ns = 0;  // in its ledger at the end
};

struct PastClient {
  ClientIdentity identity;
  PrincipalPtr principal;
  Effective effective;
  std::uint64_t ended_ns = 0;
  PassedCounts passed;
  policy::BenefitMemory::Mode others_mode = policy::BenefitMemory::Mode::kHeld;  // of its group, as learnt
  std::vector<PastDevice> devices;
};

class PastClients {
 public:
  static constexpr std::size_t kClients = 32;

  // Takes over the client's histories, which end now.
  void Keep(Client& client, HistoryPool& pool, std::uint64_t now_ns);
  // The most recent one with this pid; null: none is remembered.
  const PastClient* Find(std::uint64_t pid) const;
  // The most recent one of the same program; null: none is remembered.
  const PastClient* FindSame(const Program& program) const;

 private:
  std::deque<PastClient> clients_;  // the most recent one first
};

}  // namespace xschedd
