// The public C API (include/xschedd.h), as the preloaded object exports it. Thread rule: any thread.
#include <errno.h>
#include <string.h>

#include "client-shim/include/xschedd.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/launch_path.h"
#include "common/abi.h"

namespace {

using namespace xschedd::shim;

constexpr int kPriorityMin = -100;  // common/priority.h needs more of the C++ library than the stub may have
constexpr int kPriorityMax = 100;
constexpr unsigned kWeightMax = 10'000;                       // core/environment.h
constexpr unsigned long long kDeadlineMaxUs = 3'600'000'000;  // core/deadlines.h, core/own_holds.h

bool IsPriorityOrNone(int priority) {
  return priority == XSCHEDD_PRIORITY_NONE || (priority >= kPriorityMin && priority <= kPriorityMax);
}
bool IsWeightOrNone(unsigned weight) {
  return weight <= kWeightMax;  // 0 is none
}
bool IsHoldTime(unsigned long long us) {
  return us >= 1 && us <= kDeadlineMaxUs;
}
bool IsHoldDevice(int device) {
  return device >= XSCHEDD_ALL_DEVICES && device < static_cast<int>(xschedd::abi::kMaxDevices);
}

bool IsUnscheduled() {
  return IsInert() || IsDisabled();
}

// Whether the caller's structure has room for at least its size and one number.
template <typename Status>
bool HasSize(const Status* status) {
  return status != nullptr && status->size >= 2 * sizeof status->size;
}

// Fills the caller's structure as far as it goes.
template <typename Status>
void CopyOut(const Status& from, Status* to) {
  const unsigned size = to->size < sizeof from ? to->size : static_cast<unsigned>(sizeof from);
  memcpy(to, &from, size);
  to->size = size;
}

}  // namespace

extern "C" {

XSCHEDD_API const char* xschedd_version(void) {
  return XSCHEDD_VERSION;
}

XSCHEDD_API int xschedd_api_version(void) {
  return XSCHEDD_API_VERSION;
}

XSCHEDD_API const char* xschedd_result_text(int result) {
  switch (result) {
    case XSCHEDD_OK:
      return "done";
    case XSCHEDD_ERROR_INVALID:
      return "an argument is out of range or null; see xschedd.h for what is allowed";
    case XSCHEDD_ERROR_NOT_CONNECTED:
      return "there is no session with the daemon; start xschedd, and use the GPU first";
    case XSCHEDD_ERROR_INERT:
      return "this process is not scheduled; xschedctl doctor PID says why";
    case XSCHEDD_ERROR_NO_SHIM:
      return "no shim is preloaded; start the program with xschedctl run";
    case XSCHEDD_ERROR_TOO_LATE:
      return "the client is already running; call this before the first GPU work";
    default:
      return "not a result of xschedd";
  }
}

XSCHEDD_API int xschedd_set_priority(int priority) {
  if (!IsPriorityOrNone(priority)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  RememberPriority(priority);
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_priority(priority) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_weight(unsigned weight) {
  if (!IsWeightOrNone(weight)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  RememberWeight(weight);
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_weight(weight) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_deadline(xschedd_count us) {
  if (us > kDeadlineMaxUs) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  RememberDeadline(us);
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_deadline(us) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_group(const char* group) {
  if (group == nullptr) group = "";
  const unsigned long length = strnlen(group, kLongestGroup + 1);
  if (length > kLongestGroup) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  return RememberGroup(group, length) ? XSCHEDD_OK : XSCHEDD_ERROR_TOO_LATE;
}

XSCHEDD_API int xschedd_set_stream_priority(void* stream, int priority) {
  if (!IsPriorityOrNone(priority)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_stream_priority(stream, priority) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_stream_weight(void* stream, unsigned weight) {
  if (!IsWeightOrNone(weight)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_stream_weight(stream, weight) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_stream_deadline(void* stream, xschedd_count us) {
  if (us > kDeadlineMaxUs) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->set_stream_deadline(stream, us) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_hold(int device, xschedd_count max_us) {
  if (!IsHoldDevice(device) || !IsHoldTime(max_us)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->hold(device, max_us) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_release(int device) {
  if (!IsHoldDevice(device)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->release(device) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_hold_stream(void* stream, xschedd_count max_us) {
  if (!IsHoldTime(max_us)) return XSCHEDD_ERROR_INVALID;
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->hold_stream(stream, max_us) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_release_stream(void* stream) {
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->release_stream(stream) : XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_schedule_streams(int on) {
  if (IsUnscheduled()) return XSCHEDD_ERROR_INERT;
  const Inside inside;
  RememberStreams(on != 0);
  const ClientTable* client = RunningClient();
  return client != nullptr ? client->schedule_streams(on != 0) : XSCHEDD_OK;
}

XSCHEDD_API int xschedd_get_status(xschedd_status* status) {
  if (!HasSize(status)) return XSCHEDD_ERROR_INVALID;
  xschedd_status whole{};
  int result = XSCHEDD_OK;
  const Inside inside;
  if (const ClientTable* client = RunningClient()) {
    result = client->get_status(&whole);
  } else {
    whole.state = IsUnscheduled() ? XSCHEDD_STATE_INERT : XSCHEDD_STATE_IDLE;
    FillRemembered(&whole);
  }
  CopyOut(whole, status);
  return result;
}

XSCHEDD_API int xschedd_get_device_status(int device, xschedd_device_status* status) {
  if (!HasSize(status) || !IsHoldDevice(device) || device == XSCHEDD_ALL_DEVICES) return XSCHEDD_ERROR_INVALID;
  xschedd_device_status whole{};
  int result = IsUnscheduled() ? XSCHEDD_ERROR_INERT : XSCHEDD_ERROR_NOT_CONNECTED;
  const Inside inside;
  if (const ClientTable* client = RunningClient()) result = client->get_device_status(device, &whole);
  CopyOut(whole, status);
  return result;
}

}  // extern "C"
