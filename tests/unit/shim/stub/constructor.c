/* A library whose constructor calls back into the program, with the loader's lock held, as in every constructor. */
#include <dlfcn.h>

__attribute__((constructor)) static void constructor(void) {
  void (*const work)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "work_of_the_constructor");
  if (work) work();
}
