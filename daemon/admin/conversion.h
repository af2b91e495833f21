// Converts the daemon's records into protobuf messages. Thread rule: the daemon's one thread.
#pragma once

#include "admin.pb.h"
#include "daemon/scheduler/explain.h"
#include "daemon/scheduler/scheduler.h"

namespace xschedd {

// `clients`: how many it applies to.
void FillClaim(const Claim& claim, std::size_t clients, std::uint64_t now_ns, v1::Claim& out);
void FillClaimReport(const ClaimAccount& account, std::size_t clients, v1::ClaimReport& out);
void FillClient(const Client& client, const Scheduler& scheduler, std::uint64_t now_ns, v1::Client& out);
void FillDevice(const Device& device, v1::Device& out);
void FillPolicy(const policy::Settings& settings, v1::Policy& out);
void FillEvent(const Event& event, v1::Event& out);
void FillExplanation(const Explanation& explanation, v1::ExplainResponse& out);

}  // namespace xschedd
