// A vendor's front end (hip, cuda) as the rest of the stub sees it.
//
// A process is scheduled through one of them: the first one that submits work. If a program uses two vendors' GPUs, the
// other's calls go straight through, and a message says so.
// Thread rule: any thread; make_vendor once, by the thread that starts the client.
#pragma once

#include <stdint.h>

#include <atomic>

#include "client-shim/core/interface.h"
#include "client-shim/stub/entry_names.h"
#include "client-shim/stub/exposed.h"

namespace xschedd::shim {

struct FrontEnd {
  const char* name;  // "HIP", for messages
  const EntryNames* entry_names;

  // Finds the runtime and every way into it. False: none is loaded. May be called by several threads at once.
  bool (*prepare)();
  // After `prepare`.
  const Vendor* (*make_vendor)();
  // Sets the word that the wrappers' launch path reads: if it is not zero, they take the slow path.
  void (*point_at)(const abi::Word* word);

  Exposed exposed;  // the library is the scheduled runtime

  // A bit for each ordinal that was made current. relaxed: a set that only grows.
  std::atomic<uint64_t> devices_seen;
};

inline constexpr int kFrontEndCount = 2;
extern FrontEnd* const kFrontEnds[kFrontEndCount];

}  // namespace xschedd::shim
