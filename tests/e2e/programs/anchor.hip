// anchor [DEVICE]
// A client that attaches to the device with one launch and then obeys commands on standard input, one per line:
//   work N MICROS   launches N kernels and waits for them, then prints "done"
//   start MICROS    keeps the device busy until the next line
//   stop            ends a start, and waits for its launches
// and ends at the end of input; after a start it ends with work in flight. It prints "ready" once it has attached.
// Its first launch takes $ANCHOR_FIRST_US, by default 1.
#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <string>

#include "program.h"

namespace {

bool InputWaits() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return std::cin.rdbuf()->in_avail() > 0 || poll(&input, 1, 0) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) E2E_CHECK(hipSetDevice(std::atoi(argv[1])));
  e2e::Value* buffer;
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&buffer), e2e::kBytes));
  const auto work = [&](unsigned launches, std::uint64_t micros) {
    for (unsigned launch = 0; launch < launches; ++launch) {
      scale_add<<<2, 128>>>(buffer, buffer, launch, e2e::kCount, micros);
    }
  };
  const char* first = std::getenv("ANCHOR_FIRST_US");
  work(1, first != nullptr ? std::strtoull(first, nullptr, 10) : 1);
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "ready" << std::endl;
  std::string line;
  bool is_started = false;
  while (std::getline(std::cin, line)) {
    if (is_started) E2E_CHECK(hipDeviceSynchronize());
    is_started = false;
    std::istringstream words(line);
    std::string verb;
    unsigned launches = 0;
    std::uint64_t micros = 0;
    words >> verb;
    if (verb == "work" && words >> launches >> micros) {
      work(launches, micros);
      E2E_CHECK(hipDeviceSynchronize());
      std::cout << "done" << std::endl;
    } else if (verb == "start" && words >> micros) {
      // Always two launches ahead, so that the client never becomes idle between them.
      hipEvent_t events[2];
      for (hipEvent_t& event : events) E2E_CHECK(hipEventCreate(&event));
      unsigned turn = 0;
      work(1, micros);
      E2E_CHECK(hipEventRecord(events[0], nullptr));
      while (!InputWaits()) {
        turn ^= 1u;
        work(1, micros);
        E2E_CHECK(hipEventRecord(events[turn], nullptr));
        E2E_CHECK(hipEventSynchronize(events[turn ^ 1u]));
      }
      is_started = true;
    } else if (verb != "stop") {
      std::cerr << "not understood: " << line << std::endl;
      return 2;
    }
  }
}
