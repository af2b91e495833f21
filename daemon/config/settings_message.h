// Puts the policy's settings into messages of the protocol and the saved state, and reads them back. A setting with a
// field of its own uses that, because releases up to 0.1.0 know only fields; every later setting is in the map
// `settings`, by key. Thread rule: pure functions.
#pragma once

#include <google/protobuf/map.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "common/result.h"
#include "daemon/policy/settings.h"

namespace xschedd {

using SettingsMap = google::protobuf::Map<std::string, policy::Value>;

void PutSetting(const policy::SettingRow& row, policy::Value value, google::protobuf::Message& to, SettingsMap& more);
// None: the message does not set it. Fails if the message sets it twice. Does not check limits; policy::Set does.
Result<std::optional<policy::Value>> FindSetting(const policy::SettingRow& row, const google::protobuf::Message& from,
                                                 const SettingsMap& more);

template <typename Message>
void PutSetting(const policy::SettingRow& row, policy::Value value, Message& to) {
  PutSetting(row, value, to, *to.mutable_settings());
}

template <typename Message>
void PutSettings(const policy::Settings& settings, Message& to) {
  for (const policy::SettingRow& row : policy::kSettings)
    PutSetting(row, policy::Get(row, settings), to);
}

template <typename Message>
Result<std::optional<policy::Value>> FindSetting(const policy::SettingRow& row, const Message& from) {
  return FindSetting(row, from, from.settings());
}

}  // namespace xschedd
