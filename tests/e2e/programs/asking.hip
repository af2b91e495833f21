// asking [GROUP]
// A client that makes two streams, attaches with one launch on the first, and then calls xschedd's C API as commanded
// on standard input, one command per line; it answers each with a line "WORD RESULT ...", and ends at the end of input:
//   priority N | weight N | deadline US                        of the process
//   stream-priority S N | stream-weight S N | stream-deadline S US     of stream 0 or 1
//   destroy S                                                  destroys stream S and makes another in its place
//   hold DEVICE US | release DEVICE | hold-stream S US | release-stream S
//   launch S MICROS          one launch on a stream, from another thread; answers at once
//   launched S               how many of these calls have returned
//   status                   state, priority hint, weight hint, deadline, submitted, completed, own held ns, devices
//   device N                 result, held, tracked, submitted
//   wait                     hipDeviceSynchronize, after the held launches have been made
// With GROUP, xschedd_set_group is called first, and once more after the launch; both results are in the first line.
#define XSCHEDD_DLSYM
#include "client-shim/include/xschedd.h"

#include <atomic>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "program.h"

namespace {

std::atomic<int> g_launched[2];
std::vector<std::thread> g_threads;
hipStream_t g_stream[2];
e2e::Value* g_buffer;

int Answer(const std::string& verb, long long one, long long two) {
  const int s = one == 1 ? 1 : 0;
  const auto us = static_cast<xschedd_count>(two);
  if (verb == "priority") return xschedd_set_priority(static_cast<int>(one));
  if (verb == "weight") return xschedd_set_weight(static_cast<unsigned>(one));
  if (verb == "deadline") return xschedd_set_deadline(static_cast<xschedd_count>(one));
  if (verb == "stream-priority") return xschedd_set_stream_priority(g_stream[s], static_cast<int>(two));
  if (verb == "stream-weight") return xschedd_set_stream_weight(g_stream[s], static_cast<unsigned>(two));
  if (verb == "stream-deadline") return xschedd_set_stream_deadline(g_stream[s], us);
  if (verb == "hold") return xschedd_hold(static_cast<int>(one), us);
  if (verb == "release") return xschedd_release(static_cast<int>(one));
  if (verb == "hold-stream") return xschedd_hold_stream(g_stream[s], us);
  if (verb == "release-stream") return xschedd_release_stream(g_stream[s]);
  if (verb == "destroy") {
    E2E_CHECK(hipStreamDestroy(g_stream[s]));
    E2E_CHECK(hipStreamCreateWithFlags(&g_stream[s], hipStreamNonBlocking));
    return 0;
  }
  if (verb == "launch") {
    g_threads.emplace_back([s, two] {
      scale_add<<<2, 128, 0, g_stream[s]>>>(g_buffer, g_buffer, 1, e2e::kCount, static_cast<std::uint64_t>(two));
      E2E_CHECK(hipGetLastError());
      ++g_launched[s];
    });
    return 0;
  }
  if (verb == "launched") return g_launched[s];
  if (verb == "wait") {
    for (std::thread& thread : g_threads) thread.join();
    g_threads.clear();
    E2E_CHECK(hipDeviceSynchronize());
    return 0;
  }
  return -100;
}

std::string More(const std::string& verb, long long one) {
  std::ostringstream text;
  if (verb == "status") {
    xschedd_status status;
    status.size = sizeof status;
    text << ' ' << xschedd_get_status(&status) << ' ' << status.state << ' ' << status.priority_hint << ' '
         << status.weight_hint << ' ' << status.deadline_us << ' ' << status.submitted << ' ' << status.completed << ' '
         << status.own_held_ns << ' ' << status.devices;
  } else if (verb == "device") {
    xschedd_device_status status;
    status.size = sizeof status;
    text << ' ' << xschedd_get_device_status(static_cast<int>(one), &status) << ' ' << status.held << ' '
         << status.tracked << ' ' << status.submitted;
  }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  const int before = argc > 1 ? xschedd_set_group(argv[1]) : 0;
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&g_buffer), e2e::kBytes));
  for (hipStream_t& stream : g_stream) E2E_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  scale_add<<<2, 128, 0, g_stream[0]>>>(g_buffer, g_buffer, 1, e2e::kCount, 1);
  E2E_CHECK(hipGetLastError());
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "ready " << before << ' ' << (argc > 1 ? xschedd_set_group(argv[1]) : 0) << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    long long one = 0, two = 0;
    words >> verb;
    words >> one;
    words >> two;
    const std::string more = More(verb, one);
    std::cout << verb << (more.empty() ? ' ' + std::to_string(Answer(verb, one, two)) : more) << std::endl;
  }
  for (std::thread& thread : g_threads) thread.join();
}
