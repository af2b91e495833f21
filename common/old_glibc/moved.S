/* Names only, for the linker: functions of libpthread, libdl, libm and libc that libxschedd-client.so and the portable
 * programs use, with the versions that they had before glibc 2.34 moved some into libc.so.6 and gave others new versions.
 * Linked before the real libc, as libpthread.so.0 and (where used) libdl.so.2, it makes the object need these versions,
 * which every glibc has. (Since 2.34 both libraries still exist, empty.) The loader searches all libraries for a version,
 * whichever it was linked from. Never loaded. moved.map gives the versions. */
.macro function names:vararg
  .irp name, \names
    .globl \name
    .type \name, @function
    \name:
  .endr
.endm
.text
function pthread_condattr_setclock, pthread_attr_getstacksize, pthread_attr_setstacksize, pthread_create, pthread_detach
function pthread_getspecific, pthread_join, pthread_key_create, pthread_once, pthread_rwlock_rdlock
function pthread_rwlock_unlock, pthread_rwlock_wrlock, pthread_setname_np, pthread_setspecific, pthread_sigmask
function __pthread_key_create, dlerror, dlopen, dlsym, log, log2, pow, __libc_start_main
  nop
.section .note.GNU-stack, "", @progbits
