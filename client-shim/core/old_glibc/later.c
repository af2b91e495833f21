/* What the static libraries inside libxschedd-client.so take from glibc versions after 2.31, which containers of ROCm
 * still have: here in their place, hidden, so that the library asks the host for nothing newer. check_objects.py holds
 * the limit. (Functions that only moved between libc.so.6 and libpthread.so.0 are in moved.S.)
 * Thread rule: any thread. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.32. Never true: the host's own variable is not ours to know, and atomic operations are always right. */
char __libc_single_threaded = 0; /* NOLINT(bugprone-reserved-identifier) */

/* glibc 2.33; before, they were inline functions around __xstat. The kernel's structure is the C library's. Named by
 * hand, because the header gives `stat` the name stat64 where files may be large. */
int xschedd_stat(const char* path, void* out) __asm__("stat");
int xschedd_stat(const char* path, void* out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
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
