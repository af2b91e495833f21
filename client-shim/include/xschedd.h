/* The public C API of xschedd's client shim. Optional: a program that never calls it is scheduled all the same.
 *
 * Each function is exported by the preloaded libxschedd-shim.so. A program that must also run without it declares them
 * weak (define XSCHEDD_WEAK before including this) and checks for null, or looks them up by dlsym.
 * Every function may be called from any thread, returns at once, never aborts, and leaves errno alone.
 */
#ifndef XSCHEDD_H
#define XSCHEDD_H

#ifdef __cplusplus
extern "C" {
#endif

#ifdef XSCHEDD_WEAK
#define XSCHEDD_API __attribute__((weak))
#else
#define XSCHEDD_API __attribute__((visibility("default")))
#endif

#define XSCHEDD_OK 0
#define XSCHEDD_ERROR_INVALID (-1)       /* an argument is out of range or null */
#define XSCHEDD_ERROR_NOT_CONNECTED (-2) /* there is no session: no GPU work yet, no daemon, or refused by it */
#define XSCHEDD_ERROR_INERT (-3)         /* disabled, a child of fork, or the client library cannot be loaded */

typedef enum xschedd_state {
  XSCHEDD_STATE_IDLE = 0,        /* no GPU work yet: nothing is loaded, nothing is connected */
  XSCHEDD_STATE_UNSCHEDULED = 1, /* no daemon at the moment: everything runs freely; it is tried again */
  XSCHEDD_STATE_SCHEDULED = 2,   /* a session with the daemon */
  XSCHEDD_STATE_INERT = 3        /* disabled, a child of fork, or the client library cannot be loaded: for good */
} xschedd_state;

typedef struct xschedd_status {
  unsigned int size;              /* set by the caller to sizeof(xschedd_status) */
  int state;                      /* xschedd_state */
  unsigned long long client_id;   /* as xschedctl shows it; 0 without a session */
  int effective_priority;         /* as the daemon last said; meaningful with a session */
  unsigned long long submitted;   /* work items counted while tracked, all devices */
  unsigned long long held_ns;     /* time that threads waited at gates, all devices */
  unsigned long long passthrough; /* calls let through by configuration, all devices */
} xschedd_status;

/* "0.1.0". Never null. */
XSCHEDD_API const char* xschedd_version(void);

/* Tells the daemon what priority this process would like: -100 to 100, larger is more important. An administrator's
 * setting goes before it and the user's ceiling limits it. Before the first GPU work it is remembered for the session.
 * XSCHEDD_OK: taken; XSCHEDD_ERROR_INVALID: out of range; XSCHEDD_ERROR_NOT_CONNECTED: remembered for the next session,
 * there is none now; XSCHEDD_ERROR_INERT: this process is not scheduled. */
XSCHEDD_API int xschedd_set_priority(int priority);

/* Tells the daemon what share of a device this process would like among those of its priority: 1 to 10000, 100 if
 * nothing is said; twice the weight is twice the GPU time. An administrator's setting goes before it. Before the first
 * GPU work it is remembered for the session. Returns as xschedd_set_priority. */
XSCHEDD_API int xschedd_set_weight(unsigned weight);

/* How long after becoming busy on a device this process would like to be done there, in microseconds: 1 to 3600000000;
 * 0: no deadline any more. Holds from now on, also for what is busy already, whose time then runs from now. The
 * daemon's policy decides what it makes of it; nothing is ever dropped. Before the first GPU work it is remembered.
 * XSCHEDD_OK: taken; XSCHEDD_ERROR_INVALID: out of range; XSCHEDD_ERROR_NOT_CONNECTED: remembered for the next session,
 * there is none now; XSCHEDD_ERROR_INERT: this process is not scheduled. */
XSCHEDD_API int xschedd_set_deadline(unsigned long long us);

/* The same for one stream (hipStream_t; null: the default stream), which then goes before that of the process; 0: none
 * of its own any more. It is forgotten when the stream is destroyed. XSCHEDD_OK: taken; XSCHEDD_ERROR_INVALID: out of
 * range; XSCHEDD_ERROR_NOT_CONNECTED: taken if the client runs already, else forgotten: make the stream first;
 * XSCHEDD_ERROR_INERT: this process is not scheduled. */
XSCHEDD_API int xschedd_set_stream_deadline(void* stream, unsigned long long us);

/* Fills `status`. XSCHEDD_OK, or XSCHEDD_ERROR_INVALID if it is null or its size is unknown. */
XSCHEDD_API int xschedd_get_status(xschedd_status* status);

#ifdef __cplusplus
}
#endif
#endif
