#include "daemon/state/state_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace xschedd {
namespace {

constexpr char kMagic[8] = {'X', 'S', 'D', 'S', 'T', 'A', 'T', 'E'};

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t starts;
};
struct SlotHeader {
  std::uint64_t sequence;
  std::uint64_t length;
  std::uint32_t sum;
  std::uint32_t reserved;
};
static_assert(sizeof(Header) == 16 && sizeof(SlotHeader) == 24);

off_t SlotOffset(int index, std::size_t capacity) {
  return static_cast<off_t>(sizeof(Header) + static_cast<std::size_t>(index) * (sizeof(SlotHeader) + capacity));
}

off_t FileSize(std::size_t capacity) {
  return SlotOffset(2, capacity);
}

std::uint32_t Sum(const SlotHeader& header, std::string_view content) {
  boost::crc_32_type crc;
  crc.process_bytes(&header.sequence, sizeof header.sequence);
  crc.process_bytes(&header.length, sizeof header.length);
  crc.process_bytes(content.data(), content.size());
  return crc.checksum();
}

bool ReadAll(int fd, void* to, std::size_t size, off_t offset) {
  auto* place = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd, place, size, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    place += got;
    offset += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += put;
  }
  return true;
}

std::string_view Bytes(const void* object, std::size_t size) {
  return {static_cast<const char*>(object), size};
}

}  // namespace

Result<StateFile> StateFile::Make() {
  UniqueFd fd(::memfd_create("xschedd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.format = kFormat;
  const bool made = fd.IsValid() && ::ftruncate(fd.Get(), FileSize(kCapacity)) == 0 &&
                    WriteAll(fd.Get(), Bytes(&header, sizeof header), 0);
  if (!made) {
    return Fail(std::string("cannot create the memory for the saved state: ") + std::strerror(errno),
                "raise LimitNOFILE or the memory limit");
  }
  return StateFile(std::move(fd), kCapacity);
}

Result<StateFile> StateFile::Open(UniqueFd fd) {
  struct stat status {};
  Header header{};
  if (::fstat(fd.Get(), &status) != 0 || !S_ISREG(status.st_mode) || !ReadAll(fd.Get(), &header, sizeof header, 0) ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return Fail("it is not a saved state");
  }
  if (header.format != kFormat) {
    return Fail("it has format " + std::to_string(header.format) + ", this daemon's is " + std::to_string(kFormat));
  }
  const bool is_first = status.st_size == FileSize(kFirstCapacity);
  if (!is_first && status.st_size != FileSize(kCapacity)) return Fail("its size is wrong");
  StateFile file(std::move(fd), is_first ? kFirstCapacity : kCapacity);
  file.newest_ = file.FindNewest(&file.sequence_);
  if (is_first && !file.Grow()) return Fail("it cannot be enlarged", "raise the memory limit");
  return file;
}

bool StateFile::Grow() {
  // Slot 0 stays where it is, and slot 1 moves: the newest content must be in slot 0 first.
  if (newest_ == 1) {
    const auto content = Read();
    if (!content || !Write(*content)) return false;
  }
  if (::ftruncate(fd_.Get(), FileSize(kCapacity)) != 0) return false;
  capacity_ = kCapacity;
  return true;
}

std::optional<StateFile::Slot> StateFile::ReadSlot(int index) const {
  SlotHeader header{};
  if (!ReadAll(fd_.Get(), &header, sizeof header, SlotOffset(index, capacity_))) return std::nullopt;
  if (header.sequence == 0 || header.length > capacity_) return std::nullopt;
  Slot slot{header.sequence, std::string(header.length, '\0')};
  const off_t content = SlotOffset(index, capacity_) + static_cast<off_t>(sizeof header);
  if (!ReadAll(fd_.Get(), slot.content.data(), slot.content.size(), content)) return std::nullopt;
  if (Sum(header, slot.content) != header.sum) return std::nullopt;
  return slot;
}

int StateFile::FindNewest(std::uint64_t* sequence) const {
  int newest = -1;
  *sequence = 0;
  for (const int index : {0, 1}) {
    const auto slot = ReadSlot(index);
    if (!slot || slot->sequence <= *sequence) continue;
    newest = index;
    *sequence = slot->sequence;
  }
  return newest;
}

std::optional<std::string> StateFile::Read() const {
  if (newest_ < 0) return std::nullopt;
  auto slot = ReadSlot(newest_);
  if (!slot) return std::nullopt;
  return std::move(slot->content);
}

Result<void> StateFile::Write(std::string_view content) {
  if (content.size() > capacity_) {
    return Fail("the state has " + std::to_string(content.size()) + " bytes, more than the " +
                std::to_string(capacity_) + " that fit");
  }
  SlotHeader header{};
  header.sequence = sequence_ + 1;
  header.length = content.size();
  header.sum = Sum(header, content);
  const int index = newest_ == 0 ? 1 : 0;
  std::string bytes(Bytes(&header, sizeof header));
  bytes += content;
  if (!WriteAll(fd_.Get(), bytes, SlotOffset(index, capacity_))) {
    return Fail(std::string("cannot write the state: ") + std::strerror(errno), "raise the memory limit");
  }
  newest_ = index;
  sequence_ = header.sequence;
  return {};
}

std::uint32_t StateFile::BeginStart() {
  Header header{};
  if (!ReadAll(fd_.Get(), &header, sizeof header, 0)) return 0;
  const std::uint32_t before = header.starts++;
  WriteAll(fd_.Get(), Bytes(&header, sizeof header), 0);
  return before;
}

void StateFile::EndStart() {
  const std::uint32_t none = 0;
  WriteAll(fd_.Get(), Bytes(&none, sizeof none), static_cast<off_t>(offsetof(Header, starts)));
}

}  // namespace xschedd
