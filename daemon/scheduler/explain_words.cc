#include "daemon/scheduler/explain_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/registry/effective.h"
#include "daemon/registry/process.h"
#include "daemon/scheduler/benefit_words.h"
#include "daemon/scheduler/filling_words.h"

namespace xschedd {
namespace {

using policy::Why;

constexpr std::size_t kCommandShown = 50;

// A command line's beginning, without its program's folder.
std::string Short(const std::string& command) {
  const std::size_t slash = command.find_last_of('/', std::min(command.find(' '), command.size()));
  // Never cuts a character in half, which would make the whole answer invalid UTF-8.
  return CleanText(std::string_view(command).substr(slash == std::string::npos ? 0 : slash + 1), kCommandShown);
}

// "pid 4711 (python train.py, priority 50)". A client that has ended has no command.
std::string Who(const Reason& reason, const ExplainContext& context) {
  std::string command;
  for (const Client* client : context.registry.FindPid(reason.pid))
    if (!context.only_of || MayManage(*context.only_of, client->identity.uid, *client->principal))
      command = Short(CommandOf(client->identity));
  if (!command.empty()) command += ", ";
  return fmt::format("pid {} ({}priority {})", reason.pid, command, reason.priority);
}

// "; beside it pid 7 would be 31 % slower"; empty: not known.
std::string BenefitOfHolding(const Reason& reason, const ExplainContext& context) {
  const std::vector<Client*> clients = context.registry.FindPid(reason.pid);
  const std::string text = clients.empty() ? "" : CostText(*clients.front()->group->memory.benefit, reason.pid);
  return text.empty() ? text : "; " + text;
}

std::string Limit(const policy::Settings& settings) {
  return settings.max_concurrent ? fmt::format("max_concurrent={}", *settings.max_concurrent)
                                 : "max_concurrent is left to the daemon";
}

// Of one that has its turn less often than its equals.
std::string OwedTurns(const Subject& subject, const policy::Settings& settings) {
  if (subject.launch_ns <= settings.turn_ms * policy::kNsPerMs) return "";
  return fmt::format("; its launches take {} ms each, so that its turns last longer and come less often",
                     subject.launch_ns / policy::kNsPerMs);
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Seconds(std::uint64_t ns) {
  return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

class Remedies {
 public:
  Remedies(const Subject& subject, const ExplainContext& context)
      : subject_(subject), context_(context), settings_(context.config.policy) {}

  std::vector<Remedy> For(const Reason& reason) {
    const bool names_other = reason.pid != 0;
    switch (reason.why) {
      case Why::kHold:
        if (subject_.admin_hold) {
          Self("end the administrator's hold" + ByAdmin(), "release");
        } else {
          Self("end the hold", "release");
        }
        break;
      case Why::kPriority:
      case Why::kGang:
        RaiseTo(reason.priority,
                names_other ? fmt::format("let it run beside pid {} as its equal", reason.pid) : "raise its priority");
        if (names_other && IsLive(reason.pid)) {
          Add(fmt::format("or lower pid {} to its priority{}", reason.pid, ByAdmin()),
              fmt::format("xschedctl set {} --priority {}", reason.pid, subject_.effective.priority));
        }
        Tune(fmt::format("or give held clients more of each second, in turns (guard_ms_per_s={})",
                         settings_.guard_ms_per_s),
             fmt::format("xschedctl policy set --guard {}ms",
                         std::min(policy::RowOf(&policy::Settings::guard_ms_per_s).max,
                                  std::max(50u, 2 * settings_.guard_ms_per_s))));
        break;
      case Why::kLinger:
        Tune(fmt::format("let it run sooner after the more important client has become idle (linger_us={})",
                         settings_.linger_us),
             fmt::format("xschedctl policy set --linger {}us", settings_.linger_us / 2));
        break;
      case Why::kTurn:
        Tune(fmt::format("let more background clients run on a device at the same time ({})", Limit(settings_)),
             fmt::format("xschedctl policy set --max-concurrent {}", settings_.max_concurrent.value_or(1) + 1));
        Tune(fmt::format("or make turns shorter (turn_ms={})", settings_.turn_ms),
             fmt::format("xschedctl policy set --turn {}ms",
                         std::max(policy::RowOf(&policy::Settings::turn_ms).min, settings_.turn_ms / 2)));
        break;
      case Why::kShare:
        Reweigh();
        Tune(
            fmt::format("or let clients be further ahead of their share (share_slack_us={})", settings_.share_slack_us),
            fmt::format("xschedctl policy set --share-slack {}us",
                        std::min(policy::RowOf(&policy::Settings::share_slack_us).max, 2 * settings_.share_slack_us)));
        break;
      case Why::kDeadline:
        RaiseTo(subject_.effective.priority + 1, "let it run before all deadlines of its current priority");
        Add("or start it with a shorter deadline: xschedctl run --deadline", "");
        break;
      case Why::kFair:
        RaiseTo(subject_.effective.priority + 1, "let it run before the others of its current priority");
        Tune(fmt::format("or let clients run longer before they drop a level (fair_quantum_ms={})",
                         settings_.fair_quantum_ms),
             fmt::format(
                 "xschedctl policy set --fair-quantum {}ms",
                 std::min(policy::RowOf(&policy::Settings::fair_quantum_ms).max, 2 * settings_.fair_quantum_ms)));
        break;
      case Why::kOpen:
      case Why::kGuard:
      case Why::kBeside:
        break;
    }
    return std::move(remedies_);
  }

 private:
  void Add(std::string text, std::string command) { remedies_.push_back({std::move(text), std::move(command)}); }

  // Tells a user that only an administrator can run the command.
  std::string ByAdmin() const { return !context_.is_admin ? " (by an administrator)" : ""; }

  // A change of the policy.
  void Tune(const std::string& text, std::string command) { Add(text + ByAdmin(), std::move(command)); }

  // A command about the client itself, if it is live.
  void Self(const std::string& text, const std::string& verb, const std::string& options = "") {
    if (subject_.ended_ns == 0) Add(text, fmt::format("xschedctl {} {}{}", verb, subject_.identity.pid, options));
  }

  bool IsLive(std::uint64_t pid) const { return !context_.registry.FindPid(pid).empty(); }

  void RaiseTo(int priority, const std::string& text) {
    priority = std::min(priority, kPriorityMax);
    const std::uint32_t uid = subject_.identity.uid;
    const std::optional<int> ceiling = context_.config.PriorityCeiling(uid);
    if (ceiling && *ceiling < priority) {
      Add(fmt::format("{}: raise the [[ceiling]] of uid {} (now {}) to {} in the configuration{}, then", text, uid,
                      *ceiling, priority, ByAdmin()),
          "xschedctl reload");
    }
    const OwnCeiling own = OwnCeilingOf(uid, subject_.identity.may_raise, context_.config);
    const ClaimPtr& claim = subject_.effective.claim;
    if (claim != nullptr && (claim->priority || claim->ceiling.value_or(kPriorityMax) < priority)) {
      if (subject_.ended_ns != 0) Add(fmt::format("{}: change the priority of {}", text, ClaimText(*claim)), "");
      Self(text + ByAdmin(), "set", fmt::format(" --priority {}", priority));
    } else if (!ceiling && !(claim != nullptr && claim->ceiling) && own.priority < priority) {
      if (subject_.ended_ns != 0) {
        Add(fmt::format("{}: give uid {} a [[ceiling]] of {} in the configuration{}, then start the next one with "
                        "xschedctl run --priority {}",
                        text, uid, priority, ByAdmin(), priority),
            "xschedctl reload");
      } else {
        Self(text + ByAdmin(), "set", fmt::format(" --priority {}", priority));
      }
    } else if (subject_.ended_ns != 0) {
      Add(fmt::format("start the next one with xschedctl run --priority {}", priority), "");
    } else {
      Self(text, "set", fmt::format(" --priority {}", priority));
    }
  }

  void Reweigh() {
    const std::uint32_t weight = std::min(policy::kWeightLimits.max, 2 * subject_.effective.weight);
    const OwnCeiling own = OwnCeilingOf(subject_.identity.uid, subject_.identity.may_raise, context_.config);
    const std::string text = fmt::format("give it a larger share (weight {})", subject_.effective.weight) +
                             (own.weight < weight ? ByAdmin() : "");
    if (subject_.ended_ns != 0) {
      Add(fmt::format("start the next one with xschedctl run --weight {}", weight), "");
    } else {
      Self(text, "set", fmt::format(" --weight {}", weight));
    }
  }

  const Subject& subject_;
  const ExplainContext& context_;
  const policy::Settings& settings_;
  std::vector<Remedy> remedies_;
};

// Over all devices: a client of eight GPUs has eight seconds in each second.
std::uint64_t Sum(const Explanation& explanation, Phase phase) {
  std::uint64_t sum = 0;
  for (const ExplainedDevice& device : explanation.devices)
    sum += device.account.phase_ns[static_cast<std::size_t>(phase)];
  return sum;
}

}  // namespace

const std::string& CommandOf(const ClientIdentity& identity) {
  return identity.command.empty() ? identity.exe : identity.command;
}

std::string CauseText(const HeldTotal& total, const Device* device, const Subject& subject,
                      const ExplainContext& context) {
  if (total.is_others) return "others: further clients and rules, which are counted together";
  const Reason& reason = total.reason;
  const policy::Settings& settings = context.config.policy;
  const std::string who = reason.pid == 0 ? "another client" : Who(reason, context);
  switch (reason.why) {
    case Why::kHold:
      return "hold: by an administrator or by its own user, until release";
    case Why::kPriority:
      return fmt::format("priority: {} was busy here{}", who, BenefitOfHolding(reason, context));
    case Why::kLinger:
      return fmt::format("linger: {} had just become idle (linger_us={})", who, settings.linger_us);
    case Why::kGang:
      return fmt::format("gang: {} was busy on another device that its group needs", who);
    case Why::kTurn:
      return fmt::format(
          "turns: it was the turn of {} ({}, turn_ms={}{})", who,
          settings.max_concurrent || device == nullptr ? Limit(settings) : FillingText(device->memory.filling),
          settings.turn_ms, OwedTurns(subject, settings));
    case Why::kShare:
      return fmt::format("share: it was ahead of its share, {} behind (share_slack_us={})", who,
                         settings.share_slack_us);
    case Why::kDeadline:
      return fmt::format("deadline: {} was more urgent", who);
    case Why::kFair:
      return fmt::format("fair: {} had used less GPU time (fair_quantum_ms={})", who, settings.fair_quantum_ms);
    case Why::kOpen:
    case Why::kGuard:
    case Why::kBeside:
      break;
  }
  return std::string(RuleName(reason.why));
}

std::string SummaryOf(const Subject& subject, const Explanation& explanation) {
  const ClaimPtr& claim = subject.effective.claim;
  const bool is_claims = claim != nullptr && subject.effective.source == PrioritySource::kClaim;
  std::string who = fmt::format("pid {} (priority {}{}, weight {}{})", subject.identity.pid, subject.effective.priority,
                                is_claims ? " by " + ClaimText(*claim) : "", subject.effective.weight,
                                claim != nullptr && !is_claims ? ", " + ClaimText(*claim) : "");
  std::string when = "the last " + Seconds(explanation.observed_ns);
  if (subject.ended_ns != 0) {
    who += fmt::format(" ended {} ago", Seconds(subject.ended_ns));
    when += " before that";
  }
  const std::uint64_t silent = Sum(explanation, Phase::kSilent);
  const std::string begin = who + (subject.ended_ns != 0 ? "; in " : ": in ") + when;
  if (!subject.can_be_held)
    return begin + " it was never held: xschedd cannot hold it, because it has no shared memory";
  if (explanation.devices.empty()) return who + " has used no device yet";
  const std::uint64_t all = Sum(explanation, Phase::kUntracked) + Sum(explanation, Phase::kIdle) +
                            Sum(explanation, Phase::kRunning) + Sum(explanation, Phase::kSilent) + explanation.held_ns;
  if (silent != 0 && silent >= explanation.held_ns) {
    return fmt::format(
        "{} it was silent for {} of the time: it had reported work and then nothing more "
        "(stopped, frozen or dumping core), so it counted as idle and held no other client",
        begin, Percent(silent, all));
  }
  if (explanation.held_ns == 0 || explanation.causes.empty()) {
    if (Sum(explanation, Phase::kUntracked) * 2 > all) {
      return begin + " xschedd did not make it wait: it ran untracked, since no decision depended on when it was busy";
    }
    return fmt::format("{} xschedd did not make it wait: it had work for {} of the time and none for {}", begin,
                       Percent(Sum(explanation, Phase::kRunning), all), Percent(Sum(explanation, Phase::kIdle), all));
  }
  const ExplainedCause& first = explanation.causes.front();
  // The first, largest cause decides this; another, from before a reload, may be of the other kind.
  return fmt::format("{} it {} held for {} of the time; {} of that by {}", begin,
                     first.total.reason.is_observed ? "would have been" : "was", Percent(explanation.held_ns, all),
                     Percent(first.total.total_ns, explanation.held_ns), first.text);
}

std::vector<Remedy> RemediesFor(const HeldTotal& total, const Subject& subject, const ExplainContext& context) {
  if (total.is_others) return {};
  return Remedies(subject, context).For(total.reason);
}

}  // namespace xschedd
