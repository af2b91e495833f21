// A Submission as a wrapper begins it; the core fills in the rest. Thread rule: pure.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim {

inline Submission MakeSubmission(void* stream, std::uint32_t entry, bool drains, bool reads, const void* caller) {
  Submission submission;  // its words for the core stay as they are: this is the launch path of a tracked client
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
