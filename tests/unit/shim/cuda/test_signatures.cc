// Most of the list is compared at compile time (make_signatures.py).
#include "tests/catch.h"

extern const int kCompared;

TEST_CASE("the signatures of the installed CUDA headers are those of the list", "[signatures]") {
  CHECK(kCompared >= 170);
}
