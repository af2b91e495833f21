// The public C API (include/xschedd.h), as the preloaded object exports it.
#include <errno.h>

#include "client-shim/include/xschedd.h"
#include "client-shim/stub/client.h"
#include "common/abi.h"

namespace {
constexpr int kPriorityMin = -100;  // common/priority.h needs more of the C++ library than the stub may have
constexpr int kPriorityMax = 100;
constexpr unsigned kWeightMax = 10'000;                        // core/environment.h
constexpr unsigned long long kDeadlineMaxUs = 3'600'000'000;  // core/deadlines.h
}  // namespace

extern "C" {

XSCHEDD_API const char* xschedd_version(void) {
  return XSCHEDD_VERSION;
}

XSCHEDD_API int xschedd_set_priority(int priority) {
  using namespace xschedd::shim;
  if (priority < kPriorityMin || priority > kPriorityMax) return XSCHEDD_ERROR_INVALID;
  if (IsInert() || IsDisabled()) return XSCHEDD_ERROR_INERT;
  if (const ClientTable* client = RunningClient()) return client->set_priority(priority);
  RememberPriority(priority);
  return XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_weight(unsigned weight) {
  using namespace xschedd::shim;
  if (weight < 1 || weight > kWeightMax) return XSCHEDD_ERROR_INVALID;
  if (IsInert() || IsDisabled()) return XSCHEDD_ERROR_INERT;
  if (const ClientTable* client = RunningClient()) return client->set_weight(weight);
  RememberWeight(weight);
  return XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_deadline(unsigned long long us) {
  using namespace xschedd::shim;
  if (us > kDeadlineMaxUs) return XSCHEDD_ERROR_INVALID;
  if (IsInert() || IsDisabled()) return XSCHEDD_ERROR_INERT;
  if (const ClientTable* client = RunningClient()) return client->set_deadline(us);
  RememberDeadline(us);
  return XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_set_stream_deadline(void* stream, unsigned long long us) {
  using namespace xschedd::shim;
  if (us > kDeadlineMaxUs) return XSCHEDD_ERROR_INVALID;
  if (IsInert() || IsDisabled()) return XSCHEDD_ERROR_INERT;
  if (const ClientTable* client = RunningClient()) return client->set_stream_deadline(stream, us);
  return XSCHEDD_ERROR_NOT_CONNECTED;
}

XSCHEDD_API int xschedd_get_status(xschedd_status* status) {
  using namespace xschedd::shim;
  if (status == nullptr || status->size != sizeof(xschedd_status)) return XSCHEDD_ERROR_INVALID;
  *status = xschedd_status{};
  status->size = sizeof(xschedd_status);
  if (const ClientTable* client = RunningClient()) return client->get_status(status);
  status->state = IsInert() || IsDisabled() ? XSCHEDD_STATE_INERT : XSCHEDD_STATE_IDLE;
  return XSCHEDD_OK;
}

}  // extern "C"
