#include "tools/nri/pod_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

namespace xschedd::nri {
namespace {

// Kubernetes allows 256 KiB of annotations; quoted they may be longer.
constexpr std::size_t kMaxAnnotationsBytes = std::size_t{2} << 20;
constexpr std::size_t kMaxUidBytes = 128;
// The kernel returns EAGAIN if a path changed meanwhile.
constexpr int kAttempts = 8;

// It names a folder, so it must not contain a path.
bool IsUid(const std::string& uid) {
  const auto is_fine = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  return !uid.empty() && uid.size() <= kMaxUidBytes && std::all_of(uid.begin(), uid.end(), is_fine);
}

UniqueFd OpenBeneath(int folder, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve;
  long fd = -1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fd = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return UniqueFd(static_cast<int>(fd));
}

tl::unexpected<Error> CannotOpen() {
  switch (errno) {
    case ENOSYS:
      return Fail("this kernel has no openat2, so the annotations of running pods are not followed",
                  "use Linux 5.6 or later");
    case EXDEV:
    case ELOOP:
      return Fail("a link leads out of its volume " + std::string(kAnnotationsVolume), "check who can write there");
    case ENOENT:
      return Fail("its volume " + std::string(kAnnotationsVolume) + " has no file \"" + kAnnotationsFile + "\"",
                  "give that path in the volume's items");
    default:
      return Fail("cannot read its volume " + std::string(kAnnotationsVolume) + ": " + std::strerror(errno));
  }
}

Result<std::string> ReadWhole(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Fail("\"" + std::string(kAnnotationsFile) + "\" in its volume is not a regular file",
                "check who can write there");
  std::string text;
  std::array<char, 16'384> part;
  for (;;) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotOpen();
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxAnnotationsBytes) return Fail("its annotations are longer than 2 MiB", "make them shorter");
  }
}

}  // namespace

PodFiles::PodFiles(std::string kubelet_dir)
    : kubelet_dir_(std::move(kubelet_dir)), inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

// A watch does not keep the volume from being unmounted; an open descriptor would.
int PodFiles::Watch(int folder) {
  if (!inotify_.IsValid()) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(folder);
  // When it has written all files, the kubelet renames a link over another.
  return ::inotify_add_watch(inotify_.Get(), path.c_str(), IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
}

Result<std::optional<Annotations>> PodFiles::Follow(const std::string& pod_uid) {
  if (!IsUid(pod_uid)) return std::nullopt;
  // Administrators may have put the kubelet's folder elsewhere, by a link.
  const UniqueFd pods(::open((kubelet_dir_ + "/pods").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!pods.IsValid()) return std::nullopt;
  const std::string path = pod_uid + "/volumes/kubernetes.io~downward-api/" + kAnnotationsVolume;
  const UniqueFd folder = OpenBeneath(pods.Get(), path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (!folder.IsValid()) {
    if (errno == ENOENT) return std::nullopt;
    return CannotOpen();
  }
  // Before it is read, so that no change is missed.
  watches_[pod_uid] = Watch(folder.Get());
  const UniqueFd file = OpenBeneath(folder.Get(), kAnnotationsFile, O_RDONLY | O_NONBLOCK | O_NOCTTY, RESOLVE_NO_XDEV);
  if (!file.IsValid()) return CannotOpen();
  const Result<std::string> text = ReadWhole(file.Get());
  if (!text) return tl::unexpected(text.error());
  Result<Annotations> annotations = ParseAnnotations(*text);
  if (!annotations) return tl::unexpected(annotations.error());
  return std::optional<Annotations>(std::move(*annotations));
}

void PodFiles::Forget(const std::string& pod_uid) {
  const auto watch = watches_.find(pod_uid);
  if (watch == watches_.end()) return;
  if (watch->second >= 0) ::inotify_rm_watch(inotify_.Get(), watch->second);
  watches_.erase(watch);
}

std::vector<std::string> PodFiles::Changed(bool every) {
  std::set<int> numbers;
  bool is_any = false;  // some events were lost
  alignas(inotify_event) std::array<char, 4'096> events;
  for (;;) {
    const ssize_t count = inotify_.IsValid() ? ::read(inotify_.Get(), events.data(), events.size()) : -1;
    if (count <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(count);) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof(event));
      at += sizeof(event) + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) is_any = true;
      numbers.insert(event.wd);
    }
  }
  std::vector<std::string> changed;
  for (const auto& [pod, number] : watches_)
    if (is_any || (number < 0 ? every : numbers.count(number) != 0)) changed.push_back(pod);
  return changed;
}

}  // namespace xschedd::nri
