// Writes the saved state on a thread of its own, so that the daemon's loop only passes what has changed, however large
// the state is.
//
// The state is a list of parts, of which the writer keeps a copy. Changes that arrive during a write are written
// together. What a caller waits for is written at once; everything else seldom enough to cost little. A write that
// fails (no memory) is repeated every second. Thread rule: any thread; `saved` runs on the writer's own thread.
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
  // The parts by id. Each is a serialised message, and all of them in a row are the serialised state.
  using Parts = std::map<std::uint64_t, std::string>;
  using Saved = std::function<void(Result<void>)>;

  explicit StateWriter(StateFile file);
  // Writes what has not been written.
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  // An empty part is removed. `saved`: called once, when the changes are written or cannot be; if given, they are
  // written at once.
  void Put(Parts changed, Saved saved = {});
  // Returns when everything put so far is written, or cannot be.
  void Flush();
  // Calls StateFile::EndStart on the writer's thread.
  void EndStart();

 private:
  static constexpr std::chrono::seconds kRetry{1};
  static constexpr int kCoreDivisor = 50;  // at most 1/50 of a core is spent on writes that nobody waits for

  void Run();
  // Waits until there is something to do.
  void AwaitWork(std::unique_lock<std::mutex>& lock);
  Result<void> Write();

  StateFile file_;  // used by the thread only
  Parts parts_;     // used by the thread only
  std::chrono::nanoseconds last_cost_{0};
  bool warned_unsaved_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  Parts changed_;
  std::vector<Saved> waiting_;
  std::optional<std::chrono::steady_clock::time_point> due_;  // none: everything is written
  bool is_hurried_ = false;
  bool end_start_ = false;
  bool is_writing_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace xschedd
