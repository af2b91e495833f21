// What the launch path reads: one pointer, one word. Everything else is behind the word being non-zero.
//
// Each way in has its pointer, so that a call that travels two is gated once: HIP has two (hip/runtime.h), CUDA one
// (cuda/driver.h).
//
//   at the start     all point at a word that is 1: the slow path starts the client first
//   with a session   the active one points at board.summary.flags
//   without          all point at a word that is 0: every call goes straight through
//
// Thread rule: read by any thread; written by whoever starts, ends or renews the session.
#pragma once

#include <pthread.h>

#include <atomic>

#include "common/abi.h"

namespace xschedd::shim {

extern const abi::Word g_word_start;  // 1
extern const abi::Word g_word_open;   // 0

[[gnu::always_inline]] inline bool IsOpen(const std::atomic<const abi::Word*>& summary) {
  // acquire on the pointer: the board behind it is mapped. acquire on the word: see BoardWriter::WriteSummary.
  return summary.load(std::memory_order_acquire)->load(std::memory_order_acquire) == 0;
}

// How deep the calling thread is inside the shim or the library. Not zero: a call comes from the runtime itself (which
// reaches some of its own exports through the PLT) or from the library, and passes. Only the slow paths look.
// initial-exec: the stub is there from program start, so its thread-local variables have a fixed place.
extern __thread int g_depth __attribute__((tls_model("initial-exec")));

// While it lives, the thread is not cancelled either: it may hold locks and is counted as submitting, and no call of a
// GPU runtime is a cancellation point that a program could rely on. A cancellation that comes meanwhile acts at the
// program's own next cancellation point.
class Inside {
 public:
  Inside() {
    ++g_depth;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type_);
  }
  ~Inside() {
    --g_depth;
    pthread_setcancelstate(cancel_state_, nullptr);
    // A thread that has asked to be cancelled at any moment may end here. By the type, because where enabling ends it,
    // glibc 2.36 does not say PTHREAD_CANCELED to who joins it.
    if (cancel_type_ != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(cancel_type_, nullptr);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  int cancel_state_;
  int cancel_type_;
};

}  // namespace xschedd::shim
