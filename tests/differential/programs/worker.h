// A second thread that executes functions one after the other, for results that depend on the calling thread.
// Thread rule: Do is called by one thread.
#pragma once

#include <functional>
#include <thread>

#include "turns.h"

namespace differential {

class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {}
  ~Worker() {
    job_ = nullptr;
    asked_.Next();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when it is done.
  void Do(std::function<void()> job) {
    job_ = std::move(job);
    asked_.Next();
    done_.WaitFor(++jobs_);
  }

 private:
  void Run() {
    for (unsigned turn = 1;; ++turn) {
      asked_.WaitFor(turn);
      if (!job_) return;
      job_();
      done_.Next();
    }
  }

  Turns asked_, done_;
  unsigned jobs_ = 0;
  std::function<void()> job_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace differential
