// The stub's side of the private client library: when it is loaded, where it is found, and what happens without it.
// Thread rule: any thread.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim {

// Loads and starts the client library if that has not been tried yet, with the HIP runtime found before. Null: this
// process is not scheduled, now and for good, and the launch path knows it. Keeps errno.
const ClientTable* StartClient();

// The library if it runs already. Loads nothing.
const ClientTable* RunningClient();

// Whether the process is not scheduled for good (disabled, a child of fork, library missing).
bool IsInert();

// A device was made current: remembered for the start of the client, or told to it.
void NoteDevice(int device);

// The hint given by xschedd_set_priority before the client runs. `kNoPriority`: none.
inline constexpr int kNoPriority = 1 << 30;
void RememberPriority(int priority);
// The same for xschedd_set_weight and xschedd_set_deadline. 0 is no weight; a deadline of 0 is one that was taken away.
void RememberWeight(unsigned weight);
void RememberDeadline(uint64_t us);

// XSCHEDD_DISABLE is set to something other than 0.
bool IsDisabled();

// The C library's own functions, found behind the stub's dlsym.
using DlopenFunction = void* (*)(const char*, int);
using DlsymFunction = void* (*)(void*, const char*);
using DlerrorFunction = char* (*)();
DlopenFunction RealDlopen();
DlsymFunction RealDlsym();
DlerrorFunction RealDlerror();
void* RealDlvsym();

}  // namespace xschedd::shim
