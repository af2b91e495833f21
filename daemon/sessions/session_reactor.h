// Connects a session's protocol to its stream, passing gRPC's callbacks to the daemon's one thread. `Stream` is gRPC's
// reactor, or a test's own.
// Thread rule: gRPC calls On... on its threads; everything else runs on the daemon's one thread. Deletes itself.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "daemon/host.h"
#include "daemon/sessions/session_protocol.h"

namespace xschedd {

template <typename Stream>
class SessionReactor final : public Stream, private SessionStream {
 public:
  SessionReactor(Host& host, ConfigurationSinks& sessions, bool is_admin, std::string peer)
      : host_(host), protocol_(host, *this, sessions, is_admin, std::move(peer)) {
    host_.Post([this] { protocol_.Begin(); });
  }

  void OnReadDone(bool ok) override {
    host_.Post([this, ok] { protocol_.HandleRead(ok); });
  }
  void OnWriteDone(bool ok) override {
    host_.Post([this, ok] { protocol_.HandleWritten(ok); });
  }
  void OnCancel() override {
    host_.Post([this] { protocol_.End(grpc::Status::CANCELLED); });
  }
  void OnDone() override {
    host_.Post([this] { delete this; });
  }

 private:
  void Read(v1::ClientMessage* message) override { Stream::StartRead(message); }
  void Write(const v1::DaemonMessage* message) override { Stream::StartWrite(message); }
  void Finish(const grpc::Status& status) override { Stream::Finish(status); }

  Host& host_;
  SessionProtocol protocol_;
};

}  // namespace xschedd
