// A host with gRPC and protobuf of its own, the distribution's, in global scope, that uses them all the time: a server
// and a client in the process, beside the checked work of work.h.
//
//   grpc_host LAUNCHES MICROS
// Thread rule: main thread, and gRPC's.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <thread>

#include "session.grpc.pb.h"
#include "work.h"

namespace {

namespace v1 = xschedd::v1;

// Answers each message of a session with a notice.
class Echo : public v1::ClientSession::Service {
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::DaemonMessage, v1::ClientMessage>* stream) override {
    v1::ClientMessage message;
    while (stream->Read(&message)) {
      v1::DaemonMessage answer;
      answer.mutable_notice()->set_text(message.hello().group());
      if (!stream->Write(answer)) break;
    }
    return grpc::Status::OK;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  Echo service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::ClientSession::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  std::atomic<bool> is_over{false};
  std::atomic<unsigned> echoes{0};
  std::atomic<bool> is_right{true};
  std::thread talker([&] {
    grpc::ClientContext context;
    const auto stream = stub->Session(&context);
    for (unsigned i = 0; !is_over; ++i) {
      v1::ClientMessage message;
      message.mutable_hello()->set_group("number " + std::to_string(i));
      v1::DaemonMessage answer;
      if (!stream->Write(message) || !stream->Read(&answer) || answer.notice().text() != message.hello().group()) {
        is_right = false;
        break;
      }
      ++echoes;
    }
    stream->WritesDone();
    is_right = stream->Finish().ok() && is_right;
  });
  hosts::Work work;
  work.Launch(arguments.launches, arguments.micros);
  work.LaunchUntilTold(arguments.micros);
  is_over = true;
  talker.join();
  server->Shutdown();
  const int status = work.Verdict();
  if (!is_right || echoes == 0) {
    std::fprintf(stderr, "the host's own gRPC: %u echoes, not all right\n", echoes.load());
    return 1;
  }
  return status;
}
