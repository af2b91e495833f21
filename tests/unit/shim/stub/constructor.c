/* A library whose constructor does what the program says: with the loader's lock held, as constructors run. */
#include <dlfcn.h>

__attribute__((constructor)) static void constructor(void) {
  void (*const work)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "work_of_the_constructor");
  if (work) work();
}
