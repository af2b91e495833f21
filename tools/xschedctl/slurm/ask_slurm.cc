#include "tools/xschedctl/slurm/ask_slurm.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/parse_number.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/argument_vector.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

constexpr std::uint64_t kLimitNs = 1'000'000'000;  // a job's start waits for it
constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr std::size_t kMaxAnswerBytes = 4 << 20;
// JobID is the number without the array's; each field ends with "|", which no name in Slurm's configuration has.
constexpr char kFields[] = "JobID:|,Partition:|,QOS:|,Account:|,Nice:|,PriorityLong:|,State:|";
constexpr std::size_t kFieldCount = 7;

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto read = xschedd::ParseNumber<Number>(Trimmed(text));
  if (read) number = *read;
  return read.has_value();
}

std::string Name(std::string_view text) {
  text = Trimmed(text);
  return text == "(null)" || text == "N/A" ? std::string() : std::string(text);
}

std::optional<SlurmJob> ParseJob(std::string_view line) {
  std::array<std::string_view, kFieldCount> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = line.find('|');
    if (end == std::string_view::npos) return std::nullopt;
    field = line.substr(0, end);
    line.remove_prefix(end + 1);
  }
  SlurmJob job;
  if (!ReadNumber(fields[0], job.id) || !ReadNumber(fields[4], job.nice) || !ReadNumber(fields[5], job.priority))
    return std::nullopt;
  job.partition = Name(fields[1]);
  job.qos = Name(fields[2]);
  job.account = Name(fields[3]);
  job.state = Name(fields[6]);
  return job;
}

// Reads until the other end is closed; false: that took too long, or is more than any answer.
bool ReadUntilEnd(int fd, std::string& text) {
  const std::uint64_t end = MonotonicNs() + kLimitNs;
  std::array<char, 4096> buffer;
  while (text.size() < kMaxAnswerBytes) {
    const std::uint64_t now = MonotonicNs();
    if (now >= end) return false;
    pollfd poll{fd, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>((end - now) / kMsInNs) + 1) <= 0) continue;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR)) return true;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return false;
}

struct Answer {
  int status = 0;    // as waitpid has it
  std::string text;  // of both streams
};

Result<Answer> Run(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(std::string("cannot make a pipe: ") + std::strerror(errno));
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.Get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, writing.Get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, ArgumentVector(words).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Fail("cannot start " + words[0] + ": " + std::strerror(error), "put Slurm's commands on PATH");
  writing.Reset();
  Answer answer;
  const bool in_time = ReadUntilEnd(reading.Get(), answer.text);
  if (!in_time) ::kill(child, SIGKILL);
  while (::waitpid(child, &answer.status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return Fail(words[0] + " did not answer within a second");
  return answer;
}

}  // namespace

std::vector<SlurmJob> ParseJobs(std::string_view text) {
  std::vector<SlurmJob> jobs;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (std::optional<SlurmJob> job = ParseJob(line)) jobs.push_back(std::move(*job));
  }
  return jobs;
}

Result<std::vector<SlurmJob>> AskSlurm(const std::vector<std::uint32_t>& ids) {
  std::string list;
  for (const std::uint32_t id : ids)
    list += (list.empty() ? "" : ",") + std::to_string(id);
  const Result<Answer> answer = Run({"squeue", "--noheader", "--states=all", "--jobs=" + list, "--Format", kFields});
  if (!answer) return tl::unexpected<Error>(answer.error());
  // What squeue says of a single job that the controller has forgotten.
  if (answer->text.find("Invalid job id specified") != std::string::npos) return std::vector<SlurmJob>();
  if (answer->status != 0) return Fail("squeue failed: " + OneLine(answer->text.substr(0, answer->text.find('\n'))));
  return ParseJobs(answer->text);
}

}  // namespace xschedd::ctl
