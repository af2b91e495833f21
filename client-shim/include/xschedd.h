/* The public C API of xschedd's client shim. Optional: a program that never calls it is scheduled all the same.
 *
 * Each function is exported by the preloaded libxschedd-shim.so (`xschedctl run`, or LD_PRELOAD), and by nothing
 * else. So a program that must also run without it does one of these, with no other change:
 *
 *   #define XSCHEDD_DLSYM   before including this: each function is then a small inline function that looks for the
 *                           shim's when it is first called, and answers XSCHEDD_ERROR_NO_SHIM without it.
 *                           Recommended: needs nothing at link time (before glibc 2.34: -ldl), and no check in the
 *                           program.
 *   #define XSCHEDD_WEAK    the functions are weak symbols: check each for null before calling it. Link with -pie or
 *                           -shared: in a program linked with -no-pie a weak symbol that no library defines is null
 *                           for good.
 *   neither                 the program can only be linked against, and only runs with, libxschedd-shim.so.
 *
 * Every function may be called from any thread, never aborts, and leaves errno alone. Each returns at once, and none
 * calls the GPU's runtime. What a hint is worth is the daemon's to decide: an administrator's setting goes before it,
 * then a rule of the configuration, and the user's ceiling limits it. C99 and later, C++11 and later.
 *
 * Return values, of every function that returns int:
 *
 *   XSCHEDD_OK                    done; for a hint: sent to the daemon
 *   XSCHEDD_ERROR_INVALID         an argument is out of range or null; nothing was changed
 *   XSCHEDD_ERROR_NOT_CONNECTED   there is no session: no GPU work yet, no daemon, or refused by it. A hint of the
 *                                 process is remembered for the next session
 *   XSCHEDD_ERROR_INERT           this process is not scheduled, for good: XSCHEDD_DISABLE is set, it is a child of
 *                                 fork, or the private client library cannot be loaded
 *   XSCHEDD_ERROR_NO_SHIM         only with XSCHEDD_DLSYM: no shim is preloaded into this process, or an older one
 *   XSCHEDD_ERROR_TOO_LATE        xschedd_set_group after the first GPU work
 *
 * Compatibility: within one XSCHEDD_API_VERSION functions and fields are only added, fields at the end of their
 * structure.
 */
#ifndef XSCHEDD_H
#define XSCHEDD_H

#define XSCHEDD_API_VERSION 1

#define XSCHEDD_OK 0
#define XSCHEDD_ERROR_INVALID (-1)
#define XSCHEDD_ERROR_NOT_CONNECTED (-2)
#define XSCHEDD_ERROR_INERT (-3)
#define XSCHEDD_ERROR_NO_SHIM (-4)
#define XSCHEDD_ERROR_TOO_LATE (-5)

#define XSCHEDD_PRIORITY_NONE (1 << 30) /* no hint */
#define XSCHEDD_WEIGHT_NONE 0u
#define XSCHEDD_DEADLINE_NONE 0
#define XSCHEDD_ALL_DEVICES (-1)

#ifdef XSCHEDD_DLSYM
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long long xschedd_count; /* at least 64 bits; also microseconds and nanoseconds */

typedef enum xschedd_state {
  XSCHEDD_STATE_IDLE = 0,        /* no GPU work yet: nothing is loaded, nothing is connected */
  XSCHEDD_STATE_UNSCHEDULED = 1, /* no daemon at the moment: everything runs freely; it is tried again */
  XSCHEDD_STATE_SCHEDULED = 2,   /* a session with the daemon */
  XSCHEDD_STATE_INERT = 3        /* as XSCHEDD_ERROR_INERT: for good */
} xschedd_state;

