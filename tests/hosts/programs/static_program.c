/* Linked statically: the loader is not there, and so no preload. */
#include <stdio.h>
int main(void) {
  puts("static");
  return 3;
}
