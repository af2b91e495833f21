// The daemon's state and every operation on it: what sessions report and what administrators ask. Knows no gRPC. Each
// operation changes the registry, tells the scheduler, and leaves an event and a log line that says who changed what.
// Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/actor.h"
#include "daemon/config/config.h"
#include "daemon/journal.h"
#include "daemon/registry/claim_table.h"
#include "daemon/registry/effective.h"
#include "daemon/registry/hints.h"
#include "daemon/registry/host_gpus.h"
#include "daemon/registry/process.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/roles.h"
#include "daemon/scheduler/events.h"
#include "daemon/scheduler/loop.h"
#include "daemon/scheduler/memory_watch.h"
#include "daemon/scheduler/scheduler.h"

namespace xschedd {

// What an administrator and the owner have set for a client.
struct SetByOthers {
  ClientSettings settings;
  bool hold = false;        // by an administrator
  bool owner_hold = false;  // by its owner
  bool operator==(const SetByOthers&) const = default;
};

// What an earlier daemon knew of a client (daemon/state).
struct RestoredClient {
  NewClient fresh;  // with its channel
  SetByOthers set;
  std::uint64_t default_stream_deadline_us = 0;
  std::vector<NewDevice> devices;
  std::vector<Queue> queues;
  std::uint64_t connected_ns = 0;
  std::uint64_t late_total = 0;
  policy::BenefitMemory::Mode others_mode = policy::BenefitMemory::Mode::kHeld;  // of its group, as learnt
};

// Is notified of every change that a restart must not lose.
enum class Urgency { kSoon, kNow };
class CoreObserver {
 public:
  virtual ~CoreObserver() = default;
  virtual void ClientAdded(Client& client) = 0;
  // Called while the client still exists.
  virtual void ClientGone(const Client& client) = 0;
  // Something saved has changed. kNow: by an administrator, who is answered once it is saved.
  virtual void ClientChanged(const Client& client, Urgency urgency) = 0;
  // Something saved has changed that belongs to no client: the policy, or whether the daemon is enabled.
  virtual void Changed(Urgency urgency) = 0;
  // The claim with this id was put, or is gone.
  virtual void ClaimChanged(std::uint64_t claim, Urgency urgency) = 0;
};

// The source of the configuration, for reloads.
struct ConfigSource {
  std::string path;
  bool may_be_absent = false;
  std::string policy_override;  // --policy; empty: as the file says
  bool software_gpu = false;    // --software-gpu, whatever the file says
  Result<Config> Load() const;
};

class Core {
 public:
  Core(boost::asio::io_context& io, ConfigSource source, Config config, HostGpus gpus = HostGpus());

  // ---- sessions
  Client& AddClient(NewClient fresh);
  // Its command line has been read. If it says that this is another process of a program that is known, what was learnt
  // of that one is where the search for this one's mode begins: else a service that is started again, or has one more
  // process, would hold all others until its own search has come to an end.
  void SetCommand(Client& client, std::string command);
  void RemoveClient(std::uint64_t client_id, const std::string& why);
  // Refuses a device that this machine lacks or that the client does not use, unless the configuration lets clients
  // name any.
  Result<void> AttachDevice(Client& client, NewDevice device);
  Result<void> CreateQueue(Client& client, const Queue& queue);
  Result<void> DestroyQueue(Client& client, std::uint64_t queue);
  // Sets all of them, or none if one is out of range or for an unknown queue. A hint is kept even if a setting or rule
  // overrides it or a ceiling limits it.
  Result<void> SetHints(Client& client, const Hints& hints);

  // ---- administrators, and users for their own clients; each returns when the gates are written
  // What would be in effect for each client with these settings.
  std::vector<Effective> EffectiveIf(const std::vector<Client*>& clients,
                                     const std::function<ClientSettings(const Client&)>& settings) const;
  // `by` says whether an administrator or the owner sets it; rules and administrators' settings override owners'.
  // No value resets the setting: the next source applies again.
  void SetPriority(const std::vector<Client*>& clients, std::optional<int> priority, const Actor& by);
  // 1..10000.
  void SetWeight(const std::vector<Client*>& clients, std::optional<std::uint32_t> weight, const Actor& by);
  void SetLatency(const std::vector<Client*>& clients, std::optional<Latency> latency, const Actor& by);
  // Bytes of device memory on each device; 0: no limit, whatever claims and rules say. `by` is an administrator.
  void SetMemoryLimit(const std::vector<Client*>& clients, std::optional<std::uint64_t> limit, const Actor& by);
  // An administrator's release ends both holds, an owner's only its own.
  void SetHold(const std::vector<Client*>& clients, bool hold, const Actor& by);
  // `files`: the configuration as its files are now. Policy values in force that the files also give count as the
  // files' from then on, as after a reload; nothing else in the files takes effect before one.
  void SetPolicy(const policy::Settings& settings, const Actor& by, const Config* files = nullptr);
  // Keeps the old configuration if the new one is wrong. Returns notes on what changed.
  Result<std::vector<std::string>> Reload(const Actor& by);
  // Opens all gates and admits no new clients until Enable, even across restarts.
  void Disable(const Actor& by);
  void Enable(const Actor& by);
  // Opens all gates for good: nothing is decided afterwards.
  void Stop();

