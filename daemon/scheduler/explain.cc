#include "daemon/scheduler/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "daemon/policy/owner_weight.h"
#include "daemon/policy/turns.h"
#include "daemon/scheduler/benefit_words.h"
#include "daemon/scheduler/explain_words.h"
#include "daemon/scheduler/filling_words.h"
#include "daemon/scheduler/memory_words.h"
#include "daemon/scheduler/queue_priority_words.h"
#include "daemon/scheduler/share_owner.h"
#include "daemon/scheduler/slice_words.h"

namespace xschedd {
namespace {

// Remedies for causes of less than 1/this of the held time are noise.
constexpr std::uint64_t kSmallPart = 20;
constexpr std::size_t kMaxRemedies = 5;

std::uint64_t Busy(const Account& account) {
  return account.phase_ns[static_cast<std::size_t>(Phase::kRunning)] +
         account.phase_ns[static_cast<std::size_t>(Phase::kHeld)];
}

std::uint64_t Held(const Account& account) {
  return account.phase_ns[static_cast<std::size_t>(Phase::kHeld)];
}

class Explainer {
 public:
  Explainer(const Subject& subject, std::uint32_t seconds, std::uint64_t end_ns, const ExplainContext& context)
      : subject_(subject), context_(context), end_ns_(end_ns) {
    const std::uint64_t back = seconds * policy::kNsPerS;
    from_ns_ = seconds == 0 || back > end_ns ? 0 : end_ns - back;
    result_.command = CommandOf(subject.identity);
    result_.effective = subject.effective;
    result_.to_ns = end_ns;
  }

  void AddDevice(const std::string& address, const History& history, std::uint64_t gpu_ns) {
    ExplainedDevice device{address, history.Since(context_.histories, from_ns_, {end_ns_, gpu_ns})};
    result_.observed_ns = std::max(result_.observed_ns, device.account.to_ns - device.account.from_ns);
    const auto found = context_.registry.Devices().find(address);
    const Device* const known = found == context_.registry.Devices().end() ? nullptr : found->second.get();
    for (const HeldTotal& total : device.account.causes)
      result_.causes.push_back(
          {address, total,
           (total.reason.is_observed ? "observed only: " : "") + CauseText(total, known, subject_, context_)});
    for (const HeldSpan& span : device.account.spans)
      result_.spans.push_back({address, span});
    result_.held_ns += Held(device.account);
    result_.devices.push_back(std::move(device));
  }

  // What the others on the last added device did meanwhile.
  void AddNeighbours(const Device& neighbourhood, const Client* self) {
    ExplainedDevice& device = result_.devices.back();
    device.gpu_all_ns = device.gpu_level_ns = device.account.gpu_ns;
    // As the policy `share` weighs them.
    std::map<std::string, policy::OwnerWeight> owners;
    const auto add = [&owners](const Effective& effective, const ClientIdentity& who) -> policy::OwnerWeight& {
      policy::OwnerWeight& owner = owners[ShareOwnerOf(effective.claim, who)];
      owner.Add(effective.weight);
      return owner;
    };
    const policy::OwnerWeight& own = add(subject_.effective, subject_.identity);
    for (const Attachment* other : neighbourhood.attachments) {
      if (other->client == self) continue;
      const Account account = other->history.Since(context_.histories, device.account.from_ns, other->MomentAt(end_ns_),
                                                   History::Detail::kTimes);
      device.gpu_all_ns += account.gpu_ns;
      if (other->client->effective.priority != subject_.effective.priority || Busy(account) == 0) continue;
      device.gpu_level_ns += account.gpu_ns;
      add(other->client->effective, other->client->identity);
    }
    std::uint64_t all = 0;
    for (const auto& [name, owner] : owners)
      all += owner.greatest;
    device.weight_level = own.WholeOf(all);
  }

  // For the last added device.
  void AddSlice(std::string text) { result_.devices.back().slice = std::move(text); }
  void AddMemory(const Attachment& attachment) {
    result_.devices.back().memory = MemoryText(attachment);
    const auto account = attachment.client->channel == nullptr
                             ? std::nullopt
                             : attachment.client->channel->Ledger().Memory(attachment.slot);
    if (!account || account->refused == 0) return;
    result_.devices.back().memory +=
        fmt::format("; {} allocation{} refused since it connected", account->refused, account->refused == 1 ? "" : "s");
    if (LimitHere(attachment).bytes != 0) refused_.push_back({MemoryRemedy(attachment), {}});
  }

