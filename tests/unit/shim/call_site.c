// A library with an address that calls could come from. Built twice under two names of one length, so that the second
// can be loaded at the address of the first, with its loader's records at the same places, too.
int call_site(void);
int call_site(void) {
  return 1;
}
