// A host with odd habits. Each habit is a function in the table at the end; they run at three moments:
//
//   odd LAUNCHES MICROS [first=HABIT,...] [before=HABIT,...] [after=HABIT,...]
//     first   at the start of the program
//     before  when HIP is initialised and nothing was submitted, so that the shim has not started its client
//     after   after a third of the launches, and once the daemon knows this client
//
// The verdict is work.h's. Thread rule: one thread, unless a habit says otherwise.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "work.h"

namespace {

using hosts::Work;

std::unique_ptr<Work> g_work;
std::uint64_t g_micros = 1000;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "odd: %s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}
void Require(bool condition, const char* what) {
  if (!condition) Die(what);
}

// ---- descriptors ---------------------------------------------------------------------------------------------------

// The test's parameters.
const char* Asked(const char* name) {
  const char* value = std::getenv(name);
  Require(value != nullptr, name);
  return value != nullptr ? value : "";
}

// The file $HOST_DATA.NUMBER, which must contain only what is written here.
int OpenData(int number, int flags) {
  const std::string path = std::string(Asked("HOST_DATA")) + "." + std::to_string(number);
  const int fd = open(path.c_str(), flags | O_CREAT, 0666);
  if (fd < 0) Die("open data");
  return fd;
}

void CloseStdio() {
  for (int fd = 0; fd <= 2; ++fd)
    close(fd);
}

// Standard error is a file of data, as after a program closes it and opens its data.
void DataOnStdio() {
  CloseStdio();
  for (int fd = 0; fd <= 2; ++fd)
    Require(OpenData(fd, O_RDWR | O_CLOEXEC) == fd, "data on standard files");
}

// As a program does that becomes a daemon; the numbers are then its own files and sockets.
void CloseAllAndReuse() {
  for (int fd = 3; fd < 1024; ++fd)
    close(fd);
  // Twice as many as the shim uses, and also the high numbers.
  for (int i = 0; i < 30; ++i)
    OpenData(i, O_RDWR);
  for (int fd = 900; fd < 1024; ++fd)
    dup2(OpenData(fd, O_RDWR), fd);
}

// $HOST_ROOM more can be opened.
void FewDescriptorsLeft() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  Require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  std::vector<int> opened;
  for (int fd = 0; (fd = open("/dev/null", O_RDONLY)) >= 0;)
    opened.push_back(fd);
  const char* room = std::getenv("HOST_ROOM");
  for (int i = room != nullptr ? std::atoi(room) : 0; i > 0; --i, opened.pop_back())
    close(opened.back());
}

// Prints the number of open descriptors to standard error, to show that the shim uses few.
void CountDescriptors() {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd)
    count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  std::fprintf(stderr, "descriptors: %d\n", count);
}

// ---- memory and threads --------------------------------------------------------------------------------------------

