/* Runs a program and reads what it prints, for a limited time. Thread rule: any thread; the child of fork makes only
 * calls that are safe after a fork in a program with threads. */
#ifndef XSCHEDD_SLURM_CHILD_H
#define XSCHEDD_SLURM_CHILD_H

#include <stddef.h>

/* Runs arguments[0], an absolute path, with this environment and nothing else of the caller's: no descriptors, signal
 * mask or handlers; it ignores SIGTERM. Both of its streams go to `text` (of `size` bytes, always terminated; the rest
 * is dropped). After `limit_ms` the program and what it started are killed. Returns 0 if it ended in time; its exit
 * status is then in *status. Otherwise errno's number, ETIMEDOUT for the time limit. */
__attribute__((visibility("hidden"))) int child_run(char* const arguments[], char* const environment[], int limit_ms,
                                                    char* text, size_t size, int* status);

#endif
