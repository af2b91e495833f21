/* Linked statically, so that no loader runs and nothing is preloaded. */
#include <stdio.h>
int main(void) {
  puts("static");
  return 3;
}
