// Bytes that outlive the daemon, in a memfd that the service manager keeps: killed at any instruction, it leaves what
// was written last or what was written before that, whole.
//
//   header   magic, format, how many starts in a row have not come to serving
//   slot 0   sequence, length, CRC-32 of these and of the content; content
//   slot 1   the same
//
// A write goes to the slot that does not hold the newest content. A reader takes the slot with the larger sequence
// among those whose sum is right; so a write that was cut off anywhere was never made. It is written by system calls,
// not through a mapping: a machine without memory left then answers with an error instead of SIGBUS.
// A file of an earlier release has shorter slots: it is made longer when it is opened. Thread rule: one owner at a
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/unique_fd.h"

namespace xschedd {

class StateFile {
 public:
  static constexpr std::uint32_t kFormat = 1;
  // Of a slot; only what is written costs memory. The largest state that can come to be fits (saved_state.h).
  static constexpr std::size_t kCapacity = std::size_t{20} * 1024 * 1024;
  static constexpr std::size_t kFirstCapacity = std::size_t{8} * 1024 * 1024;  // of the first release's files

  // A fresh one, without content.
  static Result<StateFile> Make();
  // An earlier daemon's. Fails if it is not one, or of another format.
  static Result<StateFile> Open(UniqueFd fd);

  int Fd() const { return fd_.Get(); }
  // The content; none: nothing was ever written whole.
  std::optional<std::string> Read() const;
  // Fails if the content is too large or there is no memory; what was there before then stays.
  Result<void> Write(std::string_view content);

  // A state that ends every daemon that takes it over must not end all of them: a daemon counts itself in before it
  // looks at the content and sets the count to zero once it serves. Returns the starts before this one.
  std::uint32_t BeginStart();
  void EndStart();

 private:
  struct Slot {
    std::uint64_t sequence = 0;
    std::string content;
  };
  StateFile(UniqueFd fd, std::size_t capacity) : fd_(std::move(fd)), capacity_(capacity) {}
  // Makes the slots as long as kCapacity says. Killed in the midst of it, the file is as before or as afterwards.
  bool Grow();
  std::optional<Slot> ReadSlot(int index) const;
  // The slot with the newest content, -1 if there is none.
  int FindNewest(std::uint64_t* sequence) const;

  UniqueFd fd_;
  std::size_t capacity_;
  int newest_ = -1;
  std::uint64_t sequence_ = 0;
};

}  // namespace xschedd
