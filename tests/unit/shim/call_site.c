// A library with a place that calls could come from. Built twice under two names of one length, so that the second can
// be loaded where the first was, record for record.
int call_site(void);
int call_site(void) {
  return 1;
}
