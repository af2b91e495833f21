/* Names only, for the linker: a libpthread.so.0 with the functions that libxschedd-client.so uses, under the versions
 * that they have had since long before glibc 2.34 moved them into libc.so.6. Linked before the real libc, it makes the
 * library ask for these versions, which every glibc has: before 2.34 in libpthread.so.0, after it in libc.so.6 (where
 * libpthread.so.0 is still there, empty). Never loaded. moved.map gives the versions. */
.macro function names:vararg
  .irp name, \names
    .globl \name
    .type \name, @function
    \name:
  .endr
.endm
.text
function pthread_attr_getstacksize, pthread_attr_setstacksize, pthread_cond_clockwait, pthread_create, pthread_detach
function pthread_getspecific, pthread_join, pthread_key_create, pthread_once, pthread_rwlock_rdlock
function pthread_rwlock_unlock, pthread_rwlock_wrlock, pthread_setname_np, pthread_setspecific, pthread_sigmask
function __pthread_key_create
  nop
.section .note.GNU-stack, "", @progbits