  // ---- claims (core_claims.cc)
  struct PutClaimResult {
    ClaimPtr claim;
    bool is_new = false;
  };
  // As in ClaimTable::Add; it applies to all its clients before this returns.
  Result<PutClaimResult> PutClaim(Claim claim, const Actor& by, bool dry_run = false);
  // Null: there is none with this name.
  ClaimPtr DeleteClaim(const std::string& name, const Actor& by);
  // Ends claims whose time has run out or whose cgroup is gone. A timer does this every second.
  void EndStaleClaims(std::uint64_t now_ns);
  // Reads how much device memory clients have, and writes how much each may have (core_memory.cc). As often, in pieces.
  void CheckMemory();
  const ClaimTable& Claims() const { return claims_; }
  // What the clients of each claim have used up to now, including claims that have ended.
  const ClaimAccounts& SettledAccounts();
  const ClaimAccounts& Accounts() const { return scheduler_.Records().Metrics().Claims(); }
  std::size_t ClientsOf(const Claim& claim) const;
  // Where a connected process runs. `claim_socket`: as in Origin.
  Origin OriginOf(const PeerIdentity& peer, std::uint64_t claim_socket) const;
  // The claim that applies there now; null: none.
  ClaimPtr ClaimOf(const Origin& origin) const;
  // The sockets of claims; closing one that is not open does nothing.
  struct ClaimSocketCalls {
    std::function<Result<void>(const Claim&)> open;  // opening one that is open does nothing
    std::function<void(const Claim&)> close;
  };
  void SetClaimSockets(ClaimSocketCalls calls) { claim_sockets_ = std::move(calls); }
  // Replaces this machine's cgroups. Call it before anything else.
  void SetCgroups(CgroupInodeOf inode_of) { cgroups_ = std::move(inode_of); }

  // ---- restart (core_restart.cc)
  // `observer` must outlive its use here.
  void Observe(CoreObserver* observer) { observer_ = observer; }
  // The policy of the files, without what was set since.
  const policy::Settings& FilePolicy() const { return file_policy_; }
  void RestorePolicy(const policy::Settings& settings);
  // Call it before its clients are restored. `account`: what they had used. False: it has ended, or is not valid.
  bool RestoreClaim(Claim claim, ClaimAccount account);
  void RestoreEndedClaim(ClaimAccount account);
  // Nothing is decided before RestoreDone.
  Client& RestoreClient(RestoredClient restored);
  void RestoreDone();
  // A restored client has a session again, with the hints of `fresh` and the same memory.
  void ResumeClient(Client& client, NewClient fresh);
  // The client has reported all its queues again, which it does before anything else; drops those destroyed meanwhile.
  void ResumeDone(Client& client);
  void RestoreSettings(Client& client, const SetByOthers& set, policy::BenefitMemory::Mode others_mode);

  // Maps a uid to the user whose limits apply, for future clients; the default is the uid itself. What `owner_of`
  // refers to must outlive this.
  void SetOwnerOf(std::function<std::uint32_t(std::uint32_t uid)> owner_of) { owner_of_ = std::move(owner_of); }

  // Counts the refusal, and logs it within limits per user, so that no user's flood hides another's.
  void Refused(const Principal& who, const std::string& why);
  // The same without a log line.
  void CountRefused() { ++refused_total_; }
  bool IsEnabled() const { return enabled_; }

  Registry& Clients() { return registry_; }
  const Registry& Clients() const { return registry_; }
  EventLog& Events() { return events_; }
  const Scheduler& GetScheduler() const { return scheduler_; }
  Meter& Metrics() { return scheduler_.Records().Metrics(); }
  const Config& Settings() const { return config_; }
  const RoleGroups& Groups() const { return groups_; }
  const ConfigSource& Source() const { return source_; }
  // Whether the daemon's thread polls instead of sleeping.
  bool IsSpinning() const { return config_.spin && loop_.HasTracked(); }
  std::uint64_t RefusedTotal() const { return refused_total_; }
  std::uint64_t StartedNs() const { return started_ns_; }
  // How many daemons before this one have handed their state on.
  std::uint64_t Restarts() const { return restarts_; }
  void SetRestarts(std::uint64_t restarts) { restarts_ = restarts; }
  // Lines and events left out to keep users from flooding the log.
  std::uint64_t ClientLinesLeftOut() const { return journal_.ClientLinesLeftOut(); }
  std::uint64_t RefusalLinesLeftOut() const { return journal_.RefusalLinesLeftOut(); }
  // `action` runs after each reload: quotas and clients' configuration may have changed.
  void OnReload(std::function<void()> action) { on_reload_ = std::move(action); }
  // Called when what a client's session tells it of the configuration has changed, with the client's id; 0: of all.
  void OnConfigured(std::function<void(std::uint64_t client)> action) { on_configured_ = std::move(action); }