typedef struct xschedd_status {
  unsigned int size;             /* set by the caller to sizeof(xschedd_status); afterwards how much of it was filled */
  int state;                     /* xschedd_state */
  xschedd_count client_id;       /* as xschedctl shows it; 0 without a session */
  int effective_priority;        /* as the daemon said when the session began; meaningful with a session */
  xschedd_count submitted;       /* work items counted while tracked, all devices */
  xschedd_count held_ns;         /* time that threads waited at gates that the daemon held, all devices */
  xschedd_count passthrough;     /* calls let through by configuration, all devices */
  int priority_hint;             /* of the process, its streams' not counted; XSCHEDD_PRIORITY_NONE: none */
  unsigned int weight_hint;      /* likewise; XSCHEDD_WEIGHT_NONE: none */
  xschedd_count deadline_us;     /* likewise; XSCHEDD_DEADLINE_NONE: none */
  xschedd_count completed;       /* of `submitted`, known to have finished */
  xschedd_count gpu_time_ns;     /* measured while tracked, all devices */
  xschedd_count own_held_ns;     /* time that threads waited because of xschedd_hold and xschedd_hold_stream */
  xschedd_count devices;         /* bit per device ordinal that this process has used */
  xschedd_count streams_held_ns; /* time that threads waited for more important streams of this process */
  int schedules_streams;         /* 1: as xschedd_schedule_streams or XSCHEDD_STREAMS said, 0: not */
} xschedd_status;

typedef struct xschedd_device_status {
  unsigned int size;      /* set by the caller to sizeof(xschedd_device_status); afterwards how much of it was filled */
  int held;               /* 1: the daemon holds this process on the device at the moment, 0: not */
  int tracked;            /* 1: what it submits there is counted, 0: not (alone on the device, or among equals) */
  unsigned int in_flight; /* launches believed unfinished, while tracked */
  unsigned int window_limit; /* launches that may be; 0: no limit */
  unsigned int window_us;    /* the same as GPU time; 0: no limit */
  xschedd_count submitted;   /* these five as in xschedd_status, of this device */
  xschedd_count completed;
  xschedd_count gpu_time_ns;
  xschedd_count held_ns;
  xschedd_count passthrough;
} xschedd_device_status;

