// A preloaded object with nothing in it: bench subtracts what the loader takes for any preload. A translation unit must
// declare something.
extern int xschedd_bench_nothing;
