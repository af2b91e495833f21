#include "tests/integration/daemon/daemon_process.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "common/unique_fd.h"
#include "tests/catch.h"

namespace xschedd::test {
namespace {

constexpr useconds_t kLookUs = 2'000;
constexpr int kLooks = 15'000;

}  // namespace

void ShortSleep() {
  ::usleep(kLookUs);
}

bool DeadlineHasPassed(int looks) {
  return looks >= kLooks;
}

pid_t Spawn(const std::vector<std::string>& arguments, const std::string& output) {
  return SpawnWithSockets(arguments, {}, output);
}

pid_t SpawnWithSockets(const std::vector<std::string>& arguments,
                       const std::vector<std::pair<std::string, std::string>>& sockets, const std::string& output) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<UniqueFd> listening;
  std::string names;
  for (const auto& [name, path] : sockets) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listening.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool bound = ::bind(listening.back().Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (!bound || ::listen(listening.back().Get(), 8) != 0) throw std::runtime_error("cannot listen on " + path);
    // Numbers beyond those that the child must have.
    listening.back().Reset(::fcntl(listening.back().Get(), F_DUPFD_CLOEXEC, 100));
    names += (names.empty() ? "" : ":") + name;
  }
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  // A test that fails half-way leaves nothing behind.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!output.empty()) {
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
  }
  if (!listening.empty()) {
    for (std::size_t i = 0; i < listening.size(); ++i)
      ::dup2(listening[i].Get(), 3 + static_cast<int>(i));
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", std::to_string(listening.size()).c_str(), 1);
    ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

int Reap(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TemporaryFolder::TemporaryFolder() {
  char path[] = "/tmp/xschedd-test-XXXXXX";
  if (::mkdtemp(path) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string DaemonProcess::Binary() {
  const char* path = std::getenv("XSCHEDD_BINARY");
  if (path == nullptr) throw std::runtime_error("XSCHEDD_BINARY is not set; run through meson test");
  return path;
}

DaemonProcess::DaemonProcess(const std::string& config, const std::vector<std::string>& arguments) {
  WriteConfig(config);
  std::vector<std::string> command{Binary(),   "--software-gpu",       "--runtime-dir", Dir(),
                                   "--config", Dir() + "/config.toml", "--log-level",   "debug"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  pid_ = Spawn(command, Dir() + "/log");
  admin_ = v1::Admin::NewStub(grpc::CreateChannel("unix:" + Dir() + "/admin.sock", grpc::InsecureChannelCredentials()));
  const bool ready = Eventually([this] { return Log().find("ready version") != std::string::npos; });
  if (!ready) throw std::runtime_error("xschedd did not start: " + Log());
}

DaemonProcess::~DaemonProcess() {
  if (pid_ <= 0) return;
  if (killed_) {
    Reap(pid_);
    return;
  }
  // By SIGTERM and with a check of the exit code: sanitizers and coverage report when the daemon ends.
  Signal(SIGCONT);
  const int code = Stop();
  if (code != 0) UNSCOPED_INFO(Log());
  CHECK(code == 0);
}

std::string DaemonProcess::Log() const {
  return ReadFile(Dir() + "/log");
}

void DaemonProcess::WriteConfig(const std::string& text) const {
  std::ofstream(Dir() + "/config.toml") << text;
}

void DaemonProcess::Signal(int signal) {
  killed_ = killed_ || signal == SIGKILL;
  ::kill(pid_, signal);
}

int DaemonProcess::Stop() {
  Signal(SIGTERM);
  const auto has_ended = [this] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  };
  if (!Eventually(has_ended)) Signal(SIGKILL);
  const int code = Reap(pid_);
  pid_ = -1;
  return code;
}

}  // namespace xschedd::test
