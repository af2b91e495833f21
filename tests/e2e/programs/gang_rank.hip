// One rank of a gang of two: its kernels run on a device of their own, and each waits for the other rank's of the same
// round inside its host function, as a collective operation does.
//
//   gang_rank ROUNDS MICROS RANK DEVICE    the two ranks share the file $E2E_MEETING
//
// A word in that file ends them early.
//
// Ends as the other programs do; the result is wrong if a kernel waited for its partner in vain.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "meeting.h"
#include "program.h"

namespace {

constexpr std::uint32_t kRoundsASync = 4;

e2e::Meeting* OpenMeeting() {
  const char* const path = std::getenv("E2E_MEETING");
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(e2e::Meeting)) != 0) return nullptr;
  void* const memory = mmap(nullptr, sizeof(e2e::Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<e2e::Meeting*>(memory);
}

// The first rank chooses the last round far enough ahead: the other is within two synchronisations of it.
bool IsOver(e2e::Meeting& meeting, std::uint32_t rank, std::uint32_t round) {
  if (rank == 0 && meeting.asked != 0 && meeting.last == 0) meeting.last = round + 4 * kRoundsASync;
  const std::uint32_t last = meeting.last;
  return last != 0 && round > last;
}

}  // namespace

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  if (argc != 5) return 2;
  const auto rank = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  E2E_CHECK(hipSetDevice(std::atoi(argv[4])));
  e2e::Meeting* const meeting = OpenMeeting();
  if (meeting == nullptr) return 2;
  std::uint32_t round = 1;
  for (; round <= arguments.launches && !IsOver(*meeting, rank, round); ++round) {
    meet<<<1, 1>>>(meeting, rank, round, arguments.micros);
    E2E_CHECK(hipGetLastError());
    if (round % kRoundsASync == 0) E2E_CHECK(hipDeviceSynchronize());
  }
  E2E_CHECK(hipDeviceSynchronize());
  e2e::Finish({meeting->missed}, {0}, round - 1, round - 1);
}
