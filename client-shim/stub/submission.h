// Makes the Submission that a wrapper begins with. Thread rule: pure.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim {

inline Submission MakeSubmission(void* stream, std::uint32_t entry, bool drains, bool reads, const void* caller) {
  Submission submission;  // `core` stays uninitialised, because this is on the launch path of a tracked client
  submission.stream = stream;
  submission.caller = caller;
  submission.entry = entry;
  submission.drains = drains;
  submission.reads = reads;
  submission.may_time = false;
  submission.kernel = KernelRef{};
  submission.key = 0;
  submission.stop = nullptr;
  return submission;
}

}  // namespace xschedd::shim
