// The messages about hints and streams: they tell only what the daemon does not know, in an order that it accepts.
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client-shim/core/state_reports.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

constexpr std::uint64_t kDefault = StateReports::kDefaultQueue;

// A word for each message: +7 -7, 7=900.
std::string Said(const std::vector<OutgoingMessage>& messages) {
  std::string said;
  for (const OutgoingMessage& message : messages) {
    if (!said.empty()) said += ' ';
    if (const auto* created = std::get_if<QueueCreatedMessage>(&message)) said += '+' + std::to_string(created->queue);
    if (const auto* destroyed = std::get_if<QueueDestroyedMessage>(&message))
      said += '-' + std::to_string(destroyed->queue);
    if (const auto* hint = std::get_if<HintMessage>(&message))
      said += std::to_string(hint->queue.value()) + '=' + std::to_string(hint->deadline_us.value());
  }
  return said;
}

LiveQueue Queue(std::uint64_t id, std::uint64_t number, std::uint64_t deadline_us = 0) {
  return {number, {id, 0, 0, 0}, deadline_us};
}

// A daemon, as it treats these messages. It may remember deadlines from one session to the next.
struct Daemon {
  std::map<std::uint64_t, LiveQueue> queues;
  std::map<std::uint64_t, std::uint64_t> restored;

  void Begin(bool remembers) {
    const std::uint64_t default_us = remembers ? queues[kDefault].deadline_us : 0;
    restored.clear();
    for (const auto& [id, queue] : queues)
      if (remembers) restored[id] = queue.deadline_us;
    queues = {{kDefault, Queue(kDefault, 0, default_us)}};
  }
  // Fails at what a daemon would refuse.
  void Take(const OutgoingMessage& message) {
    if (const auto* created = std::get_if<QueueCreatedMessage>(&message)) {
      REQUIRE(queues.emplace(created->queue, LiveQueue{0, *created, restored[created->queue]}).second);
      restored.erase(created->queue);
    } else if (const auto* destroyed = std::get_if<QueueDestroyedMessage>(&message)) {
      REQUIRE(queues.erase(destroyed->queue) == 1);
    } else {
      const auto& hint = std::get<HintMessage>(message);
      REQUIRE(queues.contains(*hint.queue));
      queues[*hint.queue].deadline_us = *hint.deadline_us;
    }
  }
};

}  // namespace

TEST_CASE("hints that differ are told, and a removed one as its default", "[reports]") {
  StateReports reports;
  reports.Begin({5, std::nullopt, std::nullopt});
  CHECK_FALSE(reports.UpdateHints({5, std::nullopt, std::nullopt}));
  auto hint = reports.UpdateHints({9, std::nullopt, 700});
  REQUIRE(hint);
  CHECK(hint->priority == 9);
  CHECK(hint->weight == std::nullopt);
  CHECK(hint->deadline_us == 700u);
  CHECK_FALSE(reports.UpdateHints({9, std::nullopt, 700}));
  hint = reports.UpdateHints({std::nullopt, 30, std::nullopt});
  REQUIRE(hint);
  CHECK(hint->priority == 0);
  CHECK(hint->weight == 30u);
  CHECK(hint->deadline_us == 0u);
}

TEST_CASE("a queue is told as what has become of it", "[reports]") {
  StateReports reports;
  reports.Begin({});
  CHECK(Said(reports.UpdateQueue(7, std::nullopt)).empty());  // made and destroyed meanwhile
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 1))) == "+7");
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 1))).empty());
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 1, 900))) == "7=900");
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 1, 900))).empty());
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 2, 900))) == "-7 +7 7=900");  // another stream at the same handle
  CHECK(Said(reports.UpdateQueue(7, std::nullopt)) == "-7");
  CHECK(Said(reports.UpdateQueue(7, std::nullopt)).empty());
  CHECK(Said(reports.UpdateQueue(8, Queue(8, 3, 600))) == "+8 8=600");
}

TEST_CASE("default streams have deadlines and are never created", "[reports]") {
  StateReports reports;
  reports.Begin({});
  CHECK(Said(reports.UpdateQueue(kDefault, Queue(kDefault, 0))).empty());
  CHECK(Said(reports.UpdateQueue(kDefault, Queue(kDefault, 0, 500))) == "0=500");
  reports.Begin({});
  CHECK(Said(reports.UpdateQueue(kDefault, Queue(kDefault, 0))) == "0=0");  // a restarted daemon has the old one
  CHECK(Said(reports.UpdateQueue(kDefault, Queue(kDefault, 0))).empty());
}

TEST_CASE("a new session is told all that lives, and corrects what a restarted daemon may remember", "[reports]") {
  StateReports reports;
  reports.Begin({});
  reports.UpdateQueue(7, Queue(7, 1, 900));
  reports.UpdateQueue(8, Queue(8, 2));
  reports.UpdateQueue(9, Queue(9, 3, 300));
  reports.Begin({});
  CHECK(reports.Known().size() == 3);
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 1, 900))) == "+7 7=900");  // one that was not restarted, too
  CHECK(Said(reports.UpdateQueue(8, Queue(8, 2))) == "+8");
  CHECK(Said(reports.UpdateQueue(9, Queue(9, 4))) == "+9 9=0");
  reports.Begin({});
  CHECK(Said(reports.UpdateQueue(7, std::nullopt)).empty());
  CHECK(Said(reports.UpdateQueue(7, Queue(7, 5))) == "+7 7=0");
  CHECK(Said(reports.UpdateQueue(8, std::nullopt)).empty());
  CHECK(reports.Known().size() == 2);
}

TEST_CASE("however changes are joined, a daemon refuses nothing and knows what there is", "[reports]") {
  constexpr std::uint64_t kQueues = 6;
  std::mt19937 random(GENERATE(range(0u, 50u)));
  const auto pick = [&random](unsigned count) { return random() % count; };
  StateReports reports;
  Daemon daemon;
  std::map<std::uint64_t, LiveQueue> live{{kDefault, Queue(kDefault, 0)}};
  int made = 0;
  const auto tell = [&](std::uint64_t id) {
    const auto found = live.find(id);
    const auto now = found == live.end() ? std::nullopt : std::optional(found->second);
    for (const OutgoingMessage& message : reports.UpdateQueue(id, now))
      daemon.Take(message);
  };
  const auto tell_all = [&] {
    for (std::uint64_t id = 0; id < kQueues; ++id)
      tell(id);
  };
  const auto begin = [&] {
    daemon.Begin(pick(2) == 0);
    reports.Begin({});
    tell_all();
  };
  begin();
  for (int step = 0; step < 1000; ++step) {
    const std::uint64_t id = pick(kQueues);
    const std::uint64_t deadline_us = 100 * pick(3);
    if (pick(10) == 0) begin();
    if (id != kDefault && pick(3) == 0) {
      live.erase(id);
    } else if (id != kDefault && pick(2) == 0) {
      ++made;
      live[id] = LiveQueue{static_cast<std::uint64_t>(made), {id, 0, made, 0}, deadline_us};
    } else if (live.contains(id)) {
      live[id].deadline_us = deadline_us;
    }
    if (pick(3) != 0) tell(id);
    if (pick(10) != 0) continue;
    tell_all();
    REQUIRE(daemon.queues.size() == live.size());
    for (const auto& [queue, state] : live) {
      REQUIRE(daemon.queues[queue].deadline_us == state.deadline_us);
      REQUIRE(daemon.queues[queue].created.native_priority == state.created.native_priority);
    }
  }
}
