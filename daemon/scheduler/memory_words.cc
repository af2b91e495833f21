#include "daemon/scheduler/memory_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/bytes_text.h"
#include "common/memory_limit.h"
#include "daemon/registry/effective_words.h"

namespace xschedd {
namespace {

std::string SourceOf(const Attachment& attachment, const MemoryLimitHere& limit) {
  const Client& client = *attachment.client;
  if (limit.is_own) return "its process's own limit (XSCHEDD_MEMORY)";
  if (client.effective.memory_source != PrioritySource::kClaim || client.claim == nullptr) {
    return fmt::format("by {}", client.effective.memory_source == PrioritySource::kAdmin
                                    ? "an administrator"
                                    : "a rule of the configuration");
  }
  const std::uint64_t others = client.effective.memory_limit - std::min(limit.bytes, client.effective.memory_limit);
  std::string text = fmt::format("by {}, {} for all its clients together", ClaimText(*client.claim),
                                 BytesText(client.effective.memory_limit));
  if (others != 0) text += fmt::format(", of which the others have {}", BytesText(others));
  return text;
}

}  // namespace

MemoryLimitHere LimitHere(const Attachment& attachment) {
  const Client& client = *attachment.client;
  const bool is_applied = MemoryNotApplied(client).empty();
  const std::uint64_t set = is_applied ? attachment.memory.limit : 0;
  const std::uint64_t bytes = SmallerLimit(set, client.own_memory_limit);
  return {bytes, bytes != 0 && bytes != set};
}

std::string MemoryText(const Attachment& attachment) {
  if (attachment.client->channel == nullptr) return {};
  const auto account = attachment.client->channel->Ledger().Memory(attachment.slot);
  const MemoryLimitHere limit = LimitHere(attachment);
  if (!account) return {};
  std::string text = fmt::format("it has {} here", BytesText(account->bytes));
  if (limit.bytes == 0) return text;
  return fmt::format("{}, and may have {}: {}", text, BytesText(limit.bytes), SourceOf(attachment, limit));
}

std::string MemoryRemedy(const Attachment& attachment) {
  const Client& client = *attachment.client;
  const MemoryLimitHere limit = LimitHere(attachment);
  if (limit.is_own) return "start it with a larger `xschedctl run --memory`, or have it allocate less";
  if (client.effective.memory_source == PrioritySource::kClaim)
    return "put the claim again with a larger --memory, or have its programs allocate less";
  return fmt::format("`xschedctl set {} --memory SIZE` gives it more, or have it allocate less", client.identity.pid);
}

std::string MemoryNotApplied(const Client& client) {
  if (client.channel == nullptr) return "the client has no shared memory";
  if (client.channel->Layout().version < abi::kMemorySince) return "the client's shim is of an older release";
  return {};
}

}  // namespace xschedd
