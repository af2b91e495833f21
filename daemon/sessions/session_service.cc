#include "daemon/sessions/session_service.h"

#include <vector>

#include "daemon/sessions/session_reactor.h"

namespace xschedd {

grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>* SessionService::Session(
    grpc::CallbackServerContext* context) {
  using Stream = grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>;
  return new SessionReactor<Stream>(host_, sessions_, is_admin_, context->peer());
}

void SessionService::SendConfiguration() {
  // Copied, because a session that ends removes itself from the set.
  const std::vector<ConfigurationSink*> sessions(sessions_.begin(), sessions_.end());
  for (ConfigurationSink* session : sessions)
    session->SendConfiguration();
}

}  // namespace xschedd
