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
#include <functional>
#include <memory>
#include <utility>

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

inline void CloseForGood(boost::asio::posix::stream_descriptor& descriptor) {
  if (descriptor.is_open()) ::close(descriptor.release());
}

}  // namespace xschedd
