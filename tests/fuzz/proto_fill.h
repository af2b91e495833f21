// Fills any message of the full protobuf runtime from fuzz input, field by field: strings get bytes that no peer could
// send as text, too. Thread rule: one user at a time.
#pragma once

#include <google/protobuf/message.h>

#include "tests/fuzz/input.h"

namespace xschedd::fuzz {

inline void FillField(Input& input, google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                      int depth);

inline void FillMessage(Input& input, google::protobuf::Message& message, int depth = 0) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  if (type.field_count() == 0 || depth > 4) return;
  // Fills some fields, some of them twice: a list grows, a value is replaced.
  const std::uint8_t count = input.Byte() % 24;
  for (std::uint8_t i = 0; i < count && !input.IsEmpty(); ++i)
    FillField(input, message, *type.field(input.Byte() % type.field_count()), depth);
}

inline void FillField(Input& input, google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                      int depth) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& to = *message.GetReflection();
  const bool many = field.is_repeated();
#ifdef __SANITIZE_THREAD__
  // MapFieldBase then has two members more (map_field.h) than in the installed library, whose reflection would use it.
  if (field.is_map()) return;
#endif
  switch (field.cpp_type()) {
    case Field::CPPTYPE_STRING: {
      std::string text = input.ShortText();
      many ? to.AddString(&message, &field, std::move(text)) : to.SetString(&message, &field, std::move(text));
      break;
    }
    case Field::CPPTYPE_UINT64: {
      const auto value = input.Take<std::uint64_t>();
      many ? to.AddUInt64(&message, &field, value) : to.SetUInt64(&message, &field, value);
      break;
    }
    case Field::CPPTYPE_UINT32: {
      const auto value = input.Take<std::uint32_t>();
      many ? to.AddUInt32(&message, &field, value) : to.SetUInt32(&message, &field, value);
      break;
    }
    case Field::CPPTYPE_INT32: {
      const auto value = input.Take<std::int32_t>();
      many ? to.AddInt32(&message, &field, value) : to.SetInt32(&message, &field, value);
      break;
    }
    case Field::CPPTYPE_BOOL:
      if (!many) to.SetBool(&message, &field, input.Flag());
      break;
    case Field::CPPTYPE_ENUM:
      // proto3 accepts unknown numbers.
      if (!many) to.SetEnumValue(&message, &field, input.Byte());
      break;
    case Field::CPPTYPE_MESSAGE:
      FillMessage(input, *(many ? to.AddMessage(&message, &field) : to.MutableMessage(&message, &field)), depth + 1);
      break;
    default:
      break;
  }
}

}  // namespace xschedd::fuzz
