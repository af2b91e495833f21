// One call of Admin by its name, on a given socket, as the user who runs this, for tests of rights.
//   rights_call --methods                        the names, from the descriptor: a new call cannot be forgotten
//   rights_call SOCKET METHOD [REQUEST [COUNT]]  REQUEST in protobuf's text format; at most COUNT answers, 1 otherwise
// Prints each answer as a line "ANSWER text", and last "STATUS number text"; "CONNECT errno" if it cannot connect.
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "admin.pb.h"
#include "tests/integration/daemon/fake_shim.h"

using google::protobuf::DynamicMessageFactory;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::TextFormat;

namespace {

const ServiceDescriptor* Admin() {
  return xschedd::v1::GetVersionRequest::descriptor()->file()->FindServiceByName("Admin");
}

grpc::ByteBuffer ToBuffer(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

void Print(const grpc::ByteBuffer& buffer, Message& answer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok() || !answer.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    std::printf("ANSWER not understood\n");
    return;
  }
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(answer, &text);
  std::printf("ANSWER %s\n", text.c_str());
}

int Call(const char* socket_path, const MethodDescriptor& method, const std::string& text, int count) {
  DynamicMessageFactory factory;
  const std::unique_ptr<Message> request(factory.GetPrototype(method.input_type())->New());
  const std::unique_ptr<Message> answer(factory.GetPrototype(method.output_type())->New());
  if (!TextFormat::ParseFromString(text, request.get())) return 2;
  xschedd::UniqueFd socket = xschedd::test::ConnectTo(socket_path);
  if (!socket.IsValid()) {
    std::printf("CONNECT %d\n", errno);
    return 0;
  }
  xschedd::test::MakeNonBlocking(socket.Get());
  grpc::GenericStub stub(grpc::CreateInsecureChannelFromFd("xschedd", socket.Release()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/xschedd.v1.Admin/" + method.name(), &queue);
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  if (await()) {
    call->WriteLast(ToBuffer(*request), grpc::WriteOptions(), nullptr);
    await();
    grpc::ByteBuffer buffer;
    for (int i = 0; i < count; ++i) {
      call->Read(&buffer, nullptr);
      if (!await()) break;
      Print(buffer, *answer);
      std::fflush(stdout);
    }
    if (method.server_streaming()) context.TryCancel();
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  std::printf("STATUS %d %s\n", static_cast<int>(status.error_code()), status.error_message().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--methods") {
    for (int i = 0; i < Admin()->method_count(); ++i)
      std::printf("%s\n", Admin()->method(i)->name().c_str());
    return 0;
  }
  if (argc < 3) return 2;
  const MethodDescriptor* method = Admin()->FindMethodByName(argv[2]);
  if (method == nullptr) return 2;
  return Call(argv[1], *method, argc > 3 ? argv[3] : "", argc > 4 ? std::atoi(argv[4]) : 1);
}
