// tenant KIND DIARY [SABOTAGE]: a client that launches, copies and compares until it is told to end, and writes a diary.
//
// KIND   steady   short kernels and copies with hardly a pause, on a stream and on the default stream, like a
//                 background job
//        bursty   a few kernels at once, then a pause of random length, like a server of requests
//        always   always has work on device 1: less important clients there are held, except for the guard's turns
//        beside   steady, on device 1
// Standard input, a line each: `fork MS` (a child that keeps everything open for MS milliseconds, from a thread that does
// not launch, so also while the launching one is held), `exec` (a child that executes another program), `quit`. The end of
// input is `quit`. Last line "right: N rounds" and exit code 0, or what was wrong and exit code 1.
// SABOTAGE, for the harness's own test: `wrong` compares with something else, `held` sleeps in a call, `crash` aborts.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "diary.h"
#include "tests/e2e/programs/program.h"

namespace {

using e2e::kBytes;
using e2e::kCount;
using e2e::Value;
using fault::Call;

std::atomic<bool> ends{false};

class Work {
 public:
  explicit Work(const char* diary) : diary_(diary), x_(e2e::InitialX()), wanted_(kCount, 7) {}

  // Reports to the harness with the next call of HIP.
  void Begin(int device, const std::string& sabotage) {
    sabotage_ = sabotage;
    E2E_CHECK(hipSetDevice(device));
    E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_x_), kBytes));
    E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_y_), kBytes));
    E2E_CHECK(hipHostMalloc(reinterpret_cast<void**>(&host_), 2 * kBytes));
    E2E_CHECK(hipStreamCreate(&stream_));
    for (hipEvent_t& event : events_) E2E_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    E2E_CHECK(hipMemcpy(device_x_, x_.data(), kBytes, hipMemcpyHostToDevice));
    E2E_CHECK(hipMemcpy(device_y_, wanted_.data(), kBytes, hipMemcpyHostToDevice));
    E2E_CHECK(hipDeviceSynchronize());
    std::puts("ready");
    std::fflush(stdout);
  }

  fault::Diary& Diary() { return diary_; }

  // One round: `launches` kernels, a copy back, a comparison.
  void Round(unsigned launches, std::uint64_t micros, hipStream_t stream) {
    diary_.BeginBusy();
    for (unsigned i = 0; i < launches; ++i) Launch(micros, stream);
    if (stream == nullptr) {
      // So that the copy, which may be held, does not also wait for the device.
      E2E_CHECK(diary_.Timed(Call::kSynchronize, [&] { return hipStreamSynchronize(stream); }));
      E2E_CHECK(diary_.Timed(Call::kCopy, [&] { return hipMemcpy(host_, device_y_, kBytes, hipMemcpyDeviceToHost); }));
    } else {
      E2E_CHECK(diary_.Timed(Call::kCopy, [&] {
        return hipMemcpyAsync(host_, device_y_, kBytes, hipMemcpyDeviceToHost, stream);
      }));
      E2E_CHECK(diary_.Timed(Call::kSynchronize, [&] { return hipStreamSynchronize(stream); }));
    }
    diary_.EndBusy();
    Compare(host_, wanted_);
  }

  // Never idle: a kernel and a copy are in flight while the results of the ones before are checked.
  void Always(std::uint64_t micros) {
    std::vector<Value> wanted[2] = {wanted_, wanted_};
    diary_.BeginBusy();
    for (unsigned turn = 0; !ends; turn ^= 1u) {
      Launch(micros, stream_);
      wanted[turn] = wanted_;
      E2E_CHECK(diary_.Timed(Call::kCopy, [&] {
        return hipMemcpyAsync(host_ + turn * kCount, device_y_, kBytes, hipMemcpyDeviceToHost, stream_);
      }));
      E2E_CHECK(hipEventRecord(events_[turn], stream_));
      const unsigned last = turn ^ 1u;
      if (is_under_way_) {
        E2E_CHECK(diary_.Timed(Call::kEvent, [&] { return hipEventSynchronize(events_[last]); }));
        Compare(host_ + last * kCount, wanted[last]);
      }
      is_under_way_ = true;
    }
    E2E_CHECK(hipDeviceSynchronize());
    diary_.EndBusy();
  }

 private:
  void Launch(std::uint64_t micros, hipStream_t stream) {
    const Value step = step_++;
    E2E_CHECK(diary_.Timed(Call::kLaunch, [&] {
      if (sabotage_ == "held" && step % 400 == 399) usleep(700'000);
      scale_add<<<2, 128, 0, stream>>>(device_y_, device_x_, step, kCount, micros);
      return hipGetLastError();
    }));
    for (std::uint32_t i = 0; i < kCount; ++i) wanted_[i] = e2e::Step(wanted_[i], x_[i], step);
    if (sabotage_ == "wrong" && step % 100 == 99) wanted_[0] ^= 1u;
    if (sabotage_ == "crash" && step % 400 == 399) std::abort();
  }

  void Compare(const Value* got, const std::vector<Value>& wanted) {
    diary_.Get().rounds += 1;
    if (std::memcmp(got, wanted.data(), kBytes) == 0) return;
    diary_.Get().wrong += 1;
    std::fprintf(stderr, "wrong: value 0 is %u, should be %u, after %u launches\n", got[0], wanted[0], step_);
    std::_Exit(1);
  }

  fault::Diary diary_;
  std::vector<Value> x_, wanted_;
  Value *device_x_ = nullptr, *device_y_ = nullptr, *host_ = nullptr;
  hipStream_t stream_ = nullptr;
  hipEvent_t events_[2] = {};
  Value step_ = 0;
  bool is_under_way_ = false;
  std::string sabotage_;

 public:
  hipStream_t Stream() const { return stream_; }
};

void Child(const std::string& verb, unsigned ms) {
  const pid_t child = fork();
  if (child == 0) {
    if (verb == "exec") {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    usleep(ms * 1000);
    _exit(0);
  }
  if (child > 0) std::thread([child] { waitpid(child, nullptr, 0); }).detach();
}

void Listen() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    unsigned ms = 0;
    words >> verb >> ms;
    if (verb == "fork" || verb == "exec") Child(verb, ms);
    if (verb == "quit") break;
  }
  ends = true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tenant steady|bursty|always|beside DIARY [wrong|held|crash]\n");
    return 2;
  }
  const std::string kind = argv[1];
  Work work(argv[2]);
  work.Begin(kind == "always" || kind == "beside" ? 1 : 0, argc > 3 ? argv[3] : "");
  std::thread(Listen).detach();
  std::mt19937 random(static_cast<unsigned>(getpid()));
  const auto pause = [&random](unsigned least_us, unsigned most_us) {
    usleep(std::uniform_int_distribution<unsigned>(least_us, most_us)(random));
  };
  if (kind == "always") work.Always(3000);
  for (unsigned round = 0; !ends; ++round) {
    if (kind == "bursty") {
      work.Round(6, 1000, work.Stream());
      pause(10'000, 60'000);
    } else {
      work.Round(4, 500, round % 4 == 0 ? nullptr : work.Stream());
      pause(1'000, 4'000);
    }
  }
  std::printf("right: %llu rounds\n", static_cast<unsigned long long>(work.Diary().Get().rounds));
  std::fflush(stdout);
  std::_Exit(0);
}
