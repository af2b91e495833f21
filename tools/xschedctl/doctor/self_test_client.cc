#include "tools/xschedctl/doctor/self_test_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "common/runtime_dir.h"
#include "tools/xschedctl/argument_vector.h"

extern char** environ;

namespace xschedd::ctl {
namespace {

constexpr std::chrono::seconds kAnswerTime{10};
constexpr char kClientProgram[] = "/self-test-client";
constexpr char kFakeHip[] = "/libamdhip64.so.self-test";

// The installation is tested, without what this environment adds to it.
std::vector<std::string> EnvironmentOf(const SelfTestPlace& place, int priority) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (text.rfind("XSCHEDD_", 0) != 0 && text.rfind("LD_PRELOAD=", 0) != 0) environment.push_back(text);
  }
  environment.push_back("LD_PRELOAD=" + place.shim);
  environment.push_back("XSCHEDD_PRIORITY=" + std::to_string(priority));
  environment.push_back(std::string(kRuntimeDirVariable) + "=" + place.runtime_dir);
  return environment;
}

}  // namespace

SelfTestClient::SelfTestClient(const SelfTestPlace& place, int priority) {
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0) return;
  in_ = UniqueFd(to[1]);
  const UniqueFd its_in(to[0]);
  if (::pipe2(from, O_CLOEXEC) != 0) return;
  out_ = UniqueFd(from[0]);
  const UniqueFd its_out(from[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, its_in.Get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, its_out.Get(), STDOUT_FILENO);
  std::vector<std::string> words = {place.folder + kClientProgram, place.folder + kFakeHip, place.device};
  std::vector<std::string> environment = EnvironmentOf(place, priority);
  pid_t pid = 0;
  if (::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, ArgumentVector(words).data(),
                    ArgumentVector(environment).data()) == 0) {
    pid_ = pid;
  }
  ::posix_spawn_file_actions_destroy(&actions);
}

SelfTestClient::~SelfTestClient() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::uint64_t> SelfTestClient::Ask(const std::string& word) {
  const std::string line = word + "\n";
  // A dead client must not end this process.
  ::signal(SIGPIPE, SIG_IGN);
  if (::write(in_.Get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) return std::nullopt;
  std::string answer;
  const auto end = std::chrono::steady_clock::now() + kAnswerTime;
  while (answer.empty() || answer.back() != '\n') {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{out_.Get(), POLLIN, 0};
    char buffer[64];
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return std::nullopt;
    const ssize_t size = ::read(out_.Get(), buffer, sizeof buffer);
    if (size <= 0) return std::nullopt;
    answer.append(buffer, static_cast<std::size_t>(size));
  }
  return std::strtoull(answer.c_str(), nullptr, 10);
}

std::optional<int> SelfTestClient::End() {
  in_ = UniqueFd();
  const auto end = std::chrono::steady_clock::now() + kAnswerTime;
  while (std::chrono::steady_clock::now() < end) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

std::string SelfTestFolder(const std::string& exe, const std::string& library_dir) {
  const std::string here = exe.substr(0, exe.rfind('/') + 1);
  for (const std::string& folder :
       {here + "self_test", here + "../lib/xschedd/self-test", library_dir + "/xschedd/self-test"}) {
    if (::access((folder + kClientProgram).c_str(), X_OK) == 0 && ::access((folder + kFakeHip).c_str(), R_OK) == 0)
      return folder;
  }
  return {};
}

}  // namespace xschedd::ctl
