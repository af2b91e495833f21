#include "tools/xschedctl/slurm/step.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace xschedd::ctl {
namespace {

constexpr std::string_view kPrefix = "xschedd_";
constexpr time_t kYoungS = 10;

std::string Text(const SlurmStep& step) {
  return std::to_string(step.job) + "." + step.name;
}

std::string_view LastPart(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string StepClaimName(const SlurmStep& step) {
  return std::string(kStepClaimPrefix) + Text(step);
}

std::optional<std::string> CgroupOfSlurm(std::string_view path, const SlurmStep& step) {
  const std::string part = "/job_" + std::to_string(step.job) + "/step_" + step.name;
  const std::size_t at = (std::string(path) + "/").find(part + "/");
  if (at == std::string::npos) return std::nullopt;
  return std::string(path.substr(0, at + part.size()));
}

std::string CgroupOfOurs(std::string_view path, const SlurmStep& step) {
  return (path == "/" ? "" : std::string(path)) + "/" + std::string(kPrefix) + Text(step);
}

bool IsOurs(std::string_view cgroup) {
  return LastPart(cgroup).starts_with(kPrefix);
}

Result<void> MakeCgroup(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return Fail("cannot make the cgroup " + directory + ": " + std::strerror(errno));
}

void RemoveSoon(const std::string& directory) {
  constexpr int kAttempts = 20;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 5'000'000};
  // EBUSY: a process in it has ended, and is not gone yet.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::rmdir(directory.c_str()) == 0 || errno != EBUSY) return;
    ::nanosleep(&kPause, nullptr);
  }
}

bool RemoveIfLeft(const std::string& directory) {
  struct stat status {};
  if (!IsOurs(directory) || ::lstat(directory.c_str(), &status) != 0) return false;
  if (::time(nullptr) - status.st_mtime < kYoungS) return false;
  return ::rmdir(directory.c_str()) == 0;  // refused while there are processes
}

void RemoveLeftIn(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    RemoveIfLeft(entry->path().string());
}

}  // namespace xschedd::ctl
