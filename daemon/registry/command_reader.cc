#include "daemon/registry/command_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kMaxWaitingJobs = 1024;
constexpr std::size_t kCommandLimit = 256;

std::string ReadCommand(pid_t pid, int pidfd) {
  const UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsValid()) return {};
  char buffer[kCommandLimit];
  const ssize_t size = ::read(file.Get(), buffer, sizeof buffer);
  if (size <= 0 || HasExited(pidfd)) return {};
  return CommandText({buffer, static_cast<std::size_t>(size)});
}

}  // namespace

std::string CommandText(std::string_view words) {
  std::string text(words);
  while (!text.empty() && text.back() == '\0')
    text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return CleanText(text, kCommandLimit);
}

struct CommandReader::Shared {
  struct Job {
    pid_t pid;
    UniqueFd pidfd;
    Done done;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  bool stop = false;

  void Run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || !jobs.empty(); });
      if (stop) return;
      Job job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      std::string command = ReadCommand(job.pid, job.pidfd.Get());
      lock.lock();
      if (!stop) job.done(std::move(command));
    }
  }
};

CommandReader::CommandReader() : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_] { shared->Run(); }).detach();
}

CommandReader::~CommandReader() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
}

void CommandReader::Read(pid_t pid, int pidfd, Done done) {
  UniqueFd duplicate(::fcntl(pidfd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate.IsValid()) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->jobs.size() >= kMaxWaitingJobs) return;
  shared_->jobs.push_back({pid, std::move(duplicate), std::move(done)});
  shared_->changed.notify_one();
}

}  // namespace xschedd
