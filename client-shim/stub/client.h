// The stub's side of the private client library: when it is loaded, where it is found, and what happens without it.
// Thread rule: any thread.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/front_end.h"

namespace xschedd::shim {

// Loads and starts the client library if that has not been tried yet, with the runtime of the front end that comes
// first. Null: what comes by this front end is not scheduled, now and for good, and its launch path knows it. Keeps
// errno.
const ClientTable* StartClient(FrontEnd* front_end);

// The library if it runs already and schedules what comes by this front end. Loads nothing.
const ClientTable* RunningClient(const FrontEnd* front_end);
// The same, whichever front end it schedules.
const ClientTable* RunningClient();

// Whether the process is not scheduled for good (disabled, a child of fork, library missing).
bool IsInert();

// A device was made current: remembered for the start of the client, or told to it.
void NoteDevice(FrontEnd* front_end, int device);

// The hint given by xschedd_set_priority before the client runs. XSCHEDD_PRIORITY_NONE: none.
void RememberPriority(int priority);
// The same for xschedd_set_weight and xschedd_set_deadline. 0 is no weight; a deadline of 0 is one that was taken away.
void RememberWeight(unsigned weight);
void RememberDeadline(uint64_t us);
// The same for xschedd_schedule_streams.
void RememberStreams(bool on);
// What was remembered, in a status; before the client runs.
void FillRemembered(xschedd_status* status);
// The group that the client is to be started with. False: it has been started already.
bool RememberGroup(const char* group, unsigned long length);
inline constexpr unsigned long kLongestGroup = 255;

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
void CloseObject(void* handle);  // dlclose
// Our own look-up failed: dlerror is not to tell the program about it.
void ForgetLoaderError();
// The object stays mapped until the process ends, whoever closes it.
void KeepLoaded(const ElfObject& object);

}  // namespace xschedd::shim
