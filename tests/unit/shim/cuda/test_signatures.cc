// What was compared at compile time (make_signatures.py) was most of the list, and not nothing.
#include "tests/catch.h"

extern const int kCompared;

TEST_CASE("the signatures of the installed CUDA headers are those of the list", "[signatures]") {
  CHECK(kCompared >= 170);
}
