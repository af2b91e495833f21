// PersistentState at the start: takes over the state of the previous daemon.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/state/persistent_state.h"
#include "daemon/state/saved_state.h"

namespace xschedd {
namespace {

// After this many starts in a row that ended before serving, the saved state is not used again.
constexpr std::uint32_t kMaxFailedStarts = 5;

}  // namespace

void PersistentState::Restore(std::vector<PassedDescriptor> passed) {
  DescriptorStore::Stored stored = store_.Take(std::move(passed));
  if (!store_.IsPresent()) return;
  core_.Observe(this);
  frozen_ = true;  // a state that is only partly taken over must not be saved
  std::optional<state::SavedState> saved;
  std::optional<StateFile> file = Load(std::move(stored.states), saved);
  if (saved) {
    RestoreAll(*saved, std::move(stored.channels));
  } else {
    if (!stored.channels.empty()) {
      SPDLOG_WARN("the memory of {} clients is dropped, because no saved state says which clients it belongs to",
                  stored.channels.size());
    }
    for (const auto& [number, descriptors] : stored.channels)
      store_.RemoveChannel(number);
  }
  frozen_ = false;
  if (!file) {
    auto made = StateFile::Make();
    if (!made) {
      SPDLOG_ERROR("the state cannot be saved: a restart will lose what administrators set error=\"{}\"",
                   made.error().Line());
      return saver_.CannotSave(made.error().Line());
    }
    file.emplace(std::move(*made));
    store_.StoreState(file->Fd());
  }
  saver_.Begin(std::move(*file));
  saver_.Save(AllParts());
}

// The file, unless it can no longer be used. `saved` stays empty if there is no state.
std::optional<StateFile> PersistentState::Load(std::vector<UniqueFd> files, std::optional<state::SavedState>& saved) {
  if (files.empty()) return std::nullopt;
  const auto give_up = [this](const std::string& why) {
    SPDLOG_WARN("the state from before the restart is not used reason=\"{}\"", why);
    store_.RemoveState();
    return std::nullopt;
  };
  if (files.size() > 1) return give_up("the store has " + std::to_string(files.size()) + " of them");
  auto file = StateFile::Open(std::move(files.front()));
  if (!file) return give_up(file.error().Line());
  const std::uint32_t starts = file->BeginStart();
  if (starts >= kMaxFailedStarts) return give_up(std::to_string(starts) + " daemons in a row ended before serving");
  const auto content = file->Read();
  if (!content) return give_up("neither of its two copies is complete");
  state::SavedState parsed;
  if (!parsed.ParseFromString(*content)) return give_up("its content is not a state");
  saved = std::move(parsed);
  return std::move(*file);
}

void PersistentState::RestoreAll(const state::SavedState& saved,
                                 std::map<std::uint64_t, std::vector<UniqueFd>> channels) {
  RestorePolicy(saved);
  core_.SetRestarts(saved.restarts() + 1);
  // The state may be older than the store, so an id that only the store knows is not given to another client either.
  const std::uint64_t next_stored = channels.empty() ? 0 : channels.rbegin()->first + 1;
  core_.Clients().Restore(std::max(saved.next_client(), next_stored), PartitionsFrom(saved));
  RestoreClaims(saved);
  if (saved.draining()) core_.Disable({});
  RestoreClients(saved, std::move(channels));
}

void PersistentState::RestorePolicy(const state::SavedState& saved) {
  const auto live = FromSaved(saved.policy());
  const auto file = FromSaved(saved.file_policy());
  if (!live || !file) {
    SPDLOG_WARN(
        "this release does not have the policy from before the restart; the configuration's is used name=\"{}\"",
        saved.policy().name());
    return;
  }
  if (*live == *file) return;
  const policy::Settings now = AfterRestart(*live, *file, core_.FilePolicy());
  if (now != *live) {
    SPDLOG_INFO("policy settings from before the restart are replaced where the configuration has changed since");
  }
  if (now != core_.FilePolicy()) core_.RestorePolicy(now);
}

// Called before RestoreClients, since claims apply to clients.
void PersistentState::RestoreClaims(const state::SavedState& saved) {
  std::size_t restored = 0;
  for (const state::EndedClaim& ended : saved.ended_claims()) {
    if (auto account = FromSaved(ended)) core_.RestoreEndedClaim(std::move(*account));
  }
  for (const state::Claim& claim : saved.claims())
    restored += core_.RestoreClaim(FromSaved(claim), FromSaved(claim.usage())) ? 1 : 0;
  if (saved.claims_size() == 0) return;
  SPDLOG_INFO("claims taken over claims={} ended_meanwhile={}", restored,
              static_cast<std::size_t>(saved.claims_size()) - restored);
}

void PersistentState::RestoreClients(const state::SavedState& saved,
                                     std::map<std::uint64_t, std::vector<UniqueFd>> channels) {
  std::size_t taken_over = 0;
  std::size_t without_memory = 0;
  std::size_t ended = 0;
  std::string last_reason;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> sessions;  // by process
  for (const state::Client& client : saved.clients())
    ++sessions[{client.pid(), client.start_ticks()}];
  for (const state::Client& client : saved.clients()) {
    const UniqueFd process =
        OpenProcess(static_cast<pid_t>(client.pid()), {client.start_ticks(), client.pidfd_inode()});
    if (!process.IsValid()) {
      ++ended;
      continue;
    }
    const bool is_only_session = sessions[{client.pid(), client.start_ticks()}] == 1;
    const std::string why = !client.has_channel() ? "its memory was not stored"
                            : !is_only_session    ? "its process has several sessions"
                                                  : RestoreMemory(client, channels);
    if (why.empty()) {
      ++taken_over;
      continue;
    }
    ++without_memory;
    last_reason = why;
    returning_.AddAbsent(client);
  }
  for (const auto& [number, descriptors] : channels)
    store_.RemoveChannel(number);
  core_.RestoreDone();
  returning_.BeginGrace();
  SPDLOG_INFO("taken over from version={} clients={} without_memory={} ended_meanwhile={}{}", saved.daemon_version(),
              taken_over, without_memory, ended, last_reason.empty() ? "" : " reason=\"" + last_reason + "\"");
}

std::string PersistentState::RestoreMemory(const state::Client& saved,
                                           std::map<std::uint64_t, std::vector<UniqueFd>>& channels) {
  if (abi::FindSpoken(saved.abi_version(), saved.layout_hash()) == nullptr)
    return "its memory has a layout that this release does not know";
  auto found = channels.extract(saved.channel());
  if (found.empty()) return "its memory is no longer in the store";
  std::string why = RestoreClient(saved, std::move(found.mapped()));
  if (!why.empty()) store_.RemoveChannel(saved.channel());
  return why;
}

std::string PersistentState::RestoreClient(const state::Client& saved, std::vector<UniqueFd> descriptors) {
  auto channel = Channel::Rebuild(*abi::FindSpoken(saved.abi_version(), saved.layout_hash()), std::move(descriptors));
  if (!channel) return channel.error().Line();
  RestoredClient restored = FromSaved(saved);
  const auto pid = static_cast<pid_t>(saved.pid());
  UniqueFd pidfd = OpenProcess(pid, restored.fresh.identity.key);
  if (!pidfd.IsValid()) return "its process has just ended";
  if (core_.Clients().Find(saved.id()) != nullptr) return "another client has its id";
  ProcessInfo process = ReadProcess(pid, pidfd.Get());
  restored.fresh.identity.exe = std::move(process.exe);
  restored.fresh.identity.cgroup = std::move(process.cgroup);
  restored.fresh.identity.is_cgroup_exact = process.is_cgroup_exact;
  restored.fresh.identity.place = std::move(process.place);
  // 0.1.0 did not save may_raise. Only the host's root is known without the process's groups.
  const bool is_on_host = restored.fresh.identity.place.empty() && restored.fresh.identity.claim_socket == 0;
  if (is_on_host && restored.fresh.identity.uid == ::geteuid()) restored.fresh.identity.may_raise = true;
  restored.fresh.channel = channel->get();
  returning_.AddWaiting(saved.id(), std::move(*channel), std::move(pidfd));
  channels_.emplace(saved.id(), saved.channel());
  core_.RestoreClient(std::move(restored));
  return {};
}

}  // namespace xschedd
