// The program's requests by the C API (client-shim/include/xschedd.h): hints to the daemon, deadlines, and holds of its
// own work. Requests are checked and kept here, even without a daemon; Effects carries them out. Functions that return
// int return results of the C API. Thread rule: any thread. What the launch path reads costs it one load.
#pragma once

#include <cstdint>
#include <optional>

#include "client-shim/core/deadlines.h"
#include "client-shim/core/environment.h"
#include "client-shim/core/hints.h"
#include "client-shim/core/own_holds.h"
#include "client-shim/core/state_reports.h"

namespace xschedd::shim {

class ProgramRequests {
 public:
  // Called on the requesting thread, after the change.
  class Effects {
   public:
    virtual ~Effects() = default;
    // The daemon is to be told the highest hints and the process's deadline. Returns XSCHEDD_OK, or why it cannot be.
    virtual int HintsChanged() = 0;
    // The same of a stream's own deadline.
    virtual int StreamDeadlineChanged(void* stream) = 0;
    // Returns what these would, without telling.
    virtual int CheckSession() const = 0;
    virtual void StreamPrioritiesChanged() = 0;
    virtual void DeadlinesChanged() = 0;
    virtual void HoldsChanged() = 0;
  };

  // The environment's values apply until the program sets others. `effects` outlives this object, and is not called by
  // the constructor.
  ProgramRequests(const Environment& environment, Effects* effects);

  // ---- hints. The daemon is told when the highest of process and streams has changed.
  int SetPriority(int priority);
  int SetWeight(unsigned weight);
  int SetStreamPriority(void* stream, int priority);
  int SetStreamWeight(void* stream, unsigned weight);
  const Hint<int>& Priority() const { return priority_; }
  const Hint<std::uint32_t>& Weight() const { return weight_; }

  // ---- deadlines
  int SetDeadline(std::uint64_t us);
  int SetStreamDeadline(void* stream, std::uint64_t us);
  const Deadlines& DeadlinesSet() const { return deadlines_; }
  // The hints that the daemon is told for the process.
  ProcessHints ToTell() const;

  // ---- holds
  int Hold(int device, std::uint64_t max_us);
  int Release(int device);
  int HoldStream(void* stream, std::uint64_t max_us);
  int ReleaseStream(void* stream);
  // Whether WaitWhileHeld may have to wait.
  bool HoldsAny() const { return holds_.Any(); }
  // Waits until a submission to this stream of this device is not held.
  void WaitWhileHeld(int device, void* stream);
  std::uint64_t HeldNs() const { return holds_.WaitedNs(); }

  // The stream is about to be destroyed, and its handle may be reused.
  void ForgetStream(void* stream);

 private:
  int TellIf(bool changed) { return changed ? effects_->HintsChanged() : effects_->CheckSession(); }

  Effects* const effects_;
  Hint<int> priority_;
  Hint<std::uint32_t> weight_;
  Deadlines deadlines_;
  OwnHolds holds_;
};

}  // namespace xschedd::shim
