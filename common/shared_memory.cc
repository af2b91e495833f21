#include "common/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace xschedd {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    if (address_ != nullptr) ::munmap(address_, size_);
    address_ = std::exchange(other.address_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

void* Mapping::Leak() {
  size_ = 0;
  return std::exchange(address_, nullptr);
}

Result<SharedMemory> MakeSharedMemory(const std::string& name, std::size_t size, PeerMayWrite peer_may_write) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.IsValid()) {
    return Fail("cannot make shared memory \"" + name + "\": " + ErrnoText(), "raise LimitNOFILE or the memory limit");
  }
  if (::ftruncate(fd.Get(), static_cast<off_t>(size)) != 0) {
    return Fail("cannot size shared memory \"" + name + "\": " + ErrnoText(), "raise the memory limit");
  }
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.Get(), 0);
  if (address == MAP_FAILED) {
    return Fail("cannot map shared memory \"" + name + "\": " + ErrnoText(), "raise the memory limit");
  }
  Mapping mapping(address, size);
  // F_SEAL_FUTURE_WRITE leaves the mapping just made writable and forbids all later ones.
  const int seals = kSizeSeals | (peer_may_write == PeerMayWrite::kNo ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(fd.Get(), F_ADD_SEALS, seals) != 0) {
    return Fail("cannot seal shared memory \"" + name + "\": " + ErrnoText(), "run Linux 5.1 or later");
  }
  return SharedMemory{std::move(fd), std::move(mapping)};
}

bool CanSealWriting() {
  const UniqueFd fd(::memfd_create("xschedd-seal", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Without a descriptor nothing is known, and whatever comes next fails as well.
  return !fd.IsValid() || ::fcntl(fd.Get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
}

Result<UniqueFd> ReadOnlyView(int fd) {
  // Whoever has a descriptor can open the object again through /proc, within its mode.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd view;
  if (::fchmod(fd, S_IRUSR | S_IWUSR) == 0) view.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!view.IsValid()) return Fail("cannot open shared memory read-only: " + ErrnoText(), "mount /proc");
  return view;
}

Result<Mapping> MapSharedMemory(int fd, std::size_t size, Access access) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(size)) {
    return Fail("shared memory has an unexpected size", "run a client and a daemon of the same release");
  }
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Fail("shared memory is not sealed", "connect to a daemon, not to something else on its socket");
  }
  const int protection = access == Access::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return Fail("cannot map shared memory: " + ErrnoText(), "raise the memory limit");
  return Mapping(address, size);
}

}  // namespace xschedd
