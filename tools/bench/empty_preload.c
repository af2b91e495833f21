// An empty library to preload: bench subtracts the loader's cost of any preload. A translation unit must declare
// something.
extern int xschedd_bench_nothing;
