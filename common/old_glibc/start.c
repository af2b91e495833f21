/* Starts a portable program on a C library before 2.34. There, __libc_start_main runs the program's constructors only
 * through a function that the program passes. Since 2.34 it finds them itself, and the crt1.o of such a machine passes
 * none. So crt1.o's call is redirected to here (--wrap), which calls the older version of the function, which every
 * glibc has (moved.S), with ours. Thread rule: before main. */
#include <stddef.h>

/* The names are the C library's and the linker's. NOLINTBEGIN(bugprone-reserved-identifier) */
typedef void Array(int, char**, char**);
typedef int Main(int, char**, char**);

int __real___libc_start_main(Main* main, int argc, char** argv, Array* init, void (*fini)(void),
                             void (*rtld_fini)(void), void* stack_end);
int __wrap___libc_start_main(Main* main, int argc, char** argv, Array* init, void (*fini)(void),
                             void (*rtld_fini)(void), void* stack_end);

extern void _init(void);
extern Array* __init_array_start[] __attribute__((visibility("hidden")));
extern Array* __init_array_end[] __attribute__((visibility("hidden")));

static void construct(int argc, char** argv, char** environment) {
  _init();
  for (Array** one = __init_array_start; one != __init_array_end; ++one)
    (*one)(argc, argv, environment);
}

int __wrap___libc_start_main(Main* main, int argc, char** argv, Array* init, void (*fini)(void),
                             void (*rtld_fini)(void), void* stack_end) {
  (void)init;
  return __real___libc_start_main(main, argc, argv, construct, fini, rtld_fini, stack_end);
}
/* NOLINTEND(bugprone-reserved-identifier) */
