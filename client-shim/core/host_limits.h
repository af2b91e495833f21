/* What host_limits.c asks of the library. Thread rule: any thread of the library's own. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* A thread of ours cannot go on: scheduling ends for this process. */
void xschedd_library_failed(void);

#ifdef __cplusplus
}
#endif
