// Values that streams write and wait for, 32 and 64 bits, every comparison: order between streams by them alone, and
// work submitted behind a wait whose write is submitted later. The last case fills any window with launches that cannot
// finish before the thread has submitted more: the window must not block the thread.
#include "values.h"

using differential::Lane;

namespace {

struct Word {
  std::uint64_t* at = nullptr;
  void Make(Lane& lane) {
    CALL(lane, hipExtMallocWithFlags(reinterpret_cast<void**>(&at), sizeof *at, hipMallocSignalMemory));
    *at = 0;
  }
  void Free(Lane& lane) { CALL(lane, hipFree(at)); }
};

hipError_t Write(Lane& lane, hipStream_t stream, const Word& word, std::uint64_t value, bool wide) {
  if (wide) return CALL(lane, hipStreamWriteValue64(stream, word.at, value, 0));
  return CALL(lane, hipStreamWriteValue32(stream, word.at, static_cast<std::uint32_t>(value), 0));
}

hipError_t Wait(Lane& lane, hipStream_t stream, const Word& word, std::uint64_t value, unsigned flags, bool wide) {
  if (wide) return CALL(lane, hipStreamWaitValue64(stream, word.at, value, flags, ~std::uint64_t{0}));
  return CALL(lane, hipStreamWaitValue32(stream, word.at, static_cast<std::uint32_t>(value), flags, ~0u));
}

// Two streams order each other's work, each waiting for the value that the other writes to one word, which only grows.
void PingPong(Lane& lane, differential::Ordered& order) {
  hipStream_t streams[2];
  Word word;
  word.Make(lane);
  for (hipStream_t& stream : streams)
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  const bool wide = lane.Random(2);
  for (unsigned step = 0; step < 16; ++step) {
    const hipStream_t stream = streams[step % 2];
    Wait(lane, stream, word, step, lane.Random(2) ? hipStreamWaitValueGte : hipStreamWaitValueEq, wide);
    order.Append(lane, stream, 100 + lane.Random(500));
    if (lane.Random(2)) order.Append(lane, stream, 100);
    Write(lane, stream, word, step + 1, wide);
  }
  CALL(lane, hipStreamSynchronize(streams[0]));
  CALL(lane, hipStreamSynchronize(streams[1]));
  order.Check(lane, "ping pong");
  lane.Number("the word", *word.at);
  for (const hipStream_t stream : streams)
    CALL(lane, hipStreamDestroy(stream));
  word.Free(lane);
}

// Launches behind a wait, more than any window takes, and the write behind them in the same thread, on another stream.
void Ahead(Lane& lane, differential::Ordered& order, differential::Values& values) {
  hipStream_t waits, writes;
  Word word;
  word.Make(lane);
  CALL(lane, hipStreamCreateWithFlags(&waits, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&writes, hipStreamNonBlocking));
  Wait(lane, waits, word, 1, hipStreamWaitValueGte, true);
  for (unsigned step = 0; step < 12; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, waits>>>(values.device, values.device, step, differential::kCount, 500));
    values.Step(values, step);
  }
  CALL(lane, hipStreamQuery(waits));
  order.Append(lane, writes, 300);
  Write(lane, writes, word, 1, true);
  CALL(lane, hipStreamSynchronize(waits));
  CALL(lane, hipStreamSynchronize(writes));
  order.Check(lane, "before the write");
  values.Check(lane, "behind the wait");
  CALL(lane, hipStreamDestroy(waits));
  CALL(lane, hipStreamDestroy(writes));
  word.Free(lane);
}

// Each comparison, with a mask, by values that the host writes: first one that does not fit, then one that does.
void Comparisons(Lane& lane, differential::Ordered& order) {
  hipStream_t stream;
  Word word;
  word.Make(lane);
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  struct Case {
    unsigned flags;
    std::uint64_t value, mask, before, after;  // cut to 32 bits for the narrow form
  };
  for (const Case& one :
       {Case{hipStreamWaitValueGte, 10, 0xFFFFFFFF, 9, 11}, Case{hipStreamWaitValueEq, 10, 0xFFFFFFFF, 9, 10},
        Case{hipStreamWaitValueEq, 0x30, 0xF0, 0x21, 0x3F}, Case{hipStreamWaitValueAnd, 4, 0xFF, 3, 12},
        Case{hipStreamWaitValueNor, ~0xFull, ~0ull, 0xF, 0x1}}) {
    for (const bool wide : {false, true}) {
      *word.at = one.before;
      if (wide) {
        CALL(lane, hipStreamWaitValue64(stream, word.at, one.value, one.flags, one.mask));
      } else {
        CALL(lane, hipStreamWaitValue32(stream, word.at, static_cast<std::uint32_t>(one.value), one.flags,
                                        static_cast<std::uint32_t>(one.mask)));
      }
      order.Append(lane, stream, 200);
      CALL(lane, hipStreamQuery(stream));
      *word.at = one.after;
      CALL(lane, hipStreamSynchronize(stream));
    }
  }
  order.Check(lane, "comparisons");
  CALL(lane, hipStreamWaitValue32(stream, nullptr, 1, hipStreamWaitValueEq, ~0u));
  CALL(lane, hipStreamWaitValue32(stream, word.at, 1, 17, ~0u));
  CALL(lane, hipStreamWriteValue32(stream, nullptr, 1, 0));
  CALL(lane, hipStreamWriteValue64(stream, nullptr, 1, 0));
  CALL(lane, hipStreamSynchronize(stream));
  CALL(lane, hipStreamDestroy(stream));
  word.Free(lane);
}

// Written to a device's and to the host's memory, between kernels.
void Written(Lane& lane, differential::Values& values) {
  hipStream_t stream;
  std::uint64_t* host;
  CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipHostMalloc(&host, 2 * sizeof *host, 0));
  host[0] = host[1] = 0;
  for (unsigned step = 0; step < 8; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 400));
    values.Step(values, step);
    CALL(lane, hipStreamWriteValue32(stream, values.device + step, 1000 + step, 0));
    values.model[step] = 1000 + step;
    CALL(lane, hipStreamWriteValue64(stream, host + step % 2, 0x100000000u + step, 0));
  }
  CALL(lane, hipStreamSynchronize(stream));
  values.Check(lane, "written to");
  lane.Data("in the host's memory", host, 2 * sizeof *host);
  CALL(lane, hipStreamDestroy(stream));
  CALL(lane, hipHostFree(host));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      int can = 0;
      CALL(lane, hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, device));
      lane.Number("can wait for values", can);
      differential::Ordered order;
      differential::Values values;
      order.Make(lane);
      values.Make(lane);
      PingPong(lane, order);
      Ahead(lane, order, values);
      Comparisons(lane, order);
      Written(lane, values);
      order.Free(lane);
      values.Free(lane);
    }
  }
  return run.End();
}