  Explanation Finish() {
    std::sort(result_.causes.begin(), result_.causes.end(),
              [](const ExplainedCause& a, const ExplainedCause& b) { return a.total.total_ns > b.total.total_ns; });
    std::sort(result_.spans.begin(), result_.spans.end(),
              [](const ExplainedSpan& a, const ExplainedSpan& b) { return a.span.start_ns < b.span.start_ns; });
    result_.summary = SummaryOf(subject_, result_);
    for (const ExplainedCause& cause : result_.causes) {
      if (cause.total.total_ns * kSmallPart >= result_.held_ns)
        AddRemedies(RemediesFor(cause.total, subject_, context_));
    }
    AddRemedies(std::move(refused_));
    if (subject_.hold) AddRemedies(RemediesFor({.reason = {.why = policy::Why::kHold}}, subject_, context_));
    return std::move(result_);
  }

 private:
  void AddRemedies(std::vector<Remedy> remedies) {
    for (Remedy& remedy : remedies) {
      const bool is_known = std::any_of(result_.remedies.begin(), result_.remedies.end(), [&](const Remedy& known) {
        return known.text == remedy.text && known.command == remedy.command;
      });
      if (!is_known && result_.remedies.size() < kMaxRemedies) result_.remedies.push_back(std::move(remedy));
    }
  }

  const Subject& subject_;
  const ExplainContext& context_;
  std::uint64_t end_ns_;
  std::uint64_t from_ns_ = 0;
  Explanation result_;
  std::vector<Remedy> refused_;  // for refused allocations
};

}  // namespace

Explanation ExplainClient(const Client& client, std::uint32_t seconds, const ExplainContext& context) {
  const Subject subject{.identity = client.identity,
                        .effective = client.effective,
                        .hold = client.IsOnHold(),
                        .admin_hold = client.hold,
                        .can_be_held = client.channel != nullptr,
                        .ended_ns = 0,
                        .launch_ns = policy::Turns::LaunchNs(client.group->memory)};
  Explainer explainer(subject, seconds, context.now_ns, context);
  for (const auto& [slot, attachment] : client.attachments) {
    explainer.AddDevice(attachment->device->pci_address, attachment->history,
                        attachment->MomentAt(context.now_ns).gpu_ns);
    explainer.AddNeighbours(*attachment->device, &client);
    explainer.AddSlice(SliceInForce(*attachment));
    explainer.AddMemory(*attachment);
  }
  Explanation explanation = explainer.Finish();
  explanation.passed = client.passed;
  explanation.benefit = client.effective.latency == Latency::kStrict
                            ? "it holds those below it whenever it is busy (latency=strict)"
                            : BenefitText(*client.group->memory.benefit, context.config.policy.tolerance_percent);
  const auto on = client.attachments.empty() ? nullptr : &client.attachments.begin()->second->device->memory.filling;
  if (const std::string joins = JoinsText(client.group->memory, on); !joins.empty())
    explanation.benefit += (explanation.benefit.empty() ? "" : "; ") + joins;
  explanation.queue_priority = QueuePriorityText(client, context.config.policy);
  return explanation;
}

Explanation ExplainClient(const PastClient& client, std::uint32_t seconds, const ExplainContext& context) {
  const Subject subject{.identity = client.identity,
                        .effective = client.effective,
                        .hold = false,
                        .admin_hold = false,
                        .can_be_held = true,
                        .ended_ns = std::max<std::uint64_t>(1, context.now_ns - client.ended_ns),
                        .launch_ns = 0};
  Explainer explainer(subject, seconds, client.ended_ns, context);
  for (const PastDevice& device : client.devices)
    explainer.AddDevice(*device.address, device.history, device.gpu_ns);
  Explanation explanation = explainer.Finish();
  explanation.ended_ns = subject.ended_ns;
  explanation.passed = client.passed;
  return explanation;
}

}  // namespace xschedd
