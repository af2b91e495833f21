#include "daemon/config/settings_message.h"

#include <google/protobuf/descriptor.h>

#include <vector>

namespace xschedd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A message's own fields for a setting, besides the map.
struct Fields {
  const FieldDescriptor* value;
  const FieldDescriptor* by_vendor;  // a flag: left to the vendor
};

Fields FieldsOf(const policy::SettingRow& row, const Message& message) {
  const std::string key(row.key);
  return {message.GetDescriptor()->FindFieldByName(key), message.GetDescriptor()->FindFieldByName(key + "_by_vendor")};
}

void PutField(const policy::SettingRow& row, const FieldDescriptor& field, policy::Value value, Message& to) {
  const google::protobuf::Reflection& reflection = *to.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&to, &field, value != 0);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&to, &field, policy::Text(row, value));
    default:
      return reflection.SetUInt32(&to, &field, static_cast<std::uint32_t>(value));
  }
}

policy::Value ValueOf(const policy::SettingRow& row, const FieldDescriptor& field, const Message& from) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(from, &field) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_STRING:
      return policy::ValueOfWord(row, reflection.GetString(from, &field));
    default:
      return reflection.GetUInt32(from, &field);
  }
}

}  // namespace

void PutSetting(const policy::SettingRow& row, policy::Value value, Message& to, SettingsMap& more) {
  const Fields fields = FieldsOf(row, to);
  if (fields.value == nullptr) {
    more[std::string(row.key)] = value;
  } else if (value != policy::kByVendor) {
    PutField(row, *fields.value, value, to);
  } else if (fields.by_vendor != nullptr) {
    PutField(row, *fields.by_vendor, 1, to);
  }
}

Result<std::optional<policy::Value>> FindSetting(const policy::SettingRow& row, const Message& from,
                                                 const SettingsMap& more) {
  const Fields fields = FieldsOf(row, from);
  std::vector<policy::Value> given;
  if (const auto named = more.find(std::string(row.key)); named != more.end()) given.push_back(named->second);
  if (fields.by_vendor != nullptr && ValueOf(row, *fields.by_vendor, from) != 0) given.push_back(policy::kByVendor);
  if (fields.value != nullptr && from.GetReflection()->HasField(from, fields.value)) {
    given.push_back(ValueOf(row, *fields.value, from));
  }
  if (given.size() > 1) return Fail(std::string(row.key) + " is given twice", "give it once");
  if (!given.empty()) return given.front();
  // A field without presence always has a value.
  if (fields.value != nullptr && !fields.value->has_presence()) return ValueOf(row, *fields.value, from);
  return std::nullopt;
}

}  // namespace xschedd
