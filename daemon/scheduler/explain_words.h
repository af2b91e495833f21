// The text of Explain: causes with the names of the settings behind them, and remedies as commands to type.
// Thread rule: pure functions over the daemon's records; the daemon's one thread.
#pragma once

#include <string>
#include <vector>

#include "daemon/scheduler/explain.h"

namespace xschedd {

// The client that the words are about.
struct Subject {
  const ClientIdentity& identity;
  const Effective& effective;
  bool hold;
  bool admin_hold;
  bool can_be_held;
  std::uint64_t ended_ns;   // how long ago; 0: it is live
  std::uint64_t launch_ns;  // how long its launches take, where it takes turns; 0: unknown
};

// The command line as far as it is known, else the executable.
const std::string& CommandOf(const ClientIdentity& identity);

// `device`: where it was held; null: it is unknown now.
std::string CauseText(const HeldTotal& total, const Device* device, const Subject& subject,
                      const ExplainContext& context);
std::string SummaryOf(const Subject& subject, const Explanation& explanation);
std::vector<Remedy> RemediesFor(const HeldTotal& total, const Subject& subject, const ExplainContext& context);

}  // namespace xschedd
