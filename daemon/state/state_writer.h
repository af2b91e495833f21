// Writes the saved state from a thread of its own: however large it is, the daemon's loop only says what has changed.
//
// The state is a list of parts, and the writer has all of them. Changes that come while it writes are
// written together; what somebody waits for is written at once, all else seldom enough to cost little. Where nothing
// can be written (no memory) it is tried again every second. Thread rule: any thread; `saved` is called by the writer's
// own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"
#include "daemon/state/state_file.h"

namespace xschedd {

class StateWriter {
 public:
  // The state's parts, by what they are of: each is bytes of a serialised message, and all of them, one after the
  // other, are the state.
  using Parts = std::map<std::uint64_t, std::string>;
  using Saved = std::function<void(Result<void>)>;

  explicit StateWriter(StateFile file);
  // Writes what has not been written.
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  // An empty part is gone. `saved`: somebody waits; called once, when this is written or cannot be.
  void Put(Parts changed, Saved saved = {});
  // Returns when all that was put is written, or cannot be.
  void Flush();
  // StateFile::EndStart.
  void EndStart();

 private:
  static constexpr std::chrono::seconds kRetry{1};
  static constexpr int kCoreDivisor = 50;  // at most a fiftieth of a core is spent on what nobody waits for

  void Run();
  // Waits until there is something to do.
  void AwaitWork(std::unique_lock<std::mutex>& lock);
  Result<void> Write();

  StateFile file_;  // the thread's
  Parts parts_;     // the thread's
  std::chrono::nanoseconds last_cost_{0};
  bool warned_unsaved_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  Parts changed_;
  std::vector<Saved> waiting_;
  std::optional<std::chrono::steady_clock::time_point> due_;  // none: all is written
  bool is_hurried_ = false;
  bool end_start_ = false;
  bool is_writing_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace xschedd
