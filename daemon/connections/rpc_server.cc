#include "daemon/connections/rpc_server.h"

#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <utility>

#include "common/unique_fd.h"

namespace xschedd {
namespace {

constexpr int kMaxMessageBytes = 256 * 1024;
constexpr int kMaxCallsPerConnection = 32;
constexpr int kReadChunkBytes = 512;
constexpr std::chrono::seconds kProbeLimit{10};
constexpr std::chrono::milliseconds kShutdownLimit{500};

// There may be a thousand sessions, each with few and small messages. Most of the daemon's memory would be the buffers
// that gRPC keeps for each of them, for speed.
void SaveMemory(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadChunkBytes);
  // Zero-copy is off, but its records would be allocated.
  builder.AddChannelArgument(GRPC_ARG_TCP_TX_ZEROCOPY_MAX_SIMULT_SENDS, 0);
  // Only senders over their quota would fill growing flow-control windows.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // Our clients do not compress, and nobody reads gRPC's own statistics.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CENSUS, 0);
}

}  // namespace

void PrepareGrpc() {
  // Otherwise gRPC 1.51 keeps an 8 KiB read buffer per connection, whatever GRPC_ARG_TCP_READ_CHUNK_SIZE says. A value
  // set by the administrator takes precedence.
  ::setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", 0);
  // Debian's Abseil is built without NDEBUG. So each mutex of gRPC is a node in a graph of lock orders: 3 KB a client,
  // and a cycle in it would abort the daemon.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

// Answers every unknown method as gRPC would, and remembers the last caller.
class PeerProbe final : public grpc::CallbackGenericService {
 public:
  explicit PeerProbe(std::function<void(std::string)> on_call) : on_call_(std::move(on_call)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    {
      const std::lock_guard lock(mutex_);
      peer_ = context->peer();
    }
    on_call_(context->peer());
    class Unimplemented final : public grpc::ServerGenericBidiReactor {
     public:
      Unimplemented() { Finish({grpc::StatusCode::UNIMPLEMENTED, "xschedd has no such method"}); }
      void OnDone() override { delete this; }
    };
    return new Unimplemented;
  }
  std::string Peer() const {
    const std::lock_guard lock(mutex_);
    return peer_;
  }

 private:
  const std::function<void(std::string)> on_call_;
  mutable std::mutex mutex_;
  std::string peer_;
};

RpcServer::RpcServer(std::function<void(std::string)> on_unknown)
    : probe_(std::make_unique<PeerProbe>(std::move(on_unknown))) {}

Result<std::unique_ptr<RpcServer>> RpcServer::Start(const std::vector<grpc::Service*>& services,
                                                    std::function<void(std::string)> on_unknown) {
  std::unique_ptr<RpcServer> result(new RpcServer(std::move(on_unknown)));
  grpc::ServerBuilder builder;
  for (grpc::Service* service : services)
    builder.RegisterService(service);
  builder.RegisterCallbackGenericService(result->probe_.get());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  SaveMemory(builder);
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr) return Fail("gRPC cannot start a server", "see the preceding lines of the log");
  if (const auto checked = result->CheckPeerNames(); !checked) return tl::unexpected(checked.error());
  return result;
}

Result<void> RpcServer::CheckPeerNames() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    return Fail(std::string("cannot make a socket pair: ") + std::strerror(errno), "raise LimitNOFILE");
  }
  const std::string expected = "fd:" + std::to_string(pair[0]);
  Adopt(pair[0]);
  const auto channel = grpc::CreateInsecureChannelFromFd("self-test", pair[1]);
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kProbeLimit);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  std::promise<void> done;
  stub.UnaryCall(&context, "/xschedd.SelfTest/Peer", grpc::StubOptions(), &request, &response,
                 [&done](const grpc::Status&) { done.set_value(); });
  done.get_future().wait();
  if (probe_->Peer() == expected) return {};
  return Fail("gRPC names a connection \"" + probe_->Peer() + "\", not \"" + expected +
                  "\", so that callers cannot be identified",
              "build xschedd with a gRPC that names connections by descriptor, such as 1.51");
}

void RpcServer::Adopt(int fd) {
  grpc::AddInsecureChannelFromFd(server_.get(), fd);
}

void RpcServer::Stop() {
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
}

RpcServer::~RpcServer() = default;

}  // namespace xschedd
