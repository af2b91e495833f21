#include "daemon/scheduler/memory_watch.h"

#include <algorithm>
#include <map>

#include "common/memory_limit.h"

namespace xschedd {
namespace {

// How many attachments one piece reads; a device is not divided.
constexpr std::size_t kPerPiece = 128;

}  // namespace

bool MemoryWatch::IsWatched(const Client& client) {
  const bool is_limited = client.effective.memory_limit != 0 || client.own_memory_limit != 0;
  return client.channel != nullptr && (is_limited || client.claim != nullptr);
}

void MemoryWatch::WriteUnattached(const Client& client) const {
  if (client.channel == nullptr) return;
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    if (!client.attachments.contains(slot)) client.channel->Board().SetMemoryLimit(slot, LimitOf(client));
  }
}

void MemoryWatch::Begin(Attachment& attachment) {
  Channel* const channel = attachment.client->channel;
  if (channel == nullptr) return;
  attachment.memory.refused_at_first.reset();
  attachment.memory.limit = channel->Board().MemoryLimit(attachment.slot);
}

void MemoryWatch::Sample(Attachment& attachment, std::uint64_t now_ns) {
  Client& client = *attachment.client;
  MemoryAccount& memory = attachment.memory;
  const auto now = client.channel->Ledger().Memory(attachment.slot);
  if (!now) return;
  memory.bytes = now->bytes;
  if (!memory.refused_at_first) memory.refused_at_first = memory.refused = now->refused;
  // A counter that goes back, which no honest one does, starts anew.
  if (now->refused > memory.refused) memory.untold += now->refused - memory.refused;
  memory.refused = now->refused;
  if (memory.untold == 0 || !client.memory_lines.Take(now_ns)) return;
  refused_(attachment, memory.untold);
  memory.untold = 0;
}

void MemoryWatch::LookAt(Device& device, std::uint64_t now_ns) {
  std::map<std::uint64_t, std::uint64_t> by_claim;  // bytes, by the claim's id
  for (Attachment* attachment : device.attachments) {
    const Client& client = *attachment->client;
    if (!IsWatched(client)) continue;
    Sample(*attachment, now_ns);
    if (client.claim != nullptr) by_claim[client.claim->id] += attachment->memory.bytes;
  }
  for (Attachment* attachment : device.attachments) {
    const Client& client = *attachment->client;
    if (client.channel == nullptr) continue;
    const bool is_shared = client.effective.memory_source == PrioritySource::kClaim && client.claim != nullptr;
    const std::uint64_t others = is_shared ? by_claim[client.claim->id] - attachment->memory.bytes : 0;
    const std::uint64_t limit = MemoryAllowance(LimitOf(client), others);
    if (limit == attachment->memory.limit) continue;
    attachment->memory.limit = limit;
    client.channel->Board().SetMemoryLimit(attachment->slot, limit);
  }
  for (const auto& [claim, bytes] : by_claim)
    accounts_.NoteMemory(claim, bytes);
}

void MemoryWatch::LookAtAll(std::uint64_t now_ns) {
  for (const auto& [name, device] : registry_.Devices())
    LookAt(*device, now_ns);
}

bool MemoryWatch::LookAtNext(std::uint64_t now_ns) {
  // By name, because devices may have come or gone since the last piece.
  const auto& devices = registry_.Devices();
  std::size_t read = 0;
  for (auto next = devices.upper_bound(looked_at_); next != devices.end(); ++next) {
    if (read != 0 && read + next->second->attachments.size() > kPerPiece) return true;
    LookAt(*next->second, now_ns);
    read += next->second->attachments.size();
    looked_at_ = next->first;
  }
  looked_at_.clear();
  return false;
}

}  // namespace xschedd
