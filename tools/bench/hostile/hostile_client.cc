// Hostile clients of one user: `--count` processes, which divide the attacks of attacks.h among them, or all run the
// one in --only. They are one session (setsid) of one uid, like everything that one user starts. Prints "running", and
// when it is ended one line of JSON: the operations of each attack. Thread rule: one thread per process.
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/command_syntax.h"
#include "tools/bench/hostile/attacks.h"

namespace xschedd::bench {
namespace {

volatile sig_atomic_t g_ended = 0;

[[noreturn]] void Strike(const Attack& attack, const Target& target, Count& count) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGTERM, SIG_DFL);
  for (;;) {
    attack.run(target, count);
    // The reason for its end (a refusal, a full table) may be temporary.
    ::usleep(10'000);
  }
}

int Main(int argc, char** argv) {
  Target target;
  unsigned count = 16;
  unsigned uid = 0;
  unsigned first = 0;
  std::string only;
  xschedd::CommandSyntax syntax("Hostile clients.");
  syntax.AddOption("--runtime-dir", target.runtime_dir, "", {.is_required = true});
  syntax.AddOption("--count", count, "processes", {.shows_default = true});
  syntax.AddOption("--first", first, "the attack to begin with, by number", {.shows_default = true});
  syntax.AddOption("--uid", uid, "run as this user; 0: do not change the user", {.shows_default = true});
  syntax.AddOption("--only", only, "only this attack");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (uid != 0 &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0)) {
    std::perror("hostile_client: cannot become another user");
    return 1;
  }
  void* const memory =
      ::mmap(nullptr, sizeof(Count) * count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* const counts = static_cast<Count*>(memory);
  const auto& attacks = Attacks();
  std::vector<const Attack*> chosen;
  std::vector<pid_t> children;
  for (unsigned i = 0; i < count; ++i) {
    const Attack* attack = &attacks[(first + i) % attacks.size()];
    for (const Attack& candidate : attacks) {
      if (candidate.name == only) attack = &candidate;
    }
    chosen.push_back(attack);
    const pid_t child = ::fork();
    if (child == 0) Strike(*attack, target, counts[i]);
    children.push_back(child);
  }
  struct sigaction action {};
  action.sa_handler = [](int) { g_ended = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  std::printf("running\n");
  std::fflush(stdout);
  while (g_ended == 0)
    ::usleep(50'000);
  for (const pid_t child : children)
    ::kill(child, SIGKILL);
  for (const pid_t child : children)
    ::waitpid(child, nullptr, 0);
  std::printf("{");
  for (std::size_t a = 0; a < attacks.size(); ++a) {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (chosen[i] == &attacks[a]) sum += counts[i].load();
    }
    std::printf("%s\"%s\": %lu", a == 0 ? "" : ", ", std::string(attacks[a].name).c_str(),
                static_cast<unsigned long>(sum));
  }
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace xschedd::bench

int main(int argc, char** argv) {
  return xschedd::bench::Main(argc, argv);
}
