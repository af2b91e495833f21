// The legacy default stream beside blocking streams that wait for each other. Every call on the default stream is a
// barrier between them: a call that the program did not make could close a cycle. In each case the program
// submits, behind work on the default stream, a wait on one blocking stream, and later on another stream the work that
// is waited for: natively both continue as soon as the default stream has finished.
#include "values.h"

using differential::Lane;

namespace {

constexpr useconds_t kQuietUs = 1500;  // longer than the shim waits before it looks after a stream by itself

struct Circle {
  hipStream_t waits, writes;
  std::uint64_t* word = nullptr;
  std::uint64_t turn = 0;
  differential::Ordered order;

  void Make(Lane& lane) {
    CALL(lane, hipStreamCreate(&waits));
    CALL(lane, hipStreamCreate(&writes));
    CALL(lane, hipExtMallocWithFlags(reinterpret_cast<void**>(&word), sizeof *word, hipMallocSignalMemory));
    *word = 0;
    order.Make(lane);
  }
  void Free(Lane& lane) {
    CALL(lane, hipStreamDestroy(waits));
    CALL(lane, hipStreamDestroy(writes));
    CALL(lane, hipFree(word));
    order.Free(lane);
  }

  void Begin(Lane& lane, unsigned micros) {
    ++turn;
    order.Append(lane, nullptr, micros);
    CALL(lane, hipStreamWaitValue64(waits, word, turn, hipStreamWaitValueGte, ~std::uint64_t{0}));
  }
  void End(Lane& lane) {
    order.Append(lane, writes, 100);
    CALL(lane, hipStreamWriteValue64(writes, word, turn, 0));
    order.Append(lane, waits, 100);
    CALL(lane, hipStreamSynchronize(writes));
    CALL(lane, hipStreamSynchronize(waits));
  }
};

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (int device = 0; device < run.devices; ++device) {
    CALL(lane, hipSetDevice(device));
    Circle circle;
    circle.Make(lane);
    for (unsigned step = 0; step < 8 * run.rounds; ++step) {
      circle.Begin(lane, 1000 + lane.Random(4000));
      usleep(kQuietUs);
      circle.End(lane);
    }
    circle.order.Check(lane, "circles");
    circle.Free(lane);
  }
  return run.End();
}
