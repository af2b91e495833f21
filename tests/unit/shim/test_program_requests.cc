// A program's requests: refusals, messages to the daemon, and effects on the rest of the client.
#include <string>
#include <utility>
#include <vector>

#include "client-shim/core/program_requests.h"
#include "client-shim/include/xschedd.h"
#include "common/priority.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

struct Program : ProgramRequests::Effects {
  Environment environment;
  int state = XSCHEDD_OK;
  int told = 0;  // how often the daemon is to be told of the hints
  std::vector<void*> told_streams;
  std::string followed;  // a letter each: p priorities of streams, d deadlines, h holds

  int HintsChanged() override {
    ++told;
    return state;
  }
  int StreamDeadlineChanged(void* stream) override {
    told_streams.push_back(stream);
    return state;
  }
  int CheckSession() const override { return state; }
  void StreamPrioritiesChanged() override { followed += 'p'; }
  void DeadlinesChanged() override { followed += 'd'; }
  void HoldsChanged() override { followed += 'h'; }
  std::string Followed() { return std::exchange(followed, {}); }
};

void* const kOne = reinterpret_cast<void*>(16);
void* const kTwo = reinterpret_cast<void*>(32);
void* const kLegacy = reinterpret_cast<void*>(1);

}  // namespace

TEST_CASE("values out of range are refused and change nothing", "[requests]") {
  Program program;
  ProgramRequests requests(program.environment, &program);
  CHECK(requests.SetPriority(101) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.SetStreamPriority(kOne, -101) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.SetWeight(10'001) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.SetStreamWeight(kOne, 10'001) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.SetDeadline(3'600'000'001) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.SetStreamDeadline(kOne, 3'600'000'001) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.Hold(-2, 1000) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.Hold(0, 0) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.HoldStream(kOne, 3'600'000'001) == XSCHEDD_ERROR_INVALID);
  CHECK(requests.Release(64) == XSCHEDD_ERROR_INVALID);
  CHECK(program.told == 0);
  CHECK(program.told_streams.empty());
  CHECK(program.Followed().empty());
  CHECK_FALSE(requests.HoldsAny());
  CHECK_FALSE(requests.DeadlinesSet().Any());
}

TEST_CASE("the daemon is told the highest hints when they change", "[requests]") {
  Program program;
  program.environment.priority = 5;
  ProgramRequests requests(program.environment, &program);
  CHECK(requests.Priority().Highest() == 5);
  CHECK(requests.SetPriority(10) == XSCHEDD_OK);
  CHECK(program.told == 1);
  CHECK(requests.ToTell().priority == 10);
  CHECK(requests.SetStreamPriority(kOne, 3) == XSCHEDD_OK);  // below: nothing new for the daemon
  CHECK(program.told == 1);
  CHECK(program.Followed() == "p");  // but the streams are ordered anew
  CHECK(requests.SetStreamPriority(kOne, 30) == XSCHEDD_OK);
  CHECK(program.told == 2);
  CHECK(requests.ToTell().priority == 30);
  CHECK(requests.SetPriority(XSCHEDD_PRIORITY_NONE) == XSCHEDD_OK);
  CHECK(program.told == 2);
  requests.ForgetStream(kOne);
  CHECK(program.told == 3);
  CHECK(requests.ToTell().priority == 5);  // the environment's
  CHECK(requests.SetWeight(200) == XSCHEDD_OK);
  CHECK(requests.SetStreamWeight(kOne, 100) == XSCHEDD_OK);
  CHECK(program.told == 4);
  CHECK(requests.ToTell().weight == 200u);
  CHECK(requests.SetWeight(XSCHEDD_WEIGHT_NONE) == XSCHEDD_OK);
  CHECK(program.told == 5);
  CHECK(requests.ToTell().weight == 100u);
}

TEST_CASE("without a daemon a hint is kept, and the answer says so", "[requests]") {
  Program program;
  program.state = GENERATE(XSCHEDD_ERROR_NOT_CONNECTED, XSCHEDD_ERROR_INERT);
  ProgramRequests requests(program.environment, &program);
  CHECK(requests.SetPriority(10) == program.state);
  CHECK(requests.SetPriority(10) == program.state);  // also if nothing changes
  CHECK(requests.Priority().Highest() == 10);
  CHECK(requests.SetDeadline(500) == program.state);
  CHECK(requests.ToTell().deadline_us == 500u);
}

TEST_CASE("the daemon and the trackers are told of a deadline each time it is set", "[requests]") {
  Program program;
  program.environment.deadline_us = 700;
  ProgramRequests requests(program.environment, &program);
  CHECK(requests.ToTell().deadline_us == 700u);
  CHECK(requests.SetStreamDeadline(kLegacy, 900) == XSCHEDD_OK);
  CHECK(requests.DeadlinesSet().Of(nullptr) == 900);  // the default stream has one handle
  CHECK(requests.SetStreamDeadline(kOne, 800) == XSCHEDD_OK);
  CHECK(requests.DeadlinesSet().OfStream(kOne) == 800);
  CHECK(program.told_streams == std::vector<void*>{kLegacy, kOne});
  CHECK(program.told == 0);
  CHECK(requests.SetDeadline(0) == XSCHEDD_OK);
  CHECK(requests.SetDeadline(0) == XSCHEDD_OK);
  CHECK(program.told == 2);
  CHECK(program.Followed() == "dddd");
  CHECK(requests.ToTell().deadline_us == std::nullopt);
}

TEST_CASE("holds are not sent to the daemon, and end with the stream", "[requests]") {
  Program program;
  program.state = XSCHEDD_ERROR_NOT_CONNECTED;
  ProgramRequests requests(program.environment, &program);
  CHECK(requests.HoldStream(kOne, 1'000'000) == XSCHEDD_OK);
  CHECK(requests.HoldsAny());
  requests.ForgetStream(kTwo);
  CHECK(requests.HoldsAny());
  requests.ForgetStream(kOne);
  CHECK_FALSE(requests.HoldsAny());
  CHECK(requests.HoldStream(kLegacy, 1'000'000) == XSCHEDD_OK);
  CHECK(requests.ReleaseStream(nullptr) == XSCHEDD_OK);
  CHECK_FALSE(requests.HoldsAny());
  CHECK(program.Followed() == "hhhhh");
  // A waiting thread notices a hold that has expired.
  CHECK(requests.Hold(OwnHolds::kAllDevices, 1) == XSCHEDD_OK);
  CHECK(program.Followed() == "h");
  requests.WaitWhileHeld(0, kOne);
  CHECK(program.Followed() == "h");
  CHECK_FALSE(requests.HoldsAny());
  program.state = XSCHEDD_ERROR_INERT;
  CHECK(requests.Hold(0, 1'000'000) == XSCHEDD_ERROR_INERT);
  CHECK(requests.HoldStream(kOne, 1'000'000) == XSCHEDD_ERROR_INERT);
  CHECK_FALSE(requests.HoldsAny());
}
