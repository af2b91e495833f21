// Waits for a descriptor to hang up, without false alarms: each would cost a client its session.
//
// Asio can report the end of another descriptor, one that was just closed. It reuses its descriptor records, so an
// event for the old descriptor can reach the new one: epoll had already delivered it, or still delivers it because a
// duplicate of the socket (gRPC's) is open. Under client churn this hit one in 200. Therefore:
//   - AwaitEnd asks the kernel before it believes the event;
//   - CloseForGood removes the descriptor from epoll before closing it. asio's close() leaves that to the kernel,
//     which does it only when no duplicate is left.
// Thread rule: the daemon's one thread.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/registry/process.h"

namespace xschedd {

using EndHandler = std::function<void(const boost::system::error_code&)>;

// Calls `then` once: without an error when `descriptor` has hung up (wait_error) or is readable (wait_read), else with
// asio's error. `owner` contains the descriptor; once it is gone, `then` is not called.
inline void AwaitEnd(boost::asio::posix::stream_descriptor& descriptor,
                     boost::asio::posix::stream_descriptor::wait_type type, std::weak_ptr<const void> owner,
                     EndHandler then) {
  descriptor.async_wait(type, [&descriptor, type, owner = std::move(owner),
                               then = std::move(then)](const boost::system::error_code& error) mutable {
    const auto alive = owner.lock();
    if (alive == nullptr) return;
    const short readable = type == boost::asio::posix::stream_descriptor::wait_read ? POLLIN : 0;
    pollfd now{error || !descriptor.is_open() ? -1 : descriptor.native_handle(), readable, 0};
    if (error || ::poll(&now, 1, 0) > 0) return then(error);
    AwaitEnd(descriptor, type, std::move(owner), std::move(then));
  });
}

// Calls `then` once, without an error, when the process behind `pidfd` (OpenPidfd) has exited; otherwise as AwaitEnd.
// Where it has no event, the process is looked at twice a second.
inline void AwaitExit(boost::asio::posix::stream_descriptor& pidfd, std::weak_ptr<const void> owner, EndHandler then) {
  if (HasExitEvent(pidfd.native_handle())) {
    return AwaitEnd(pidfd, boost::asio::posix::stream_descriptor::wait_read, std::move(owner), std::move(then));
  }
  auto timer = std::make_shared<boost::asio::steady_timer>(pidfd.get_executor(), std::chrono::milliseconds(500));
  timer->async_wait([&pidfd, timer, owner = std::move(owner), then = std::move(then)](const auto& error) mutable {
    const auto alive = owner.lock();
    if (alive == nullptr || !pidfd.is_open()) return;
    if (error || HasExited(pidfd.native_handle())) return then(error);
    AwaitExit(pidfd, std::move(owner), std::move(then));
  });
}

inline void CloseForGood(boost::asio::posix::stream_descriptor& descriptor) {
  if (descriptor.is_open()) ::close(descriptor.release());
}

}  // namespace xschedd
