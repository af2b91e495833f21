#include "daemon/sessions/session_service.h"

#include <vector>

#include "daemon/sessions/session_reactor.h"

namespace xschedd {

grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>* SessionService::Session(
    grpc::CallbackServerContext* context) {
  using Stream = grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>;
  return new SessionReactor<Stream>(host_, sessions_, is_admin_, context->peer());
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
