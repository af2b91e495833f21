#include "daemon/state/state_saver.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace xschedd {
namespace {

// Changes within this time are saved together.
constexpr std::chrono::milliseconds kDelay{10};

}  // namespace

StateSaver::StateSaver(boost::asio::io_context& io, Serialise serialise)
    : io_(io), serialise_(std::move(serialise)), delay_(io) {}

void StateSaver::NoteChange(std::uint64_t part, Urgency urgency) {
  is_urgent_ = is_urgent_ || urgency == Urgency::kNow;
  if (!writer_) return;
  changed_.insert(part);
  if (std::exchange(is_delayed_, true)) return;
  delay_.expires_after(kDelay);
  delay_.async_wait([this](const boost::system::error_code& error) {
    if (!error && is_delayed_) Save();
  });
}

void StateSaver::Save(const PartIds& parts, StateWriter::Saved saved) {
  is_delayed_ = false;
  delay_.cancel();
  changed_.insert(parts.begin(), parts.end());
  writer_->Put(serialise_(changed_), std::move(saved));
  changed_.clear();
}

void StateSaver::WhenSaved(StateWriter::Saved done) {
  if (!std::exchange(is_urgent_, false)) return done({});
  if (!writer_) return done(Fail(why_unsaved_));
  Save({}, [&io = io_, done = std::move(done)](Result<void> written) {
    boost::asio::post(io, [done, written = std::move(written)] { done(written); });
  });
}

void StateSaver::Serving() {
  if (writer_) writer_->EndStart();
}

void StateSaver::Finish(const PartIds& parts) {
  if (writer_) {
    Save(parts);
    writer_->Flush();
  }
  delay_.cancel();
}

}  // namespace xschedd
