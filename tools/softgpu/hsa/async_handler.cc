// hsa_amd_signal_async_handler: functions called when a signal meets a condition. One thread calls them all, in no
// particular order; it is started with the first handler and sleeps while no watched signal changes.
// Thread rule: registration from any thread, also from a handler.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <list>
#include <mutex>

#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/hsa/signal.h"

namespace softgpu {

namespace {

struct Handler {
  Signal* signal;
  hsa_signal_condition_t condition;
  int64_t compare;
  hsa_amd_signal_handler function;
  void* argument;
};

constexpr uint64_t kPollNs = 50'000;

struct Handlers {
  std::mutex lock;
  std::list<Handler> list;
  bool started = false;
};

Handlers& handlers() {
  static auto* h = new Handlers;  // leaked, see runtime.h
  return *h;
}

// Takes out the handlers whose condition is met.
std::list<Handler> take_ready(bool& any_written_directly) {
  Handlers& h = handlers();
  const std::lock_guard guard(h.lock);
  std::list<Handler> ready;
  any_written_directly = false;
  for (auto it = h.list.begin(); it != h.list.end();) {
    const auto here = it++;
    if (satisfied(here->condition, here->signal->value().load(), here->compare)) {
      ready.splice(ready.end(), h.list, here);
    } else {
      any_written_directly |= here->signal->written_directly.load(std::memory_order_relaxed);
    }
  }
  return ready;
}

void call(std::list<Handler> ready) {
  while (!ready.empty()) {
    Handler& handler = ready.front();
    if (handler.function(handler.signal->value().load(), handler.argument)) {
      const std::lock_guard guard(handlers().lock);
      handlers().list.splice(handlers().list.end(), ready, ready.begin());
    } else {
      handler.signal->watchers.fetch_sub(1, std::memory_order_seq_cst);
      ready.pop_front();
    }
  }
}

void handler_thread() {
  for (;;) {
    const uint32_t ticket = watched_signals_changed().prepare();
    bool any_written_directly = false;
    std::list<Handler> ready = take_ready(any_written_directly);
    if (ready.empty()) {
      watched_signals_changed().wait(ticket, any_written_directly ? now_ns() + kPollNs : kForever);
    } else {
      watched_signals_changed().cancel();
      call(std::move(ready));
    }
  }
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                      hsa_signal_value_t value, hsa_amd_signal_handler handler,
                                                      void* argument) {
  if (signal.handle == 0 || handler == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (inert()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Signal* s = Signal::from(signal);
  s->watchers.fetch_add(1, std::memory_order_seq_cst);
  Handlers& h = handlers();
  {
    const std::lock_guard guard(h.lock);
    h.list.push_back({s, condition, value, handler, argument});
    if (!h.started) {
      h.started = true;
      start_thread("softgpu-async", handler_thread);
    }
  }
  watched_signals_changed().notify();  // the condition may be met already
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_async_function(void (*callback)(void*), void* argument) {
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  callback(argument);
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
