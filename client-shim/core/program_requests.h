// What the program asks for by the C API (client-shim/include/xschedd.h): hints to the daemon, deadlines, and holds of
// its own work. Requests are checked and kept here, also without a daemon; Effects carries them out.
// Results are the C API's. Thread rule: any thread. What the launch path reads costs it one load.
#pragma once

#include <cstdint>
#include <optional>

#include "client-shim/core/control_stream.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/environment.h"
#include "client-shim/core/hints.h"
#include "client-shim/core/own_holds.h"

namespace xschedd::shim {

class ProgramRequests {
 public:
  // Called by the thread that asks, after the change.
  class Effects {
   public:
    virtual ~Effects() = default;
    // The daemon hears of it. Returns XSCHEDD_OK, or why it does not.
    virtual int Tell(const HintMessage& hint) = 0;
    // Whether it would: the same without a word.
    virtual int MayTell() const = 0;
    virtual void StreamPrioritiesChanged() = 0;
    virtual void DeadlinesChanged() = 0;
    virtual void HoldsChanged() = 0;
  };

  // What holds until the program says something else is the environment's. `effects` outlives it, and is not called
  // here.
  ProgramRequests(const Environment& environment, Effects* effects);

  // ---- hints. The daemon hears of one when the highest of process and streams has changed.
  int SetPriority(int priority);
  int SetWeight(unsigned weight);
  int SetStreamPriority(void* stream, int priority);
  int SetStreamWeight(void* stream, unsigned weight);
  const Hint<int>& Priority() const { return priority_; }
  const Hint<std::uint32_t>& Weight() const { return weight_; }

  // ---- deadlines. `queue`: by which the daemon knows the stream.
  int SetDeadline(std::uint64_t us);
  int SetStreamDeadline(void* stream, std::uint64_t queue, std::uint64_t us);
  const Deadlines& DeadlinesSet() const { return deadlines_; }
  // Of the process.
  std::optional<std::uint64_t> DeadlineHint() const {
    const std::uint64_t us = deadlines_.OfProcess();
    return us == 0 ? std::nullopt : std::optional(us);
  }

  // ---- holds
  int Hold(int device, std::uint64_t max_us);
  int Release(int device);
  int HoldStream(void* stream, std::uint64_t max_us);
  int ReleaseStream(void* stream);
  // Whether Wait may have to wait.
  bool HoldsAny() const { return holds_.Any(); }
  // Waits until a submission to this stream of this device is not held.
  void WaitWhileHeld(int device, void* stream);
  std::uint64_t HeldNs() const { return holds_.WaitedNs(); }

  // It is about to be destroyed; the handle may be another stream's soon.
  void ForgetStream(void* stream);

 private:
  int TellPriority(bool changed);
  int TellWeight(bool changed);
  int TellChanged(const HintMessage& hint, bool changed) {
    return changed ? effects_->Tell(hint) : effects_->MayTell();
  }

  Effects* const effects_;
  Hint<int> priority_;
  Hint<std::uint32_t> weight_;
  Deadlines deadlines_;
  OwnHolds holds_;
};

}  // namespace xschedd::shim
