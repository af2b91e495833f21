#include "client-shim/core/seccomp.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace xschedd::shim {
namespace {

struct Call {
  long number;
  const char* name;
  bool is_needed;  // an error is as bad as a kill; else the library can do without
  long first = -1;
  long second = -1;
  long third = -1;
};

// What connecting and gRPC need beyond what every program with a GPU uses (threads, futexes, memory).
constexpr std::array kCalls{
    Call{SYS_socket, "socket", true, AF_UNIX, SOCK_STREAM, 0},
    Call{SYS_connect, "connect", true},
    Call{SYS_socketpair, "socketpair", true, AF_UNIX, SOCK_SEQPACKET, 0},
    Call{SYS_sendmsg, "sendmsg", true},
    Call{SYS_recvmsg, "recvmsg", true},
    Call{SYS_sendto, "sendto", true},
    Call{SYS_poll, "poll", true},
    Call{SYS_epoll_create1, "epoll_create1", true},
    Call{SYS_epoll_ctl, "epoll_ctl", true},
    Call{SYS_epoll_wait, "epoll_wait", true},
    Call{SYS_eventfd2, "eventfd2", true},
    Call{SYS_fcntl, "fcntl", true},
    Call{SYS_fstat, "fstat", true},
    Call{SYS_getsockname, "getsockname", false},
    Call{SYS_setsockopt, "setsockopt", false},
    Call{SYS_getsockopt, "getsockopt", false},
    Call{SYS_shutdown, "shutdown", false},
    Call{SYS_pipe2, "pipe2", false},
    Call{SYS_dup3, "dup3", true},
    Call{SYS_getrandom, "getrandom", false},
    Call{436, "close_range", false},  // SYS_close_range, which older headers do not have
    Call{SYS_unshare, "unshare", false},
    Call{SYS_prctl, "prctl", false},
    Call{SYS_clock_nanosleep, "clock_nanosleep", false},
    Call{SYS_clock_gettime, "clock_gettime", false, CLOCK_THREAD_CPUTIME_ID, 0},
    Call{SYS_sched_yield, "sched_yield", false},
    Call{SYS_gettid, "gettid", false},
    Call{SYS_sched_getscheduler, "sched_getscheduler", false},
    Call{SYS_sched_setscheduler, "sched_setscheduler", false},
    Call{SYS_sched_getaffinity, "sched_getaffinity", false},
    Call{SYS_sched_setaffinity, "sched_setaffinity", false},
};

bool HasFilter() {
  // Not by prctl, which the filter may forbid.
  FILE* const file = std::fopen("/proc/thread-self/status", "re");
  if (file == nullptr) return false;
  char line[256];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file) != nullptr)
    found = std::strncmp(line, "Seccomp:\t2", 10) == 0;
  std::fclose(file);
  return found;
}

// Before Linux 5.16, a filter that kills a process also kills all processes that share its memory.
bool MayTry() {
  utsname system{};
  int major = 0;
  int minor = 0;
  return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 16));
}

struct Trial {
  // The call that is being tried. Atomic only so that it is in memory when the other process is killed in that call.
  std::atomic<std::size_t> next{0};
  std::size_t refused = kCalls.size();  // the first call that is needed and refused
};

// Runs in a process of its own, with this one's memory but not its descriptors. The arguments have no effect there.
int Try(void* data) {
  auto* const trial = static_cast<Trial*>(data);
  // seq_cst, the default: costs nothing beside the calls.
  for (; trial->next < kCalls.size(); ++trial->next) {
    const Call& call = kCalls[trial->next];
    const long result = ::syscall(call.number, call.first, call.second, call.third, -1L, -1L, -1L);
    const bool is_refused = result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
    if (is_refused && call.is_needed && trial->refused == kCalls.size()) trial->refused = trial->next;
  }
  return 0;
}

}  // namespace

std::string ForbiddenByFilter() {
  if (!HasFilter() || !MayTry()) return "";
  alignas(16) static char stack[64 * 1024];  // one trial at a time: only the agent's thread comes here
  Trial trial;
  // It sends no signal at its end, so that the host does not see a child. This thread waits meanwhile.
  const int pid = ::clone(Try, stack + sizeof stack, CLONE_VM | CLONE_VFORK, &trial);
  if (pid < 0) return "";
  int status = 0;
  while (::waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return std::string("ends what calls ") + kCalls[trial.next].name;
  if (trial.refused < kCalls.size()) return std::string("refuses ") + kCalls[trial.refused].name;
  return "";
}

}  // namespace xschedd::shim
