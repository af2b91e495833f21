// The control plane stays compatible with what was published: no field, value or method has become another. Compares
// the frozen .proto files with today's, as descriptors.
//   abi_proto: env XSCHEDD_FROZEN_PROTO, XSCHEDD_PROTO: files of protoc --descriptor_set_out
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace google::protobuf;

namespace {

FileDescriptorSet Load(const char* variable) {
  const char* const path = std::getenv(variable);
  REQUIRE(path != nullptr);
  std::ifstream file(path, std::ios::binary);
  FileDescriptorSet set;
  REQUIRE(set.ParseFromIstream(&file));
  return set;
}

// Collects texts about everything in `then` that is not the same in `now`.
class Comparison {
 public:
  std::vector<std::string> Of(const FileDescriptor& then, const FileDescriptor& now) {
    if (then.package() != now.package()) Say("package " + then.package() + " is now " + now.package());
    for (int i = 0; i < then.message_type_count(); ++i)
      Message(*then.message_type(i), now.FindMessageTypeByName(then.message_type(i)->name()));
    for (int i = 0; i < then.enum_type_count(); ++i)
      Enum(*then.enum_type(i), now.FindEnumTypeByName(then.enum_type(i)->name()));
    for (int i = 0; i < then.service_count(); ++i)
      Service(*then.service(i), now.FindServiceByName(then.service(i)->name()));
    return said_;
  }

 private:
  void Say(const std::string& text) { said_.push_back(text); }

  void Message(const Descriptor& then, const Descriptor* now) {
    if (now == nullptr) return Say("message " + then.full_name() + " is gone");
    for (int i = 0; i < then.field_count(); ++i) {
      const FieldDescriptor& field = *then.field(i);
      Field(field, now->FindFieldByNumber(field.number()), *now);
    }
    for (int i = 0; i < then.reserved_range_count(); ++i) {
      for (int number = then.reserved_range(i)->start; number < then.reserved_range(i)->end; ++number) {
        if (!now->IsReservedNumber(number)) Say(then.full_name() + ": " + std::to_string(number) + " was reserved");
      }
    }
    for (int i = 0; i < then.nested_type_count(); ++i)
      Message(*then.nested_type(i), now->FindNestedTypeByName(then.nested_type(i)->name()));
    for (int i = 0; i < then.enum_type_count(); ++i)
      Enum(*then.enum_type(i), now->FindEnumTypeByName(then.enum_type(i)->name()));
  }

  static std::string TypeOf(const FieldDescriptor& field) {
    std::string text = field.is_repeated() ? "repeated " : (field.has_optional_keyword() ? "optional " : "");
    text += field.type_name();
    if (field.message_type() != nullptr) text += " " + field.message_type()->full_name();
    if (field.enum_type() != nullptr) text += " " + field.enum_type()->full_name();
    if (field.real_containing_oneof() != nullptr) text += " of oneof " + field.real_containing_oneof()->name();
    return text;
  }

  void Field(const FieldDescriptor& then, const FieldDescriptor* now, const Descriptor& message) {
    if (now == nullptr) {
      if (!message.IsReservedNumber(then.number())) Say(then.full_name() + " is gone and its number is not reserved");
    } else if (now->name() != then.name()) {
      Say(then.full_name() + ": its number is used for " + now->name());
    } else if (TypeOf(*now) != TypeOf(then)) {
      Say(then.full_name() + " was " + TypeOf(then) + ", is " + TypeOf(*now));
    }
  }

  void Enum(const EnumDescriptor& then, const EnumDescriptor* now) {
    if (now == nullptr) return Say("enum " + then.full_name() + " is gone");
    for (int i = 0; i < then.value_count(); ++i) {
      const EnumValueDescriptor* value = now->FindValueByNumber(then.value(i)->number());
      if (value == nullptr && !now->IsReservedNumber(then.value(i)->number())) {
        Say(then.value(i)->full_name() + " is gone and its number is not reserved");
      } else if (value != nullptr && value->name() != then.value(i)->name()) {
        Say(then.value(i)->full_name() + ": its number is used for " + value->name());
      }
    }
  }

  void Service(const ServiceDescriptor& then, const ServiceDescriptor* now) {
    if (now == nullptr) return Say("service " + then.full_name() + " is gone");
    for (int i = 0; i < then.method_count(); ++i) {
      const MethodDescriptor& method = *then.method(i);
      const MethodDescriptor* same = now->FindMethodByName(method.name());
      if (same == nullptr) {
        Say(method.full_name() + " is gone");
      } else if (same->input_type()->full_name() != method.input_type()->full_name() ||
                 same->output_type()->full_name() != method.output_type()->full_name() ||
                 same->client_streaming() != method.client_streaming() ||
                 same->server_streaming() != method.server_streaming()) {
        Say(method.full_name() + " takes or gives something else");
      }
    }
  }

