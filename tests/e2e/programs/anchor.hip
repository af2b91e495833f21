// anchor [DEVICE]
// A client that attaches to the device with one launch and then obeys commands on standard input, one per line:
//   work N MICROS   launches N kernels and waits for them, then prints "done"
//   start MICROS [AHEAD]
//                   keeps the device busy until the next line, with AHEAD launches queued, by default 2; a host that
//                   gets no core for a shorter time than these take leaves no gap
//   stop            ends a start, and waits for its launches
// and ends at the end of input; after a start it ends with work in flight. It prints "ready" once it has attached.
// Its first launch takes $ANCHOR_FIRST_US, by default 1.
#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

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
  std::vector<hipEvent_t> events;
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
      std::size_t ahead = 2;
      words >> ahead;
      while (events.size() < ahead)
        E2E_CHECK(hipEventCreate(&events.emplace_back()));
      // An event that was not recorded since the last synchronisation is not waited for.
      for (std::size_t turn = 0; !InputWaits(); turn = (turn + 1) % ahead) {
        E2E_CHECK(hipEventSynchronize(events[turn]));
        work(1, micros);
        E2E_CHECK(hipEventRecord(events[turn], nullptr));
      }
      is_started = true;
    } else if (verb != "stop") {
      std::cerr << "not understood: " << line << std::endl;
      return 2;
    }
  }
}
