// Keeps the saved state up to date while the daemon serves: collects changes for some milliseconds, then passes them to
// the StateWriter. An administrator's change is saved before it is answered. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "daemon/core.h"
#include "daemon/state/state_file.h"
#include "daemon/state/state_writer.h"

namespace xschedd {

class StateSaver {
 public:
  using PartIds = std::set<std::uint64_t>;
  // Returns the parts of the state with these ids, and those that are saved every time.
  using Serialise = std::function<StateWriter::Parts(const PartIds& changed)>;

  StateSaver(boost::asio::io_context& io, Serialise serialise);

  // One of the two is called once, before anything else: the state is saved to this file, or cannot be saved.
  void Begin(StateFile file) { writer_.emplace(std::move(file)); }
  void CannotSave(std::string why) { why_unsaved_ = std::move(why); }

  void NoteChange(std::uint64_t part, Urgency urgency);
  // Saves these parts and all that changed before. `saved`: as in StateWriter::Put.
  void Save(const PartIds& parts = {}, StateWriter::Saved saved = {});
  // Calls `done` in the loop once all urgent changes are saved; with an error if a restart would lose them.
  void WhenSaved(StateWriter::Saved done);
  // This start has succeeded (StateFile::EndStart).
  void Serving();
  // Saves these parts, and returns when they are written. Nothing is saved afterwards unless Save is called.
  void Finish(const PartIds& parts);

 private:
  boost::asio::io_context& io_;
  Serialise serialise_;
  std::optional<StateWriter> writer_;
  std::string why_unsaved_;  // while there is no writer
  boost::asio::steady_timer delay_;
  bool is_delayed_ = false;
  PartIds changed_;
  bool is_urgent_ = false;  // an administrator waits for the changes to be saved
};

}  // namespace xschedd
