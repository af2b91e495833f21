#include "daemon/state/state_writer.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace xschedd {

using Clock = std::chrono::steady_clock;

StateWriter::StateWriter(StateFile file) : file_(std::move(file)), thread_([this] { Run(); }) {}

StateWriter::~StateWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StateWriter::Put(Parts changed, Saved saved) {
  {
    const std::lock_guard lock(mutex_);
    changed.merge(changed_);  // the new parts take precedence over those already there
    changed_ = std::move(changed);
    if (saved) {
      waiting_.push_back(std::move(saved));
      is_hurried_ = true;
    }
    if (!due_) due_ = Clock::now() + last_cost_ * kCoreDivisor;
  }
  wake_.notify_one();
}

void StateWriter::Flush() {
  std::unique_lock lock(mutex_);
  if (!changed_.empty()) is_hurried_ = true;
  wake_.notify_one();
  idle_.wait(lock, [this] { return changed_.empty() && waiting_.empty() && !is_writing_; });
}

void StateWriter::EndStart() {
  {
    const std::lock_guard lock(mutex_);
    end_start_ = true;
  }
  wake_.notify_one();
}

void StateWriter::AwaitWork(std::unique_lock<std::mutex>& lock) {
  while (!is_ending_ && !is_hurried_ && !end_start_) {
    if (!due_) {
      wake_.wait(lock);
    } else if (Clock::now() >= *due_) {
      return;
    } else {
      wake_.wait_until(lock, Clock::time_point(*due_));
    }
  }
}

void StateWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    AwaitWork(lock);
    if (std::exchange(end_start_, false)) file_.EndStart();
    if (due_ && (is_ending_ || is_hurried_ || Clock::now() >= *due_)) {
      Parts changed = std::exchange(changed_, {});
      const std::vector<Saved> waiting = std::exchange(waiting_, {});
      due_.reset();
      is_hurried_ = false;
      is_writing_ = true;
      lock.unlock();
      for (auto& [of, bytes] : changed) {
        if (bytes.empty()) {
          parts_.erase(of);
        } else {
          parts_[of] = std::move(bytes);
        }
      }
      const auto began = Clock::now();
      const Result<void> written = Write();
      const auto cost = Clock::now() - began;
      for (const Saved& saved : waiting)
        saved(written);
      lock.lock();
      last_cost_ = cost;
      is_writing_ = false;
      if (!written && !due_) due_ = Clock::now() + kRetry;
      idle_.notify_all();
    }
    // At the end, changes that came during the write are still written; a write that failed is not repeated.
    if (is_ending_ && changed_.empty()) return;
  }
}

Result<void> StateWriter::Write() {
  std::size_t size = 0;
  for (const auto& [of, bytes] : parts_)
    size += bytes.size();
  std::string content;
  content.reserve(size);
  for (const auto& [of, bytes] : parts_)
    content += bytes;
  auto written = file_.Write(content);
  if (written) {
    if (std::exchange(warned_unsaved_, false)) SPDLOG_INFO("the state is saved again");
  } else if (!std::exchange(warned_unsaved_, true)) {
    SPDLOG_ERROR("the state is not saved: a restart loses every change since the last save error=\"{}\"",
                 written.error().Line());
  }
  return written;
}

}  // namespace xschedd
