// Messages to a client: waiting ones are bounded, and dropped ones are counted.
#include "daemon/sessions/outbox.h"

#include <string>
#include <vector>

#include "tests/catch.h"

using namespace xschedd;

namespace {

struct Reader {
  explicit Reader(std::uint32_t memory_kib = 1'000) : quotas(Limits(memory_kib)) { outbox.Begin(&memory); }
  static Quota Limits(std::uint32_t memory_kib) {
    Quota quota;
    quota.memory_kib_per_uid = memory_kib;
    return quota;
  }
  void ReadOne() {
    outbox.Written();
    outbox.WriteNext();
  }
  std::string Last() const { return read.back()->notice().text(); }

  Quotas quotas;
  Quotas::Holding memory{quotas, 1000, QuotaKind::kMemory};
  std::vector<const v1::DaemonMessage*> read;
  Outbox outbox{[this](const v1::DaemonMessage* message) { read.push_back(message); }};
};

v1::DaemonMessage Configuration() {
  v1::DaemonMessage message;
  message.mutable_configuration()->set_activity_interval_ms(7);
  return message;
}

}  // namespace

TEST_CASE("one message is written at a time, in order") {
  Reader reader;
  CHECK(reader.outbox.Notice("one"));
  CHECK(reader.outbox.Send(Configuration()) == Outbox::Outcome::kTaken);
  REQUIRE(reader.read.size() == 1);
  CHECK(reader.Last() == "one");
  reader.ReadOne();
  REQUIRE(reader.read.size() == 2);
  CHECK(reader.read.back()->has_configuration());
  reader.ReadOne();
  CHECK(reader.read.size() == 2);
}

TEST_CASE("a client that does not read loses notices, then its session") {
  Reader reader;
  int taken = 0;
  while (reader.outbox.Notice("again"))
    ++taken;
  CHECK(taken == 32);
  while (reader.outbox.Send(Configuration()) == Outbox::Outcome::kTaken)
    ++taken;
  CHECK(taken == 64);
  CHECK(reader.outbox.Send(Configuration()) == Outbox::Outcome::kUnread);
}

TEST_CASE("a client with too many notices loses some, and is told how many") {
  Reader reader;
  int taken = 0;
  while (taken < 1000 && reader.outbox.Notice("again")) {
    ++taken;
    reader.ReadOne();
  }
  CHECK(taken >= 64);
  CHECK(taken < 1000);
  CHECK_FALSE(reader.outbox.Notice("again"));
  while (!reader.outbox.Notice("later"))
    continue;
  CHECK(reader.Last().starts_with("later ("));
  CHECK(reader.Last().ends_with(" earlier notices were dropped)"));
}

TEST_CASE("unsent messages count against the user's memory until they are written") {
  Reader reader(1);
  CHECK(reader.outbox.Notice(std::string(600, 'x')));
  CHECK_FALSE(reader.outbox.Notice(std::string(600, 'y')));
  CHECK(reader.outbox.Send(Configuration()) == Outbox::Outcome::kTaken);
  v1::DaemonMessage large;
  large.mutable_notice()->set_text(std::string(600, 'z'));
  CHECK(reader.outbox.Send(large) == Outbox::Outcome::kMemory);
  reader.ReadOne();
  CHECK(reader.outbox.Send(large) == Outbox::Outcome::kTaken);
}
