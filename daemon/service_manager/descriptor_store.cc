#include "daemon/service_manager/descriptor_store.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/parse_number.h"

namespace xschedd {
namespace {

constexpr std::string_view kChannelPrefix = "channel-";

std::string ChannelName(std::uint64_t number) {
  return std::string(kChannelPrefix) + std::to_string(number);
}

std::optional<std::uint64_t> ChannelNumber(std::string_view name) {
  if (name.substr(0, kChannelPrefix.size()) != kChannelPrefix) return std::nullopt;
  return ParseNumber<std::uint64_t>(name.substr(kChannelPrefix.size()));
}

UniqueFd Duplicate(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

DescriptorStore::DescriptorStore(ServiceManager& manager) : manager_(manager) {
  if (!manager_.IsPresent()) return;
  const char* const reported = std::getenv("FDSTORE");
  max_ = reported != nullptr ? ParseNumber<std::uint32_t>(reported).value_or(0) : kDefaultMax;
}

void DescriptorStore::StoreState(int fd) {
  std::vector<UniqueFd> copy;
  copy.push_back(Duplicate(fd));
  if (copy.back().IsValid()) manager_.Store(kStateName, std::move(copy));
}

void DescriptorStore::RemoveState() {
  manager_.Unstore(kStateName);
}

bool DescriptorStore::StoreChannel(std::uint64_t number, const Channel& channel) {
  if (!HasRoom()) return false;
  std::vector<UniqueFd> copies;
  for (const int fd : {channel.StoredBoardFd(), channel.LedgerFd(), channel.EventFd()}) {
    copies.push_back(Duplicate(fd));
    if (!copies.back().IsValid()) return false;
  }
  channels_.emplace(number, copies.size());
  used_ += copies.size();
  manager_.Store(ChannelName(number), std::move(copies));
  return true;
}

void DescriptorStore::RemoveChannel(std::uint64_t number) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  used_ -= found->second;
  channels_.erase(found);
  manager_.Unstore(ChannelName(number));
}

DescriptorStore::Stored DescriptorStore::Take(std::vector<PassedDescriptor> passed) {
  Stored stored;
  for (PassedDescriptor& one : passed) {
    if (one.name == kStateName) {
      stored.states.push_back(std::move(one.fd));
    } else if (const auto number = ChannelNumber(one.name)) {
      stored.channels[*number].push_back(std::move(one.fd));
      ++channels_[*number];
      ++used_;
    } else {
      SPDLOG_WARN("the service manager passed an unknown descriptor, which is closed name=\"{}\"", one.name);
      manager_.Unstore(one.name);
    }
  }
  return stored;
}

}  // namespace xschedd
