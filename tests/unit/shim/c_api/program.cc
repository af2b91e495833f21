// The header in C++.
#include "program.c"
