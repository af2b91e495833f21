// A client process for tests that kill one: attaches to a device, reports busy, and waits to be killed.
//   fake_client RUNTIME_DIR HINT PCI_ADDRESS
// Prints "ready" when the daemon has listed it, then waits without limit.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/integration/daemon/fake_shim.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  xschedd::test::FakeShim shim(argv[1], std::atoi(argv[2]));
  shim.Attach(0, argv[3]);
  while (!shim.IsTracked(0))
    ::usleep(1000);
  shim.Report(0, true);
  std::printf("ready\n");
  std::fflush(stdout);
  for (;;)
    ::pause();
}
