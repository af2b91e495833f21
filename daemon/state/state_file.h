// Bytes that outlive the daemon, in a memfd that the service manager keeps. At whatever instruction the daemon is
// killed, the file has the last content or the one before it, complete.
//
//   header   magic, format, how many starts in a row have ended before serving
//   slot 0   sequence, length, CRC-32 of these and of the content; content
//   slot 1   the same
//
// A write goes to the slot that does not have the newest content. A reader takes the slot with the larger sequence
// among those with a correct checksum, so an interrupted write has no effect. Writes are system calls, which fail when
// no memory is left; a mapping would raise SIGBUS. The file of an earlier release has shorter slots, and is enlarged
// when it is opened. Thread rule: one owner at a time.
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
  // Bytes of a slot; only what is written costs memory. The largest possible state fits (saved_state.h).
  static constexpr std::size_t kCapacity = std::size_t{20} * 1024 * 1024;
  static constexpr std::size_t kFirstCapacity = std::size_t{8} * 1024 * 1024;  // in the first release's files

  // A new file, without content.
  static Result<StateFile> Make();
  // An earlier daemon's file. Fails if it is not one, or has another format.
  static Result<StateFile> Open(UniqueFd fd);

  int Fd() const { return fd_.Get(); }
  // The content; none: no write was ever completed.
  std::optional<std::string> Read() const;
  // Fails if the content is too large or there is no memory left; the previous content then stays.
  Result<void> Write(std::string_view content);

  // Limits how many daemons a state can crash: a daemon increases the count before it reads the content, and resets it
  // once it serves. Returns the count before this start.
  std::uint32_t BeginStart();
  void EndStart();

 private:
  struct Slot {
    std::uint64_t sequence = 0;
    std::string content;
  };
  StateFile(UniqueFd fd, std::size_t capacity) : fd_(std::move(fd)), capacity_(capacity) {}
  // Enlarges the slots to kCapacity. If the daemon is killed meanwhile, the file is as before or as afterwards.
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
