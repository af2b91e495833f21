#include "daemon/sessions/session_service.h"

#include <vector>

#include "daemon/sessions/session_reactor.h"
#include "session.grpc.pb.h"

namespace xschedd {

// Not in the header, because gRPC's base of a service takes the compiler long in each source that includes it.
class SessionService::Calls final : public v1::ClientSession::CallbackService {
 public:
  Calls(Host& host, ConfigurationSinks& sessions, bool is_admin)
      : host_(host), sessions_(sessions), is_admin_(is_admin) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>* Session(
      grpc::CallbackServerContext* context) override {
    using Stream = grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>;
    return new SessionReactor<Stream>(host_, sessions_, is_admin_, context->peer());
  }

 private:
  Host& host_;
  ConfigurationSinks& sessions_;
  const bool is_admin_;
};

SessionService::SessionService(Host& host, bool is_admin)
    : calls_(std::make_unique<Calls>(host, sessions_, is_admin)) {}

SessionService::~SessionService() = default;

grpc::Service& SessionService::Rpc() {
  return *calls_;
}

void SessionService::SendConfiguration(std::uint64_t client) {
  if (client != 0) {
    if (const auto found = sessions_.find(client); found != sessions_.end()) found->second->SendConfiguration();
    return;
  }
  // Copied, because a session that ends removes itself.
  const std::vector<ConfigurationSinks::value_type> sessions(sessions_.begin(), sessions_.end());
  for (const auto& [id, session] : sessions)
    session->SendConfiguration();
}

}  // namespace xschedd