  std::vector<std::string> said_;
};

// `imports`: what `now` may import, each file before those that import it.
std::vector<std::string> Compare(const FileDescriptorProto& then, const FileDescriptorProto& now,
                                 const FileDescriptorSet& imports = {}) {
  // Two pools: both define the same names.
  DescriptorPool old_pool;
  DescriptorPool new_pool;
  for (const FileDescriptorProto& file : imports.file()) {
    const auto& names = now.dependency();
    if (std::find(names.begin(), names.end(), file.name()) != names.end()) REQUIRE(new_pool.BuildFile(file) != nullptr);
  }
  const FileDescriptor* const frozen = old_pool.BuildFile(then);
  const FileDescriptor* const present = new_pool.BuildFile(now);
  REQUIRE(frozen != nullptr);
  REQUIRE(present != nullptr);
  return Comparison().Of(*frozen, *present);
}

DescriptorProto& MessageOf(FileDescriptorProto& file, const std::string& name) {
  for (DescriptorProto& message : *file.mutable_message_type()) {
    if (message.name() == name) return message;
  }
  throw std::runtime_error("no message " + name);
}

FieldDescriptorProto& Field(FileDescriptorProto& file, const std::string& message, const std::string& name) {
  for (FieldDescriptorProto& field : *MessageOf(file, message).mutable_field()) {
    if (field.name() == name) return field;
  }
  throw std::runtime_error("no field " + name);
}

void Remove(FileDescriptorProto& file, const std::string& message, const std::string& name) {
  auto& fields = *MessageOf(file, message).mutable_field();
  for (int i = 0; i < fields.size(); ++i) {
    if (fields[i].name() == name) return fields.DeleteSubrange(i, 1);
  }
}

}  // namespace

TEST_CASE("today's control plane contains that of version 1") {
  const FileDescriptorSet then = Load("XSCHEDD_FROZEN_PROTO");
  const FileDescriptorSet now = Load("XSCHEDD_PROTO");
  REQUIRE(then.file_size() == 2);
  for (const FileDescriptorProto& frozen : then.file()) {
    const auto present = std::find_if(now.file().begin(), now.file().end(),
                                      [&](const FileDescriptorProto& file) { return file.name() == frozen.name(); });
    REQUIRE(present != now.file().end());
    REQUIRE(frozen.message_type_size() >= 10);
    CHECK(Compare(frozen, *present, now) == std::vector<std::string>{});
  }
}

TEST_CASE("the comparison reports changes that break an old peer, and no others") {
  using Said = std::vector<std::string>;
  const FileDescriptorSet set = Load("XSCHEDD_FROZEN_PROTO");
  const FileDescriptorProto& then = set.file(set.file(0).name() == "session.proto" ? 0 : 1);
  const auto after = [&](const std::function<void(FileDescriptorProto&)>& change) {
    FileDescriptorProto now = then;
    change(now);
    return Compare(then, now);
  };
  CHECK(after([](auto&) {}) == Said{});
  CHECK(after([](auto& now) {
          FieldDescriptorProto& added = *MessageOf(now, "Hello").add_field();
          added = Field(now, "Hello", "group");
          added.set_name("more");
          added.set_number(900);
        }) == Said{});
  CHECK(after([](auto& now) { Remove(now, "Hello", "runtime"); }) ==
        Said{"xschedd.v1.Hello.runtime is gone and its number is not reserved"});
  CHECK(after([](auto& now) {
          Remove(now, "Hello", "runtime");
          auto& range = *MessageOf(now, "Hello").add_reserved_range();
          range.set_start(5);
          range.set_end(6);
        }) == Said{});
  CHECK(after([](auto& now) {
          Field(now, "Hello", "runtime").set_name("other");
          Field(now, "Hello", "other").set_json_name("other");
        }) == Said{"xschedd.v1.Hello.runtime: its number is used for other"});
  CHECK(after([](auto& now) { Field(now, "DeviceAttached", "slot").set_type(FieldDescriptorProto::TYPE_SINT32); }) ==
        Said{"xschedd.v1.DeviceAttached.slot was uint32, is sint32"});
  CHECK(after([](auto& now) {
          Field(now, "Configuration", "passthrough").set_label(FieldDescriptorProto::LABEL_OPTIONAL);
        }) == Said{"xschedd.v1.Configuration.passthrough was repeated string, is string"});
  CHECK(after([](auto& now) { Field(now, "DaemonMessage", "configuration").clear_oneof_index(); }) ==
        Said{"xschedd.v1.DaemonMessage.configuration was message xschedd.v1.Configuration of oneof message, is "
             "message xschedd.v1.Configuration"});
  CHECK(after([](auto& now) { now.mutable_service(0)->mutable_method(0)->set_server_streaming(false); }) ==
        Said{"xschedd.v1.ClientSession.Session takes or gives something else"});
  CHECK(after([](auto& now) { now.clear_service(); }) == Said{"service xschedd.v1.ClientSession is gone"});
}