#ifndef XSCHEDD_DLSYM
#ifdef XSCHEDD_WEAK
#define XSCHEDD_API __attribute__((weak))
#else
#define XSCHEDD_API __attribute__((visibility("default")))
#endif
/* With XSCHEDD_DLSYM this becomes the function that looks it up. */
#define XSCHEDD_FUNCTION(type, name, parameters, arguments, without) XSCHEDD_API type name parameters;
#else
#define XSCHEDD_API static __inline__ __attribute__((unused))
/* void* to a function pointer is no conversion of ISO C: hence the union. Threads may race to store the same value. */
#define XSCHEDD_FUNCTION(type, name, parameters, arguments, without) \
  XSCHEDD_API type name parameters {                                 \
    static void* found;                                              \
    union {                                                          \
      void* object;                                                  \
      type(*function) parameters;                                    \
    } symbol;                                                        \
    symbol.object = __atomic_load_n(&found, __ATOMIC_RELAXED);       \
    if (!symbol.object) {                                            \
      symbol.object = dlsym((void*)0, #name); /* RTLD_DEFAULT */     \
      __atomic_store_n(&found, symbol.object, __ATOMIC_RELAXED);     \
    }                                                                \
    return symbol.object ? symbol.function arguments : (without);    \
  }
#endif

/* ---- what is there ----------------------------------------------------------------------------------------------- */

/* Returns "0.1.0": the shim's release. Never null; "" without a shim. */
XSCHEDD_FUNCTION(const char*, xschedd_version, (void), (), "")

/* Returns the XSCHEDD_API_VERSION that the shim was built with; 0 without a shim. */
XSCHEDD_FUNCTION(int, xschedd_api_version, (void), (), 0)

/* Returns what a return value means, in words, for a message. Never null; "" without a shim. */
XSCHEDD_FUNCTION(const char*, xschedd_result_text, (int result), (result), "")

/* Fills `status`, up to its size. Returns
 *   XSCHEDD_OK               filled; `size` says how far, so that older shims and newer programs understand each
 *                            other
 *   XSCHEDD_ERROR_INVALID    null, or `size` was not set
 *   XSCHEDD_ERROR_NO_SHIM    nothing was filled */
XSCHEDD_FUNCTION(int, xschedd_get_status, (xschedd_status * status), (status), XSCHEDD_ERROR_NO_SHIM)

/* The same of one device, by the ordinal that this process knows it by. Returns
 *   XSCHEDD_OK                    filled
 *   XSCHEDD_ERROR_INVALID         null, `size` was not set, or `device` is not 0 to 63
 *   XSCHEDD_ERROR_NOT_CONNECTED   no session: nobody counts; zeros
 *   XSCHEDD_ERROR_INERT           likewise, for good; zeros
 *   XSCHEDD_ERROR_NO_SHIM         nothing was filled */
XSCHEDD_FUNCTION(int, xschedd_get_device_status, (int device, xschedd_device_status* status), (device, status),
                 XSCHEDD_ERROR_NO_SHIM)

/* ---- hints of the process: remembered for the session, and for those after it -----------------------------------
 * The daemon learns the newest. A value that is replaced before the daemon can take it is never told. Each returns
 *   XSCHEDD_OK                    the daemon is told
 *   XSCHEDD_ERROR_INVALID         out of range
 *   XSCHEDD_ERROR_NOT_CONNECTED   remembered for the next session; there is none now
 *   XSCHEDD_ERROR_INERT           this process is not scheduled
 *   XSCHEDD_ERROR_NO_SHIM         there is no shim */

/* The priority that this process asks for: -100 to 100, larger is more important. XSCHEDD_PRIORITY_NONE: the value of
 * the environment variable XSCHEDD_PRIORITY, else none. */
XSCHEDD_FUNCTION(int, xschedd_set_priority, (int priority), (priority), XSCHEDD_ERROR_NO_SHIM)

/* The share of a device that this process asks for among those of its priority: 1 to 10000, default 100; twice the
 * weight is twice the GPU time. XSCHEDD_WEIGHT_NONE: the value of XSCHEDD_WEIGHT, else none. */
XSCHEDD_FUNCTION(int, xschedd_set_weight, (unsigned int weight), (weight), XSCHEDD_ERROR_NO_SHIM)

/* How long after becoming busy on a device this process should be idle again, in microseconds: 1 to 3600000000;
 * XSCHEDD_DEADLINE_NONE: no deadline any more. Applies from now on; for what is already busy the time runs from now.
 * The daemon's policy decides what follows from it; no work is ever dropped. */
XSCHEDD_FUNCTION(int, xschedd_set_deadline, (xschedd_count us), (us), XSCHEDD_ERROR_NO_SHIM)

/* Processes of one user that name the same group are scheduled as one. At most 255 bytes; "" or null: the value of
 * XSCHEDD_GROUP. To be called before the first GPU work. Returns
 *   XSCHEDD_OK                    done
 *   XSCHEDD_ERROR_INVALID         too long
 *   XSCHEDD_ERROR_TOO_LATE        the client is already running; nothing was changed
 *   XSCHEDD_ERROR_INERT           this process is not scheduled
 *   XSCHEDD_ERROR_NO_SHIM         there is no shim */
XSCHEDD_FUNCTION(int, xschedd_set_group, (const char* group), (group), XSCHEDD_ERROR_NO_SHIM)

/* ---- hints of one stream (hipStream_t, CUstream; null: the default stream) --------------------------------------
 * Forgotten when the stream is destroyed. The streams of a process are never held apart by the daemon, so that a
 * program's events between them cannot deadlock. So the process asks for the highest priority and the highest weight
 * among its own hint and its streams'; streams without a hint do not count. A stream's deadline replaces the process's
 * while that stream is busy. Each returns
 *   XSCHEDD_OK                    done, and the daemon is told
 *   XSCHEDD_ERROR_INVALID         out of range
 *   XSCHEDD_ERROR_NOT_CONNECTED   kept if the client is already running, else ignored: create the stream first
 *   XSCHEDD_ERROR_INERT           this process is not scheduled
 *   XSCHEDD_ERROR_NO_SHIM         there is no shim */

/* -100 to 100; XSCHEDD_PRIORITY_NONE: none any more. */
XSCHEDD_FUNCTION(int, xschedd_set_stream_priority, (void* stream, int priority), (stream, priority),
                 XSCHEDD_ERROR_NO_SHIM)

/* 1 to 10000; XSCHEDD_WEIGHT_NONE: none any more. */
XSCHEDD_FUNCTION(int, xschedd_set_stream_weight, (void* stream, unsigned int weight), (stream, weight),
                 XSCHEDD_ERROR_NO_SHIM)

/* Microseconds, 1 to 3600000000; XSCHEDD_DEADLINE_NONE: none of its own any more. */
XSCHEDD_FUNCTION(int, xschedd_set_stream_deadline, (void* stream, xschedd_count us), (stream, us),
                 XSCHEDD_ERROR_NO_SHIM)

/* ---- holding one's own work -------------------------------------------------------------------------------------
 * A call that submits work to what is held waits, in the thread that makes it, until it is released; what was
 * submitted before runs on. Meanwhile the process is idle for the daemon, so others run. Synchronising, and what
 * configuration passes through, does not wait. A hold ends by itself after `max_us` microseconds, 1 to 3600000000, so
 * that a program that forgets it, or that submits from the thread that should release it, is only late; a second hold
 * of the same replaces that time. It concerns this process alone: it binds without a daemon, and xschedctl does not
 * show it. Each returns XSCHEDD_OK                    done; releasing what is not held is done, too
 *   XSCHEDD_ERROR_INVALID         `device` is not 0 to 63 nor XSCHEDD_ALL_DEVICES, or `max_us` is out of range
 *   XSCHEDD_ERROR_NOT_CONNECTED   the client is not running yet, because there was no GPU work: nothing to hold
 *   XSCHEDD_ERROR_INERT           this process is not scheduled
 *   XSCHEDD_ERROR_NO_SHIM         there is no shim */

XSCHEDD_FUNCTION(int, xschedd_hold, (int device, xschedd_count max_us), (device, max_us), XSCHEDD_ERROR_NO_SHIM)

/* XSCHEDD_ALL_DEVICES ends every hold of this process, also of single devices and streams. */
XSCHEDD_FUNCTION(int, xschedd_release, (int device), (device), XSCHEDD_ERROR_NO_SHIM)

/* One stream alone: null is the default stream, of every device. Forgotten when the stream is destroyed. */
XSCHEDD_FUNCTION(int, xschedd_hold_stream, (void* stream, xschedd_count max_us), (stream, max_us),
                 XSCHEDD_ERROR_NO_SHIM)
XSCHEDD_FUNCTION(int, xschedd_release_stream, (void* stream), (stream), XSCHEDD_ERROR_NO_SHIM)

/* ---- streams of this process against each other ------------------------------------------------------------------
 * With `on` other than 0, a call that submits work to a stream waits while a more important stream of this process has
 * work on the same device, and less important streams have little in flight. Off (0) is the default, or what
 * XSCHEDD_STREAMS says. A stream's priority is the one set by xschedd_set_stream_priority, else the negative of the one
 * that it was created with: for HIP and CUDA a smaller number is more important. Submissions to the legacy default
 * stream never wait. Each wait is bounded, and work that makes no progress keeps nobody waiting, so a program's own
 * events, values and host threads go on. Like holding, it concerns this process alone. Returns XSCHEDD_OK done; before
 * the first GPU work: remembered XSCHEDD_ERROR_INERT           this process is not scheduled XSCHEDD_ERROR_NO_SHIM
 * there is no shim */
XSCHEDD_FUNCTION(int, xschedd_schedule_streams, (int on), (on), XSCHEDD_ERROR_NO_SHIM)

#undef XSCHEDD_FUNCTION
#ifdef __cplusplus
}
#endif
#endif
