// The file of the saved state: what is read back, also after a cut-off write, corruption, or a write by another
// release.
#include "daemon/state/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/catch.h"

using namespace xschedd;

namespace {

constexpr std::size_t kHeader = 16;
constexpr std::size_t kSlotHeader = 24;
constexpr std::size_t kSlot = kSlotHeader + StateFile::kCapacity;

std::string Bytes(int fd, std::size_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  REQUIRE(::pread(fd, bytes.data(), size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size));
  return bytes;
}

void Put(int fd, std::size_t offset, const std::string& bytes) {
  REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes.size()));
}

Result<StateFile> Reopen(const StateFile& file) {
  return StateFile::Open(UniqueFd(::fcntl(file.Fd(), F_DUPFD_CLOEXEC, 0)));
}

}  // namespace

TEST_CASE("written content is read back, also after reopening") {
  auto file = StateFile::Make();
  REQUIRE(file);
  CHECK(!file->Read());
  CHECK(!Reopen(*file)->Read());
  for (const std::string content : {"one", "", "three, which is longer", "4"}) {
    REQUIRE(file->Write(content));
    CHECK(file->Read() == content);
    auto other = Reopen(*file);
    REQUIRE(other);
    CHECK(other->Read() == content);
    // It continues where the first one was.
    REQUIRE(other->Write(content + "+"));
    CHECK(Reopen(*file)->Read() == content + "+");
    file = std::move(other);
  }
  CHECK(!file->Write(std::string(StateFile::kCapacity + 1, 'x')));
  CHECK(file->Read() == "4+");
}

TEST_CASE("a write cut off at any byte has no effect, whichever bytes came first") {
  auto file = StateFile::Make().value();
  REQUIRE(file.Write("the first content"));
  REQUIRE(file.Write("the second content, of another length"));
  // Into the slot of the first again.
  const std::size_t place = kHeader;
  const std::size_t size = kSlotHeader + 64;
  const std::string before = Bytes(file.Fd(), place, size);
  REQUIRE(file.Write("the third, which replaces the first"));
  const std::string after = Bytes(file.Fd(), place, size);
  REQUIRE(before != after);
  const auto check = [&](const std::string& bytes) {
    Put(file.Fd(), place, bytes);
    const auto read = Reopen(file)->Read();
    REQUIRE(read);
    CHECK(*read == (bytes == after ? "the third, which replaces the first" : "the second content, of another length"));
  };
  for (std::size_t cut = 0; cut <= size; ++cut) {
    check(after.substr(0, cut) + before.substr(cut));
    // Bytes equal in both may come from either, so a cut write can equal `after`.
    check(before.substr(0, cut) + after.substr(cut));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string mixed = before;
    for (std::size_t i = 0; i < size; ++i) {
      if (random() % 2 == 0) mixed[i] = after[i];
    }
    check(mixed);
  }
}

TEST_CASE("a corrupt copy yields to the other one; two corrupt ones leave nothing") {
  auto file = StateFile::Make().value();
  REQUIRE(file.Write("older"));
  REQUIRE(file.Write("newer"));
  std::string newer = Bytes(file.Fd(), kHeader + kSlot, kSlotHeader + 5);
  for (std::size_t i = 0; i < newer.size(); ++i) {
    if (i >= 20 && i < kSlotHeader) continue;  // reserved
    for (int bit = 0; bit < 8; ++bit) {
      std::string spoilt = newer;
      spoilt[i] = static_cast<char>(spoilt[i] ^ (1 << bit));
      Put(file.Fd(), kHeader + kSlot, spoilt);
      CHECK(Reopen(file)->Read() == "older");
    }
  }
  Put(file.Fd(), kHeader, std::string(kSlotHeader, '\xff'));
  CHECK(!Reopen(file)->Read());
  // Further writes work.
  auto other = Reopen(file).value();
  REQUIRE(other.Write("again"));
  CHECK(Reopen(file)->Read() == "again");
}

TEST_CASE("a file that is not a state, or has another format, is refused with a reason") {
  auto file = StateFile::Make().value();
  Put(file.Fd(), 8, std::string("\x02\x00\x00\x00", 4));
  CHECK(Reopen(file).error().what == "it has format 2, this daemon's is 1");
  Put(file.Fd(), 8, std::string("\x01\x00\x00\x00", 4));
  CHECK(Reopen(file));
  REQUIRE(::ftruncate(file.Fd(), 4096) == 0);
  CHECK(Reopen(file).error().what == "its size is wrong");
  Put(file.Fd(), 0, "x");
  CHECK(Reopen(file).error().what == "it is not a saved state");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(!StateFile::Open(UniqueFd(ends[0])));
  ::close(ends[1]);
}

TEST_CASE("starts that fail before serving are counted") {
  auto file = StateFile::Make().value();
  CHECK(file.BeginStart() == 0);
  CHECK(Reopen(file)->BeginStart() == 1);
  auto third = Reopen(file).value();
  CHECK(third.BeginStart() == 2);
  third.EndStart();
  CHECK(Reopen(file)->BeginStart() == 0);
}

TEST_CASE("a file of the first release, whichever copy is newest, grows and keeps its content") {
  const int writes = GENERATE(1, 2, 3);
  const std::size_t slot = kSlotHeader + StateFile::kFirstCapacity;
  auto file = StateFile::Make().value();
  for (int i = 1; i <= writes; ++i)
    REQUIRE(file.Write("content " + std::to_string(i)));
  // The layout of the first release: the second copy behind a shorter first one.
  Put(file.Fd(), kHeader + slot, Bytes(file.Fd(), kHeader + kSlot, kSlotHeader + 32));
  REQUIRE(::ftruncate(file.Fd(), static_cast<off_t>(kHeader + 2 * slot)) == 0);
  auto grown = Reopen(file);
  REQUIRE(grown);
  const std::string newest = "content " + std::to_string(writes);
  CHECK(grown->Read() == newest);
  CHECK(Reopen(file)->Read() == newest);  // killed after that
  const std::string large(StateFile::kCapacity, 'x');
  REQUIRE(grown->Write(large));
  CHECK(Reopen(file)->Read() == large);
}
