#include "daemon/scheduler/slice_words.h"

#include <fmt/format.h>

namespace xschedd {
namespace {

constexpr std::string_view kVendorWithSlices = "nvidia";

std::string None(std::string_view why) {
  return fmt::format("no time slices here: {}", why);
}

}  // namespace

std::string SliceInForce(const Attachment& attachment) {
  const auto& channel = attachment.client->channel;
  if (channel == nullptr) return {};
  const SliceSnapshot slice = channel->Ledger().Slice(attachment.slot);
  return slice.state == abi::SliceState::kInForce ? fmt::format("time slice {} us", slice.us) : std::string();
}

std::string SliceText(const Attachment& attachment) {
  const std::uint32_t wanted_us = attachment.gate.slice_us;
  const auto& channel = attachment.client->channel;
  if (channel == nullptr) return {};
  // A slice being taken back is still in force.
  if (std::string in_force = SliceInForce(attachment); !in_force.empty()) return in_force;
  if (wanted_us == 0) return {};
  if (channel->Layout().version < abi::kSlicesSince) return None("the client's shim is of an older release");
  switch (channel->Ledger().Slice(attachment.slot).state) {
    case abi::SliceState::kNotHere:
      if (attachment.is_under_mps) return None("the process runs under MPS");
      return attachment.device->vendor == kVendorWithSlices ? None("no channel group of the process was found")
                                                            : None("this vendor has none that a process may set");
    case abi::SliceState::kRefused:
      return None("the driver refuses them");
    case abi::SliceState::kStalled:
      return "no time slice for now: with one, no work finished for a second";
    case abi::SliceState::kNotAsked:
    case abi::SliceState::kInForce:
      break;
  }
  return fmt::format("time slice {} us, as soon as it has work", wanted_us);
}

}  // namespace xschedd
