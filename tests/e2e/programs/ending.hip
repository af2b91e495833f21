// ending
// A client whose threads start and end as commanded on standard input, one command per line; it answers each with a
// line:
//   start deferred|asynchronous LAUNCHES MICROS   a thread with that kind of cancellation makes its launches on the
//                                                 default stream and waits to be cancelled: "started"
//   cancel                    cancels it: "cancelled"
//   join                      waits for its end: "ended LAUNCHES", how many of its launches it made
//   short THREADS             that many threads, each of which makes one launch on its own default stream and ends:
// "done"
//   wait                      hipDeviceSynchronize: "done"
// and ends at the end of input, with the verdict of program.h. It prints "ready" once it has attached.
//   ending bound     everything in a thread that is bound to one processor, with SCHED_FIFO if that is allowed
//   ending leaving   its last exit handler makes a second device current, prints "leaving" and waits for SIGUSR1
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "program.h"

namespace {

struct Task {
  bool asynchronous = false;
  unsigned launches = 0;
  std::uint64_t micros = 0;
};

e2e::Value *g_x, *g_y;
std::vector<e2e::Value> g_wanted(e2e::kCount, 5);
unsigned g_made = 0;
Task g_task;
std::atomic<unsigned> g_done{0};  // of the thread's launches

void Launch(hipStream_t stream, unsigned number, std::uint64_t micros) {
  scale_add<<<2, 128, 0, stream>>>(g_y, g_x, number, e2e::kCount, micros);
}

void Expect(unsigned launches, unsigned first) {
  const std::vector<e2e::Value> x = e2e::InitialX();
  for (unsigned launch = 0; launch < launches; ++launch) {
    for (std::uint32_t i = 0; i < e2e::kCount; ++i) g_wanted[i] = e2e::Step(g_wanted[i], x[i], first + launch);
  }
  g_made += launches;
}

void* Work(void*) {
  // Asynchronous cancellation is only for code that holds no resources; here only the launch holds any.
  if (g_task.asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  const unsigned first = g_made;
  for (unsigned launch = 0; launch < g_task.launches; ++launch) {
    Launch(nullptr, first + launch, g_task.micros);
    g_done.fetch_add(1);
  }
  for (;;) pause();
}

void Leaving() {
  E2E_CHECK(hipSetDevice(1));
  std::puts("leaving");
  std::fflush(stdout);
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGUSR1);
  int signal = 0;
  sigwait(&told, &signal);
}

int Main() {
  const std::vector<e2e::Value> x = e2e::InitialX();
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&g_x), e2e::kBytes));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&g_y), e2e::kBytes));
  E2E_CHECK(hipMemcpy(g_x, x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(g_y, g_wanted.data(), e2e::kBytes, hipMemcpyHostToDevice));
  Launch(nullptr, 0, 1);
  Expect(1, 0);
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "ready" << std::endl;
  pthread_t thread{};
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb, type;
    unsigned threads = 0;
    words >> verb;
    if (verb == "start" && words >> type >> g_task.launches >> g_task.micros) {
      g_task.asynchronous = type == "asynchronous";
      g_done = 0;
      if (pthread_create(&thread, nullptr, Work, nullptr) != 0) return 2;
      std::cout << "started" << std::endl;
    } else if (verb == "cancel") {
      if (pthread_cancel(thread) != 0) return 2;
      std::cout << "cancelled" << std::endl;
    } else if (verb == "join") {
      void* result = nullptr;
      if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED) return 2;
      // Asynchronous cancellation may come between a launch and its count.
      unsigned done = g_done;
      if (g_task.asynchronous && done < g_task.launches) ++done;
      Expect(done, g_made);
      std::cout << "ended " << done << std::endl;
    } else if (verb == "short" && words >> threads) {
      for (unsigned t = 0; t < threads; ++t) {
        std::thread([] {
          Launch(hipStreamPerThread, g_made, 1);
          E2E_CHECK(hipGetLastError());
          E2E_CHECK(hipStreamSynchronize(hipStreamPerThread));
        }).join();
        Expect(1, g_made);
      }
      std::cout << "done" << std::endl;
    } else if (verb == "wait") {
      E2E_CHECK(hipDeviceSynchronize());
      std::cout << "done" << std::endl;
    } else {
      std::cerr << "not understood: " << line << std::endl;
      return 2;
    }
  }
  std::vector<e2e::Value> got(e2e::kCount);
  E2E_CHECK(hipMemcpy(got.data(), g_y, e2e::kBytes, hipMemcpyDeviceToHost));
  return e2e::Verdict(got, g_wanted, g_made, g_made + 3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  // Registered before the GPU's runtime, so it runs last.
  if (how == "leaving") {
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &told, nullptr);
    std::atexit(Leaving);
  }
  if (how != "bound") return Main();
  int status = 0;
  std::thread([&status] {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) std::_Exit(3);
    CPU_ZERO(&one);
    for (int processor = 0; CPU_COUNT(&one) == 0; ++processor)
      if (CPU_ISSET(processor, &all)) CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::_Exit(3);
    sched_param parameter{};
    parameter.sched_priority = 1;
    (void)sched_setscheduler(0, SCHED_FIFO, &parameter);  // not allowed everywhere
    status = Main();
  }).join();
  return status;  // HIP 6.4 crashes if another thread calls exit
}
