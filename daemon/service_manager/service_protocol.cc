#include "daemon/service_manager/service_protocol.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "common/parse_number.h"

namespace xschedd {
namespace {

constexpr int kFirstDescriptor = 3;
constexpr std::size_t kMaxDescriptors = 253;  // per message: the kernel's SCM_MAX_FD

std::optional<std::string> TakeVariable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string taken = value;
  ::unsetenv(name);
  return taken;
}

// Child processes inherit the variables, which are meant only for the process that they name.
bool IsForUs(const std::optional<std::string>& pid) {
  return pid.has_value() && ParseNumber<pid_t>(*pid) == ::getpid();
}

std::vector<std::string> Names(std::string_view list) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t end = list.find(':');
    names.emplace_back(list.substr(0, end));
    if (end == std::string_view::npos) return names;
    list.remove_prefix(end + 1);
  }
}

tl::unexpected<Error> CannotTake(int error) {
  return Fail(std::string("cannot take the descriptors that systemd passed: ") + std::strerror(error));
}

}  // namespace

Result<std::vector<PassedDescriptor>> TakePassedDescriptors() {
  const auto pid = TakeVariable("LISTEN_PID");
  const auto fds = TakeVariable("LISTEN_FDS");
  const auto list = TakeVariable("LISTEN_FDNAMES");
  std::vector<PassedDescriptor> passed;
  if (!IsForUs(pid) || !fds.has_value()) return passed;
  const auto count = ParseNumber<std::uint16_t>(*fds);
  if (!count.has_value()) return CannotTake(EINVAL);
  const std::vector<std::string> names = list.has_value() ? Names(*list) : std::vector<std::string>(*count, "unknown");
  if (names.size() != *count && *count != 0) return CannotTake(EINVAL);
  for (int i = 0; i < *count; ++i) {
    const int fd = kFirstDescriptor + i;
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return CannotTake(errno);
    passed.push_back({names[static_cast<std::size_t>(i)], UniqueFd(fd)});
  }
  return passed;
}

std::uint64_t TakeWatchdogInterval() {
  const auto pid = TakeVariable("WATCHDOG_PID");
  const auto interval = TakeVariable("WATCHDOG_USEC");
  if (!interval.has_value() || (pid.has_value() && !IsForUs(pid))) return 0;
  return ParseNumber<std::uint64_t>(*interval).value_or(0);
}

std::optional<NotifySocket> NotifySocket::FromEnvironment() {
  const char* const address = std::getenv("NOTIFY_SOCKET");
  if (address == nullptr) return std::nullopt;
  return NotifySocket(address);
}

int NotifySocket::Send(std::string_view state, const std::vector<UniqueFd>& descriptors) const {
  sockaddr_un address{};
  if (address_.size() >= sizeof address.sun_path || descriptors.size() > kMaxDescriptors) return E2BIG;
  address.sun_family = AF_UNIX;
  address_.copy(address.sun_path, sizeof address.sun_path);
  if (address_.starts_with('@')) address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.IsValid()) return errno;

  iovec text{const_cast<char*>(state.data()), state.size()};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  if (!descriptors.empty()) {
    const std::size_t size = descriptors.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::vector<int> numbers;
    std::transform(descriptors.begin(), descriptors.end(), std::back_inserter(numbers),
                   [](const UniqueFd& one) { return one.Get(); });
    std::memcpy(CMSG_DATA(header), numbers.data(), size);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd.Get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

}  // namespace xschedd