void LittleAddressSpace() {
  unsigned long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  Require(file != nullptr && std::fscanf(file, "%lu", &pages) == 1, "statm");
  std::fclose(file);
  const rlim_t size = pages * 4096 + std::strtoul(Asked("HOST_ROOM"), nullptr, 10);
  const rlimit limit{size, size};
  Require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

void LockMemory() {
  Require(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall");
}

void* LaunchFew(void*) {
  for (int i = 0; i < 5; ++i)
    g_work->LaunchOne(g_micros);
  return nullptr;
}

void OnThreadOf(std::size_t stack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  Require(pthread_attr_setstacksize(&attributes, stack) == 0, "stack size");
  pthread_t thread;
  Require(pthread_create(&thread, &attributes, LaunchFew, nullptr) == 0, "thread");
  pthread_join(thread, nullptr);
}

// The stack is $HOST_STACK bytes, by default the least that is possible.
void SmallStack() {
  const char* size = std::getenv("HOST_STACK");
  OnThreadOf(size != nullptr ? std::strtoul(size, nullptr, 10) : 16384);
}

void ManyThreads() {
  std::vector<std::thread> threads;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> ready{0};
  threads.reserve(500);
  for (int i = 0; i < 500; ++i)
    threads.emplace_back([&] {
      ++ready;
      while (ready < 500)
        sched_yield();
      pthread_mutex_lock(&lock);  // the order of launches is checked
      g_work->LaunchOne(10);
      pthread_mutex_unlock(&lock);
    });
  for (std::thread& thread : threads)
    thread.join();
}

// ---- signals -------------------------------------------------------------------------------------------------------

std::atomic<int> g_signals{0};
pid_t g_main = 0;
std::atomic<int> g_elsewhere{0};

void OnSignal(int) {
  ++g_signals;
  if (static_cast<pid_t>(syscall(SYS_gettid)) != g_main) ++g_elsewhere;
}

// A timer's signals all the time, with and without SA_RESTART, on a stack of their own.
void Signals() {
  g_main = static_cast<pid_t>(syscall(SYS_gettid));
  static char stack[64 * 1024];
  const stack_t alternate{stack, 0, sizeof stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
  signal(SIGPIPE, SIG_DFL);
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// All signals must have been delivered to the main thread or to HIP's threads, not to the shim's, which have names.
void SignalsWereSeen() {
  Require(g_signals > 0, "no signal came");
}

// ---- rights and places ---------------------------------------------------------------------------------------------

void BecomeNobody() {
  Require(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setuid");
}
void ChangeRoot() {
  Require(chroot("/var/empty") == 0 || chroot("/sys") == 0, "chroot");
  Require(chdir("/") == 0, "chdir");
}
void Unshare() {
  Require(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == 0, "unshare");
}

// ---- system calls --------------------------------------------------------------------------------------------------

// Answers each of `calls` with `action`, on all threads.
void Filter(const std::vector<int>& calls, unsigned action) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const int call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  Require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  Require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0, "seccomp");
}

// $HOST_CALLS: numbers of system calls; $HOST_ACTION: an errno, "kill" or "trap".
void FilterCalls() {
  std::vector<int> calls;
  for (char* at = std::getenv("HOST_CALLS"); at != nullptr && *at != '\0';) {
    calls.push_back(static_cast<int>(std::strtol(at, &at, 10)));
    if (*at == ',') ++at;
  }
  const std::string_view action = Asked("HOST_ACTION");
  Filter(calls, action == "kill"   ? SECCOMP_RET_KILL_PROCESS
                : action == "trap" ? SECCOMP_RET_TRAP
                                   : SECCOMP_RET_ERRNO | static_cast<unsigned>(std::atoi(action.data())));
}

// A sandbox that answers the calls itself, as Chromium's does.
void EmulateTrapped() {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
}

// ---- processes -----------------------------------------------------------------------------------------------------

// A child that does not use HIP lives as long as this process, and must hold no descriptor of the shim.
void ForkIdleChild() {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      pause();
  }
  Require(child > 0, "fork");
}

void ForkAndWait() {
  const auto reap = [](pid_t child) {
    int status = 0;
    Require(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "child");
  };
  pid_t child = fork();
  if (child == 0) _exit(7);
  reap(child);
  child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): vfork is what is tested
  if (child == 0) _exit(7);
  reap(child);
}

struct Habit {
  std::string_view name;
  void (*practise)();
};
const Habit kHabits[] = {
    {"close-stdio", CloseStdio},
    {"data-on-stdio", DataOnStdio},
    {"close-all-and-reuse", CloseAllAndReuse},
    {"few-descriptors-left", FewDescriptorsLeft},
    {"count-descriptors", CountDescriptors},
    {"little-address-space", LittleAddressSpace},
    {"lock-memory", LockMemory},
    {"small-stack", SmallStack},
    {"many-threads", ManyThreads},
    {"signals", Signals},
    {"signals-were-seen", SignalsWereSeen},
    {"block-all-signals", BlockAllSignals},
    {"become-nobody", BecomeNobody},
    {"change-root", ChangeRoot},
    {"unshare", Unshare},
    {"filter", FilterCalls},
    {"emulate-trapped", EmulateTrapped},
    {"fork-idle-child", ForkIdleChild},
    {"fork-and-wait", ForkAndWait},
};

void Practise(int argc, char** argv, std::string_view moment) {
  for (int i = 3; i < argc; ++i) {
    std::string_view rest = argv[i];
    if (!rest.starts_with(moment)) continue;
    rest.remove_prefix(moment.size());
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const std::string_view name = rest.substr(0, comma);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
      const Habit* found = nullptr;
      for (const Habit& habit : kHabits) {
        if (habit.name == name) found = &habit;
      }
      Require(found != nullptr, "no such habit");
      found->practise();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  g_micros = arguments.micros;
  Practise(argc, argv, "first=");
  g_work = std::make_unique<Work>();
  Practise(argc, argv, "before=");
  g_work->Launch(arguments.launches / 3, arguments.micros);
  g_work->LaunchUntilConnected(arguments.micros);
  Practise(argc, argv, "after=");
  g_work->Launch(arguments.launches - arguments.launches / 3, arguments.micros);
  g_work->LaunchUntilTold(arguments.micros);
  Practise(argc, argv, "end=");
  return g_work->Verdict();
}