 private:
  // What was learnt of another process of the client's program, and that one's pid; kHeld: nothing is known.
  std::pair<policy::BenefitMemory::Mode, std::uint64_t> AnswerOfSame(const Client& client) const;
  // Puts config_.policy into force.
  void ApplyPolicy();
  void TakePolicyPlaces(const Config& files);
  static Journal::LinesOf LinesFor(const Actor& by) {
    return by.is_admin ? Journal::LinesOf::kOperation : Journal::LinesOf::kItself;
  }
  // A change of a setting by an administrator or the owner; no value: a reset.
  template <typename Value>
  struct Override {
    std::optional<Value> value;
    std::optional<Value> Client::*of_admin;
    std::optional<Value> Client::*of_owner;
    std::string operation;  // for the log
    std::string why;        // for events
  };
  template <typename Value>
  void SetOverride(const std::vector<Client*>& clients, const Override<Value>& change, const Actor& by);
  std::uint32_t OwnerOf(std::uint32_t uid) const { return owner_of_ ? owner_of_(uid) : uid; }
  Principal OwnerOf(const Principal& who) const { return {OwnerOf(who.uid), who.place}; }
  // Recomputes what is in effect for the client and its group, logs it and notifies the scheduler. Returns how many
  // clients changed.
  std::size_t UpdateEffective(Client& client, const std::string& why,
                              Journal::LinesOf lines = Journal::LinesOf::kOperation);
  std::size_t UpdateMembers(const Group& group, const std::string& why,
                            Journal::LinesOf lines = Journal::LinesOf::kOperation);
  bool UpdateMember(Client& client, const Effective& after, const std::string& why, Journal::LinesOf lines);
  // Replaces the client's description of `device` with the machine's own.
  Result<void> Confirm(const Client& client, NewDevice& device) const;
  // Moves the client to the group that its claim or the configuration gives it, and logs a move. False: it was there
  // already.
  bool UpdateGroup(Client& client);

  // Adds the owner and the cgroup's lineage.
  void Identify(ClientIdentity& identity) const;
  CgroupLineage LineageOfProcess(const std::string& cgroup, bool is_exact) const;
  ClaimPtr ClaimOf(const Client& client) const;
  ClaimPtr ClaimOf(std::uint64_t claim_socket, const std::string& cgroup, const CgroupLineage& lineage) const;
  void EndClaims(const std::vector<ClaimPtr>& ended, const std::string& why, Urgency urgency);
  // Gives every client its present claim.
  void ApplyClaims(const std::string& why);
  // Sets the timer to when the next claim may end, and to a second at most where there is a claim or a limit of memory.
  void ArmCheckTimer();

  // ---- limits of device memory (core_memory.cc)
  // Before decisions: the limits first.
  void DecideNow();
  void DecideSoon();
  // Puts the limits into force that have changed.
  void ApplyMemoryLimits();
  void ApplyMemoryEnforcing();
  // Settles the accounts of some clients' claims, and saves those that have changed every few seconds.
  void AccountForClaims(std::uint64_t now_ns);
  void EndAccount(const Claim& claim, const std::string& why);

  void NoteChange(Urgency urgency) {
    if (observer_ != nullptr) observer_->Changed(urgency);
  }
  void NoteChange(const Client& client, Urgency urgency) {
    if (observer_ != nullptr) observer_->ClientChanged(client, urgency);
  }
  void NoteClaim(std::uint64_t claim, Urgency urgency) {
    if (observer_ != nullptr) observer_->ClaimChanged(claim, urgency);
  }

  ConfigSource source_;
  Config config_;
  policy::Settings file_policy_;
  RoleGroups groups_;
  HostGpus gpus_;
  Registry registry_;
  CgroupInodeOf cgroups_ = SystemCgroups();
  ClaimTable claims_;
  ClaimSocketCalls claim_sockets_;
  boost::asio::steady_timer check_timer_;
  std::uint64_t check_due_ns_ = 0;      // when the timer ends; 0: it does not run
  std::uint64_t accounted_client_ = 0;  // the last one that AccountForClaims settled
  std::uint64_t accounts_saved_ns_ = 0;
  bool is_stopped_ = false;
  EventLog events_;
  Journal journal_;
  Scheduler scheduler_;
  SchedulerLoop loop_;
  MemoryWatch memory_;
  bool are_memory_limits_changed_ = false;
  bool is_checking_memory_ = false;
  std::function<void()> on_reload_;
  std::function<void(std::uint64_t)> on_configured_ = [](std::uint64_t) {};
  std::function<std::uint32_t(std::uint32_t)> owner_of_;
  CoreObserver* observer_ = nullptr;
  bool enabled_ = true;
  std::uint64_t refused_total_ = 0;
  std::uint64_t started_ns_;
  std::uint64_t restarts_ = 0;
};

}  // namespace xschedd
