// Loads and starts the private client library, and keeps what has to be known before and without it.
// Thread rule: any thread.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/front_end.h"

namespace xschedd::shim {

// Loads and starts the client library, if that has not been tried yet, for this front end. Null: calls of this front
// end are not scheduled, because there is no client or it schedules another front end. Keeps errno.
const ClientTable* StartClient(FrontEnd* front_end);

// The client, if it runs and schedules this front end; else null. Loads nothing.
const ClientTable* RunningClient(const FrontEnd* front_end);
// The same, whichever front end it schedules.
const ClientTable* RunningClient();

// Whether this process will never be scheduled (disabled, a child of fork, library missing).
bool IsInert();

// A device was made current: passed to the client if it runs, else remembered for its start.
void NoteDevice(FrontEnd* front_end, int device);

// The hint of xschedd_set_priority, for a client that starts later. XSCHEDD_PRIORITY_NONE: none. To be called before
// RunningClient is asked, whether or not a client runs, so that a client that is just starting gets the hint, too.
void RememberPriority(int priority);
// The same for xschedd_set_weight and xschedd_set_deadline. A weight of 0: none. A deadline of 0 removes the
// environment's.
void RememberWeight(unsigned weight);
void RememberDeadline(uint64_t us);
// The same for xschedd_schedule_streams.
void RememberStreams(bool on);
// Writes what was remembered to a status, before the client runs.
void FillRemembered(xschedd_status* status);
// The group that the client will be started with. False: it has already been started.
bool RememberGroup(const char* group, unsigned long length);
inline constexpr unsigned long kLongestGroup = 255;

// Whether XSCHEDD_DISABLE is set to something other than 0.
bool IsDisabled();

// The C library's own functions, past the stub's dlsym.
using DlopenFunction = void* (*)(const char*, int);
using DlsymFunction = void* (*)(void*, const char*);
using DlerrorFunction = char* (*)();
DlopenFunction RealDlopen();
DlsymFunction RealDlsym();
DlerrorFunction RealDlerror();
void* RealDlvsym();
void CloseObject(void* handle);  // dlclose
// Clears the error of a failed look-up of ours, so that the program's dlerror does not return it.
void ForgetLoaderError();
// Keeps the object mapped until the process ends, even if the program closes it.
void KeepLoaded(const ElfObject& object);

}  // namespace xschedd::shim
