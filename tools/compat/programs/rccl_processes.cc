// RCCL over two processes with one device each, as in a distributed job: this process forks before it uses HIP. The
// child's output comes after this process's own.
#include <hip/hip_runtime.h>
#include <rccl/rccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

namespace {

constexpr int kRanks = 2;
constexpr size_t kN = 1 << 16;

int Rank(int rank, const ncclUniqueId& id) {
  ncclComm_t communicator = nullptr;
  hipStream_t stream = nullptr;
  float* from = nullptr;
  float* to = nullptr;
  NEED(hipSetDevice(rank));
  NEED(hipStreamCreate(&stream));
  NEED(hipMalloc(&from, kN * sizeof(float)));
  NEED(hipMalloc(&to, kN * sizeof(float)));
  NEED(ncclCommInitRank(&communicator, kRanks, id, rank));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(ncclAllReduce(from, to, kN, ncclFloat, ncclSum, communicator, stream));
    CALL(ncclAllGather(from, to, kN / kRanks, ncclFloat, communicator, stream));
    CALL(hipStreamSynchronize(stream));
  }
  CALL(ncclCommDestroy(communicator));
  return 0;
}

}  // namespace

int main() {
  int to_child[2];
  int from_child[2];
  ncclUniqueId id{};
  if (pipe(to_child) != 0 || pipe(from_child) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    dup2(from_child[1], STDOUT_FILENO);
    close(from_child[0]);
    close(from_child[1]);
    if (read(to_child[0], &id, sizeof id) != sizeof id) return 2;
    Rank(1, id);
    std::fflush(stdout);
    return compat::g_failed;
  }
  close(from_child[1]);
  NEED(ncclGetUniqueId(&id));
  if (write(to_child[1], &id, sizeof id) != sizeof id) return 2;
  Rank(0, id);
  std::fflush(stdout);
  char text[4096];
  for (ssize_t n = 0; (n = read(from_child[0], text, sizeof text)) > 0;) {
    if (write(STDOUT_FILENO, text, static_cast<size_t>(n)) != n) return 2;
  }
  int status = 0;
  waitpid(child, &status, 0);
  compat::Check("the other process", status);
  return compat::Finish();
}
