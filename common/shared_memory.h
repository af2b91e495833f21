// Sealed memory objects: the daemon makes them, both sides map them. They are sealed against shrinking, growing and
// further seals, so that neither side can make the other fault by truncating.
// Thread rule: a Mapping is a value with one owner; the memory behind it follows abi.h.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.h"
#include "common/unique_fd.h"

namespace xschedd {

// A mapped memory object; the destructor unmaps it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  void* Address() const { return address_; }
  std::size_t Size() const { return size_; }
  // Releases the memory without unmapping it: a client's threads may read the board until the process ends.
  void* Leak();

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

struct SharedMemory {
  UniqueFd fd;
  Mapping mapping;  // read-write, in the process that made it
};

enum class PeerMayWrite { kNo, kYes };

// Makes a memfd of `size` bytes (zeroed), maps it read-write here, then seals it. With PeerMayWrite::kNo, whoever
// receives the descriptor can only map it read-only. Fails with ENOMEM, EMFILE, or without CanSealWriting.
Result<SharedMemory> MakeSharedMemory(const std::string& name, std::size_t size, PeerMayWrite peer_may_write);

// Whether the kernel has the seal of PeerMayWrite::kNo: Linux 5.1.
bool CanSealWriting();

// Another descriptor of a memory object that was made with PeerMayWrite::kYes, through which it can only be mapped
// read-only; only the maker's own user can open it for writing. Replaces PeerMayWrite::kNo where a successor of this
// process must map the object for writing, which that seal would forbid as well, and without CanSealWriting. Fails
// without /proc.
Result<UniqueFd> ReadOnlyView(int fd);

enum class Access { kReadOnly, kReadWrite };

// Maps a received descriptor. Fails unless it has exactly `size` bytes and is sealed as above: otherwise the sender
// could shrink it later.
Result<Mapping> MapSharedMemory(int fd, std::size_t size, Access access);

}  // namespace xschedd
