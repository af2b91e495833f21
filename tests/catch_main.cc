// main() of the unit tests where Catch2 2.x (header-only) is installed.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
