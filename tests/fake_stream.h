// Stands in for gRPC's reactor below a session (SessionReactor<FakeStream>): the test plays gRPC, which reports reads,
// writes, cancellation and the end. Like gRPC, it aborts the process if a session starts an operation that it may not
// start. Thread rule: the test's thread.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "session.pb.h"

namespace xschedd::test {

class FakeStream {
 public:
  virtual ~FakeStream() = default;
  virtual void OnReadDone(bool ok) = 0;
  virtual void OnWriteDone(bool ok) = 0;
  virtual void OnCancel() = 0;
  virtual void OnDone() = 0;

  void StartRead(v1::ClientMessage* message) {
    Require(reading == nullptr && !is_finished, "a read began during another, or after the end");
    reading = message;
  }
  void StartWrite(const v1::DaemonMessage* message) {
    Require(!is_writing && !is_finished, "a write began during another, or after the end");
    is_writing = true;
    said.push_back(*message);
  }
  void Finish(const grpc::Status& status) {
    Require(!is_finished, "a session ended twice");
    is_finished = true;
    ended = status;
  }

  v1::ClientMessage* reading = nullptr;
  bool is_writing = false;
  std::vector<v1::DaemonMessage> said;  // the last may still be unwritten
  bool is_finished = false;
  grpc::Status ended;

 private:
  static void Require(bool condition, const char* violation) {
    if (condition) return;
    std::fprintf(stderr, "%s\n", violation);
    std::abort();
  }
};

}  // namespace xschedd::test
