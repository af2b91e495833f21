/* Functions that glibc got after 2.28 (RHEL 8), for the static libraries inside libxschedd-client.so and for the
 * portable programs (tools/dist): defined here, hidden, so that the host needs nothing newer. tools/dist/needs.py
 * checks that. (Functions that only moved into libc.so.6, or got another version, are in moved.S.) Thread rule: any
 * thread. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.32. Never true: the host's own variable is out of reach, and atomic operations are always right. */
char __libc_single_threaded = 0; /* NOLINT(bugprone-reserved-identifier) */

/* glibc 2.33; before that, inline functions around __xstat. The kernel's structure is the C library's. The assembler
 * names are explicit, because the header renames `stat` to stat64 where files may be large. */
int xschedd_stat(const char* path, void* out) __asm__("stat");
int xschedd_stat(const char* path, void* out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}
int xschedd_stat64(const char* path, void* out) __asm__("stat64");
int xschedd_stat64(const char* path, void* out) {
  return xschedd_stat(path, out);
}
int xschedd_lstat(const char* path, void* out) __asm__("lstat");
int xschedd_lstat(const char* path, void* out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
int xschedd_lstat64(const char* path, void* out) __asm__("lstat64");
int xschedd_lstat64(const char* path, void* out) {
  return xschedd_lstat(path, out);
}
int xschedd_fstat64(int fd, void* out) __asm__("fstat64");
int xschedd_fstat64(int fd, void* out) {
  return (int)syscall(SYS_fstat, fd, out);
}

/* glibc 2.36; libstdc++'s random_device. */
uint32_t arc4random(void) {
  uint32_t value = 0;
  /* Fails only where the kernel has no getrandom, which is older than anything here. */
  (void)!getentropy(&value, sizeof value);
  return value;
}

/* glibc 2.30; std::condition_variable. Before that, a condition used only the clock that it was made with, which with
 * libstdc++ is the wall clock. That may be set back meanwhile, so this waits for at most a second; a caller that wants
 * to wait longer is woken early, as POSIX allows. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  enum { kSecond = 1000000000 };
  struct timespec now;
  struct timespec wall;
  clock_gettime(clock, &now);
  const int64_t left = (int64_t)(until->tv_sec - now.tv_sec) * kSecond + (until->tv_nsec - now.tv_nsec);
  const int64_t slice = left < 0 ? 0 : left < kSecond ? left : kSecond;
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t end = wall.tv_nsec + slice;
  const struct timespec wake = {.tv_sec = wall.tv_sec + end / kSecond, .tv_nsec = end % kSecond};
  const int status = pthread_cond_timedwait(condition, mutex, &wake);
  return status == ETIMEDOUT && slice < left ? 0 : status;
}

/* glibc 2.35; libgcc's unwinder, for exceptions thrown and caught inside the library. */
static int find(struct dl_phdr_info* info, size_t size, void* data) {
  struct dl_find_object* wanted = data;
  const uintptr_t pc = (uintptr_t)wanted->dlfo_map_start;
  const ElfW(Phdr)* frames = NULL;
  const ElfW(Phdr)* segment = NULL;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_LOAD && pc >= start && pc - start < header->p_memsz) segment = header;
    if (header->p_type == PT_GNU_EH_FRAME) frames = header;
  }
  if (segment == NULL || frames == NULL) return 0;
  wanted->dlfo_map_start = (void*)(info->dlpi_addr + segment->p_vaddr);
  wanted->dlfo_map_end = (char*)wanted->dlfo_map_start + segment->p_memsz;
  wanted->dlfo_eh_frame = (void*)(info->dlpi_addr + frames->p_vaddr);
  return 1;
}
int _dl_find_object(void* pc, struct dl_find_object* out) { /* NOLINT(bugprone-reserved-identifier) */
  *out = (struct dl_find_object){.dlfo_map_start = pc};
  return dl_iterate_phdr(find, out) != 0 ? 0 : -1;
}
