// What the launch path reads: a pointer, and the word that it points at. Everything else happens only if that word is
// not zero.
//
// Each way in has a pointer of its own, so that a call that takes two ways is gated once: HIP has two (hip/runtime.h),
// CUDA one (cuda/driver.h).
//
//   at the start     all point at a word that is 1: the slow path starts the client first
//   with a session   the active one points at board.summary.flags
//   without          all point at a word that is 0: every call goes straight through
//
// Thread rule: read by any thread; written by whichever thread starts, replaces or ends the session.
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

// How deep the calling thread is inside the shim or the library. If not zero, a call comes from the runtime itself,
// which calls some of its own exports through the PLT, or from the library, and goes straight through. Only slow paths
// read it. initial-exec: the stub is loaded at program start, so its thread-local variables have a fixed offset.
extern __thread int g_depth __attribute__((tls_model("initial-exec")));

// Marks the thread as inside. While it lives, the thread cannot be cancelled either: it may hold locks and counts as
// submitting, and programs cannot rely on calls of a GPU runtime being cancellation points. A cancellation meanwhile
// acts at the program's own next cancellation point.
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
    // A thread with asynchronous cancellation may end here. It must end at setcanceltype: where it ends at
    // setcancelstate, pthread_join of glibc 2.36 does not return PTHREAD_CANCELED.
    if (cancel_type_ != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(cancel_type_, nullptr);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  int cancel_state_;
  int cancel_type_;
};

}  // namespace xschedd::shim
