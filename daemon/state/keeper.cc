#include "daemon/state/keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/connections/await_end.h"
#include "daemon/state/saved_state.h"

namespace xschedd {
namespace {

using boost::system::error_code;

// Changes of this long are saved together.
constexpr std::chrono::milliseconds kGather{10};
// So many starts in a row that have not come to serving, and the state is not looked at again.
constexpr std::uint32_t kMostStarts = 5;

bool HasSettings(const state::Client& saved) {
  return saved.has_admin_priority() || saved.has_admin_weight() || saved.hold() || saved.has_owner_priority() ||
         saved.has_owner_weight() || saved.owner_hold();
}

bool IsOf(const state::Client& saved, std::uint64_t pid, const ProcessKey& key) {
  return saved.pid() == pid && IsSame({saved.start_ticks(), saved.pidfd_inode()}, key);
}

}  // namespace

StateKeeper::StateKeeper(boost::asio::io_context& io, Core& core, DescriptorStore& store)
    : io_(io), core_(core), store_(store), grace_(io), gather_(io) {}

StateKeeper::Waiting::~Waiting() {
  CloseForGood(dead);
}

StateKeeper::~StateKeeper() = default;

// ---- at the start --------------------------------------------------------------------------------------------------

void StateKeeper::Restore(std::vector<PassedDescriptor> passed) {
  DescriptorStore::Stored stored = store_.Take(std::move(passed));
  if (!store_.IsPresent()) return;
  core_.Observe(this);
  state::SavedState saved;
  frozen_ = true;  // a state that is half taken over must not be saved
  if (Load(std::move(stored.states), saved)) {
    RestorePolicy(saved);
    core_.SetRestarts(saved.restarts() + 1);
    // Nor is a number given again that only the store knows: what was saved last may be from before it.
    const std::uint64_t stored_next = stored.channels.empty() ? 0 : stored.channels.rbegin()->first + 1;
    core_.Clients().Continue(std::max(saved.next_client(), stored_next), PartitionsFrom(saved));
    if (saved.draining()) core_.Disable({});
    RestoreClients(saved, std::move(stored.channels));
  } else {
    if (!stored.channels.empty()) {
      SPDLOG_WARN("the memory of {} clients is given up: there is no saved state that says whose it is",
                  stored.channels.size());
    }
    for (const auto& [number, descriptors] : stored.channels)
      store_.RemoveChannel(number);
  }
  frozen_ = false;
  if (!file_) {
    auto made = StateFile::Make();
    if (!made) {
      why_unsaved_ = made.error().Line();
      SPDLOG_ERROR("a restart will lose what administrators set error=\"{}\"", why_unsaved_);
      return;
    }
    file_.emplace(std::move(*made));
    store_.StoreState(file_->Fd());
  }
  writer_.emplace(*std::exchange(file_, std::nullopt));
  NoteAll();
  Save();
}

// True: there is one. Leaves file_ empty unless it can be written on.
bool StateKeeper::Load(std::vector<UniqueFd> files, state::SavedState& saved) {
  if (files.empty()) return false;
  const auto give_up = [this](const std::string& why) {
    SPDLOG_WARN("the state from before the restart is not used reason=\"{}\"", why);
    file_.reset();
    store_.RemoveState();
    return false;
  };
  if (files.size() > 1) return give_up("there are " + std::to_string(files.size()) + " of them");
  auto opened = StateFile::Open(std::move(files.front()));
  if (!opened) return give_up(opened.error().Line());
  file_.emplace(std::move(*opened));
  const std::uint32_t starts = file_->BeginStart();
  if (starts >= kMostStarts) return give_up(std::to_string(starts) + " daemons in a row ended before they served");
  const auto content = file_->Read();
  if (!content) return give_up("neither of its two copies is whole");
  if (!saved.ParseFromString(*content)) return give_up("its content is no state");
  return true;
}

void StateKeeper::RestorePolicy(const state::SavedState& saved) {
  const auto live = FromSaved(saved.policy());
  const auto file = FromSaved(saved.file_policy());
  if (!live || !file) {
    SPDLOG_WARN("the policy from before the restart is not known here name=\"{}\"", saved.policy().name());
    return;
  }
  if (*live == *file) return;
  const policy::Settings now = AfterRestart(*live, *file, core_.FilePolicy());
  if (now != *live) {
    SPDLOG_INFO(
        "policy settings from before the restart give way to the configuration, where that has been changed since");
  }
  if (now != core_.FilePolicy()) core_.RestorePolicy(now);
}

void StateKeeper::RestoreClients(const state::SavedState& saved,
                                 std::map<std::uint64_t, std::vector<UniqueFd>> channels) {
  std::size_t taken_over = 0;
  std::size_t without_memory = 0;
  std::size_t dead = 0;
  std::string why_not;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> sessions;  // by process
  for (const state::Client& client : saved.clients())
    ++sessions[{client.pid(), client.start_ticks()}];
  for (const state::Client& client : saved.clients()) {
    const UniqueFd process =
        OpenProcess(static_cast<pid_t>(client.pid()), {client.start_ticks(), client.pidfd_inode()});
    if (!process.IsValid()) {
      ++dead;
      continue;
    }
    std::string why;
    if (!client.has_channel()) {
      why = "its memory was not stored";
    } else if (sessions[{client.pid(), client.start_ticks()}] > 1) {
      why = "its process has several sessions";
    } else if (abi::FindSpoken(client.abi_version(), client.layout_hash()) == nullptr) {
      why = "its memory has the layout of another release";
    } else {
      const auto found = channels.find(client.channel());
      if (found == channels.end()) {
        why = "its memory is not in the store any more";
      } else {
        why = RestoreClient(client, std::move(found->second));
        channels.erase(found);
        if (!why.empty()) store_.RemoveChannel(client.channel());
      }
    }
    if (why.empty()) {
      ++taken_over;
      continue;
    }
    ++without_memory;
    why_not = why;
    Expect(client);
  }
  for (const auto& [number, descriptors] : channels)
    store_.RemoveChannel(number);
  core_.RestoreDone();
  BeginGrace();
  SPDLOG_INFO("taken over from version={} clients={} without_memory={} ended_meanwhile={}{}", saved.daemon_version(),
              taken_over, without_memory, dead, why_not.empty() ? "" : " reason=\"" + why_not + "\"");
}

std::string StateKeeper::RestoreClient(const state::Client& saved, std::vector<UniqueFd> descriptors) {
  auto channel = Channel::Rebuild(*abi::FindSpoken(saved.abi_version(), saved.layout_hash()), std::move(descriptors));
  if (!channel) return channel.error().Line();
  RestoredClient restored = FromSaved(saved);
  const auto pid = static_cast<pid_t>(saved.pid());
  UniqueFd pidfd = OpenProcess(pid, restored.fresh.identity.key);
  if (!pidfd.IsValid()) return "its process has just ended";
  if (core_.Clients().Find(saved.id()) != nullptr) return "its number is another's";
  ProcessInfo process = ReadProcess(pid, pidfd.Get());
  restored.fresh.identity.exe = std::move(process.exe);
  restored.fresh.identity.cgroup = std::move(process.cgroup);
  restored.fresh.channel = channel->get();
  auto waiting = std::make_shared<Waiting>(io_);
  waiting->channel = std::move(*channel);
  waiting->dead.assign(pidfd.Release());
  AwaitEnd(waiting->dead, boost::asio::posix::stream_descriptor::wait_read, waiting,
           [this, id = saved.id()](const error_code& error) {
             if (!error) RemoveWaiting(id, "it exited");
           });
  channels_.emplace(saved.id(), saved.channel());
  waiting_.emplace(saved.id(), std::move(waiting));
  core_.RestoreClient(std::move(restored));
  return {};
}

void StateKeeper::Expect(const state::Client& saved) {
  if (!HasSettings(saved)) return;
  expected_.push_back(saved);
  expected_.back().clear_channel();
}

void StateKeeper::Serving() {
  if (writer_) writer_->EndStart();
}

void StateKeeper::Freeze() {
  if (frozen_) return;
  if (writer_) {
    NoteAll();
    Save();
    writer_->Flush();
  }
  frozen_ = true;
  grace_.cancel();
  gather_.cancel();
}

// ---- clients that are awaited --------------------------------------------------------------------------------------

Result<StateKeeper::Given> StateKeeper::MemoryFor(const PeerIdentity& peer, const abi::Layout& layout) {
  for (auto& [id, waiting] : waiting_) {
    const Client* const client = core_.Clients().Find(id);
    if (waiting->channel == nullptr || client->identity.pid != static_cast<std::uint64_t>(peer.pid)) continue;
    if (!IsSame(client->identity.key, ReadProcessKey(peer.pid, peer.pidfd.Get()))) continue;
    // Another version: a library that was loaded anew. Fresh memory then; what was set for it is carried over.
    if (waiting->channel->Layout() != layout) continue;
    if (client->identity.uid != peer.uid) {
      RemoveWaiting(id, "its process has changed its user");
      break;
    }
    return Given{std::move(waiting->channel), id};
  }
  if (store_.HasRoom() && !frozen_) {
    auto lasting = Channel::MakeLasting(layout);
    if (lasting) return Given{std::move(*lasting)};
  } else if (store_.IsPresent() && !told_full_) {
    told_full_ = true;
    SPDLOG_WARN(
        "the descriptor store is full: further clients get fresh memory after a restart clients={} "
        "remedy=\"raise FileDescriptorStoreMax\"",
        channels_.size());
  }
  auto fresh = Channel::Make(layout);
  if (!fresh) return tl::unexpected(fresh.error());
  return Given{std::move(*fresh)};
}

void StateKeeper::GiveBack(std::uint64_t waiting_id, std::unique_ptr<Channel> channel) {
  const auto found = waiting_.find(waiting_id);
  if (found == waiting_.end()) return;
  found->second->channel = std::move(channel);
  SPDLOG_DEBUG("client waits again id={}", waiting_id);
  if (found->second->is_superseded) return RemoveWaiting(waiting_id, "its process has another session");
  if (!in_grace_) return RemoveWaiting(waiting_id, "it did not come back after the restart");
  // If it died while a connection had its memory, the connection was told, and nobody will be again.
  if (HasExited(found->second->dead.native_handle())) RemoveWaiting(waiting_id, "it exited");
}

void StateKeeper::Arrived(std::uint64_t waiting_id) {
  waiting_.erase(waiting_id);
}

void StateKeeper::RemoveWaiting(std::uint64_t id, const std::string& why) {
  const auto found = waiting_.find(id);
  // What a connection has is the connection's to end.
  if (frozen_ || found == waiting_.end() || found->second->channel == nullptr) return;
  core_.RemoveClient(id, why);
  waiting_.erase(id);
}

void StateKeeper::BeginGrace() {
  in_grace_ = true;
  grace_.expires_after(kGrace);
  grace_.async_wait([this](const error_code& error) {
    if (!error) EndGrace();
  });
}

void StateKeeper::EndGrace() {
  // Nobody can come back to a daemon that takes nobody: all have their time again when it is enabled (Changed).
  if (!core_.IsEnabled()) return;
  in_grace_ = false;
  for (const state::Client& client : std::exchange(expected_, {}))
    NoteChange(client.id(), Urgency::kSoon);
  std::vector<std::uint64_t> ids;
  for (const auto& [id, waiting] : waiting_)
    ids.push_back(id);
  for (const std::uint64_t id : ids)
    RemoveWaiting(id, "it did not come back after the restart");
}

// ---- while serving -------------------------------------------------------------------------------------------------

void StateKeeper::ClientAdded(Client& client) {
  if (frozen_) return;
  const ClientIdentity& who = client.identity;
  const auto expected = std::find_if(expected_.begin(), expected_.end(),
                                     [&](const state::Client& saved) { return IsOf(saved, who.pid, who.key); });
  if (expected != expected_.end()) {
    const RestoredClient saved = FromSaved(*expected);
    NoteChange(expected->id(), Urgency::kSoon);
    expected_.erase(expected);
    core_.RestoreSettings(client, saved.set);
  }
  Supersede(client);
  if (client.channel != nullptr && client.channel->IsLasting() && !channels_.contains(client.id)) {
    if (store_.StoreChannel(client.id, *client.channel)) channels_.emplace(client.id, client.id);
    client.channel->ForgetDescriptors();
  }
  NoteChange(client.id, Urgency::kSoon);
}

// The process has connected twice, and its first connection, which has its memory, has not come to a session (yet).
void StateKeeper::Supersede(Client& client) {
  for (auto& [id, waiting] : waiting_) {
    const Client& before = *core_.Clients().Find(id);
    const bool is_same = before.identity.pid == client.identity.pid && IsSame(before.identity.key, client.identity.key);
    if (!is_same || waiting->is_superseded) continue;
    waiting->is_superseded = true;
    core_.RestoreSettings(client, {SettingsOf(before), before.hold, before.owner_hold});
    return RemoveWaiting(id, "its process has another session");
  }
}

void StateKeeper::ClientGone(const Client& client) {
  if (frozen_) return;
  if (const auto found = channels_.find(client.id); found != channels_.end()) {
    store_.RemoveChannel(found->second);
    channels_.erase(found);
  }
  NoteChange(client.id, Urgency::kSoon);
}

void StateKeeper::ClientChanged(const Client& client, Urgency urgency) {
  NoteChange(client.id, urgency);
}

void StateKeeper::Changed(Urgency urgency) {
  const bool grace_is_over = grace_.expiry() <= std::chrono::steady_clock::now();
  if (!frozen_ && in_grace_ && grace_is_over && core_.IsEnabled()) BeginGrace();
  NoteChange(kHead, urgency);
}

void StateKeeper::NoteChange(std::uint64_t part, Urgency urgency) {
  if (frozen_) return;
  is_urgent_ = is_urgent_ || urgency == Urgency::kNow;
  if (!writer_) return;
  changed_.insert(part);
  if (std::exchange(gathering_, true)) return;
  gather_.expires_after(kGather);
  gather_.async_wait([this](const error_code& error) {
    if (!error && gathering_) Save();
  });
}

void StateKeeper::NoteAll() {
  changed_.insert({kHead, kPartitions});
  for (const auto& [id, client] : core_.Clients().Clients())
    changed_.insert(id);
  for (const state::Client& client : expected_)
    changed_.insert(client.id());
}

void StateKeeper::WhenSaved(StateWriter::Saved done) {
  if (!std::exchange(is_urgent_, false)) return done({});
  if (!writer_) return done(Fail(why_unsaved_));
  Save([&io = io_, done = std::move(done)](Result<void> written) {
    boost::asio::post(io, [done, written = std::move(written)] { done(written); });
  });
}

std::string StateKeeper::Serialise(std::uint64_t part) const {
  state::SavedState saved;
  if (part == kHead) {
    FillSaved(core_, saved);
  } else if (part == kPartitions) {
    FillPartitions(core_.Clients().KnownPartitions(), saved);
  } else if (const Client* const client = core_.Clients().Find(part)) {
    const auto channel = channels_.find(part);
    *saved.add_clients() = ToSaved(*client, channel != channels_.end() ? std::optional(channel->second) : std::nullopt);
  } else {
    for (const state::Client& absent : expected_) {
      if (absent.id() == part) *saved.add_clients() = absent;
    }
  }
  return saved.SerializeAsString();
}

void StateKeeper::Save(StateWriter::Saved saved) {
  gathering_ = false;
  gather_.cancel();
  // With each: by which number the next client goes.
  changed_.insert(kHead);
  if (std::exchange(partitions_version_, core_.Clients().PartitionsVersion()) != core_.Clients().PartitionsVersion()) {
    changed_.insert(kPartitions);
  }
  StateWriter::Parts parts;
  for (const std::uint64_t part : changed_)
    parts.emplace(part, Serialise(part));
  changed_.clear();
  writer_->Put(std::move(parts), std::move(saved));
}

}  // namespace xschedd
