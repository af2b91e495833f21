#include "daemon/sessions/outbox.h"

#include "common/clock.h"

namespace xschedd {

Outbox::Outcome Outbox::Send(v1::DaemonMessage message) {
  if (messages_.size() >= kMaxWaiting) return Outcome::kUnread;
  if (!memory_->Add(message.ByteSizeLong())) return Outcome::kMemory;
  Push(std::move(message));
  return Outcome::kTaken;
}

bool Outbox::Notice(const std::string& text) {
  v1::DaemonMessage message;
  message.mutable_notice()->set_text(text);
  if (notices_left_out_ != 0) {
    message.mutable_notice()->mutable_text()->append(" (" + std::to_string(notices_left_out_) +
                                                     " earlier notices were dropped)");
  }
  // A full memory quota only drops the notice: another client of the user must not cost this one its session.
  if (messages_.size() >= kMaxNotices || !notices_.Take(MonotonicNs()) || !memory_->Add(message.ByteSizeLong())) {
    ++notices_left_out_;
    return false;
  }
  notices_left_out_ = 0;
  Push(std::move(message));
  return true;
}

void Outbox::Push(v1::DaemonMessage message) {
  messages_.push_back(std::move(message));
  if (messages_.size() == 1) WriteNext();
}

void Outbox::Written() {
  memory_->Remove(messages_.front().ByteSizeLong());
  messages_.pop_front();
}

void Outbox::WriteNext() {
  if (!messages_.empty()) write_(&messages_.front());
}

}  // namespace xschedd
