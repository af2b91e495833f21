// What seals guarantee: neither side can shrink the other's memory, and a client cannot write to its board.
#include "common/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("a client cannot write, grow or shrink its board") {
  auto memory = MakeSharedMemory("test", 8192, PeerMayWrite::kNo);
  REQUIRE(memory);
  const int fd = memory->fd.Get();
  CHECK(::ftruncate(fd, 4096) != 0);
  CHECK(::ftruncate(fd, 16384) != 0);
  CHECK(::write(fd, "x", 1) < 0);
  CHECK(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  CHECK(!MapSharedMemory(fd, 8192, Access::kReadWrite));

  const auto view = MapSharedMemory(fd, 8192, Access::kReadOnly);
  REQUIRE(view);
  CHECK(::mprotect(view->Address(), 8192, PROT_READ | PROT_WRITE) != 0);
  static_cast<char*>(memory->mapping.Address())[5] = 'y';
  CHECK(static_cast<const char*>(view->Address())[5] == 'y');
}

TEST_CASE("a ledger can be written but not resized") {
  auto memory = MakeSharedMemory("test", 4096, PeerMayWrite::kYes);
  REQUIRE(memory);
  CHECK(::ftruncate(memory->fd.Get(), 0) != 0);
  CHECK(::ftruncate(memory->fd.Get(), 8192) != 0);
  CHECK(MapSharedMemory(memory->fd.Get(), 4096, Access::kReadWrite));
}

TEST_CASE("memory that is not sealed, or has another size, is not mapped") {
  const UniqueFd open(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(open.Get(), 4096) == 0);
  CHECK(MapSharedMemory(open.Get(), 4096, Access::kReadOnly).error().what == "shared memory is not sealed");
  auto memory = MakeSharedMemory("test", 4096, PeerMayWrite::kYes);
  CHECK(!MapSharedMemory(memory->fd.Get(), 8192, Access::kReadOnly));
  CHECK(!MapSharedMemory(memory->fd.Get(), 1024, Access::kReadOnly));
  CHECK(!MapSharedMemory(-1, 4096, Access::kReadOnly));
}

TEST_CASE("a mapping has one owner") {
  auto memory = MakeSharedMemory("test", 4096, PeerMayWrite::kYes);
  Mapping first = std::move(memory->mapping);
  CHECK(memory->mapping.Address() == nullptr);
  Mapping second;
  second = std::move(first);
  CHECK(second.Address() != nullptr);
  void* leaked = second.Leak();
  CHECK(second.Address() == nullptr);
  CHECK(::munmap(leaked, 4096) == 0);
}
