// Descriptors that outlive the daemon; the test is the service manager.
#include "daemon/service_manager/descriptor_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/abi.h"
#include "common/versions.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/notified.h"

using namespace xschedd;
using test::Notified;

namespace {

std::unique_ptr<Channel> MakeChannel() {
  auto channel = Channel::Make(abi::Newest());
  REQUIRE(channel);
  return std::move(*channel);
}

void Append(const std::vector<std::string>& more, std::vector<std::string>& said) {
  said.insert(said.end(), more.begin(), more.end());
}

UniqueFd Any() {
  return UniqueFd(::dup(STDERR_FILENO));
}

}  // namespace

TEST_CASE("the store has the service manager's capacity, and each client its own number") {
  const Notified notified("8");  // the state's, and two clients' three
  const auto channel = MakeChannel();
  std::vector<std::string> said;
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    REQUIRE(store.IsPresent());
    CHECK(store.StoreChannel(5, *channel));
    CHECK(store.StoreChannel(1'000'000'000'000, *channel));
    CHECK_FALSE(store.HasRoom());
    CHECK_FALSE(store.StoreChannel(6, *channel));
    store.RemoveChannel(7);  // not stored
    CHECK_FALSE(store.HasRoom());
    while (said.size() < 2)  // a removal would drop unsent ones
      Append(notified.Said(), said);
    store.RemoveChannel(5);
    CHECK(store.StoreChannel(6, *channel));
    store.RemoveState();
  }
  Append(notified.Said(), said);
  REQUIRE(said.size() == 5);
  CHECK(said[0].find("FDSTORE=1\nFDNAME=channel-5\n") == 0);
  CHECK(said[1].find("FDSTORE=1\nFDNAME=channel-1000000000000\n") == 0);
  CHECK(said[2].find("FDSTOREREMOVE=1\nFDNAME=channel-5") == 0);
  CHECK(said[3].find("FDSTORE=1\nFDNAME=channel-6\n") == 0);
  CHECK(said[4].find("FDSTOREREMOVE=1\nFDNAME=state") == 0);
}

TEST_CASE("there is no store unless FDSTORE is a number") {
  const std::string most = GENERATE("", "many", "9x", "-1", "99999999999", "1", "0");
  const Notified notified(most.c_str());
  ServiceManager manager;
  DescriptorStore store(manager);
  INFO(most);
  CHECK_FALSE(store.IsPresent());
  CHECK_FALSE(store.StoreChannel(1, *MakeChannel()));
}

TEST_CASE("without FDSTORE the unit's capacity applies, and without a service manager there is no store") {
  {
    const Notified notified(nullptr);
    ServiceManager manager;
    CHECK(DescriptorStore(manager).HasRoom());
  }
  ServiceManager manager;
  DescriptorStore store(manager);
  CHECK_FALSE(store.IsPresent());
  store.StoreState(STDERR_FILENO);
}

TEST_CASE("without free descriptors nothing is stored, and nothing stored is lost") {
  const Notified notified("100");
  const auto channel = MakeChannel();
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    {
      const test::FewDescriptors none(0);
      CHECK_FALSE(store.StoreChannel(1, *channel));
      store.StoreState(STDERR_FILENO);
    }
    {
      const test::FewDescriptors two(2);
      CHECK_FALSE(store.StoreChannel(1, *channel));
    }
    CHECK(notified.Said().empty());
    CHECK(store.StoreChannel(1, *channel));
  }
  CHECK(notified.Said().size() == 1);
}

TEST_CASE("a service manager that is gone does not block the daemon") {
  std::optional<Notified> notified(std::in_place, "100");
  ServiceManager manager;
  DescriptorStore store(manager);
  const char* const set = std::getenv("NOTIFY_SOCKET");
  REQUIRE(set != nullptr);
  const std::string path = set;
  notified.reset();
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);  // as the daemon knows it still
  CHECK(store.StoreChannel(1, *MakeChannel()));
  CHECK(store.StoreChannel(2, *MakeChannel()));
  manager.Notify("STOPPING=1");
}

TEST_CASE("the queue for a stopped service manager is bounded by what is stored") {
  const Notified notified("100");
  const auto open = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto channel = MakeChannel();
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    REQUIRE(store.StoreChannel(1, *channel));
    std::vector<std::string> said;
    while (said.empty())
      said = notified.Said();
    CHECK(said.front().find("FDSTORE=1\nFDNAME=channel-1\n") == 0);
    // More than its socket holds; it reads nothing now.
    for (int i = 0; i < 2'000; ++i)
      manager.Notify("STATUS=client " + std::to_string(i));
    const auto before = open();
    for (std::uint64_t number = 2; number < 1'002; ++number) {
      REQUIRE(store.StoreChannel(number, *channel));
      manager.Ping();
      store.RemoveChannel(number);
    }
    CHECK(open() <= before + 1);  // the socket of the message being sent
    REQUIRE(store.StoreChannel(2'000, *channel));
    store.RemoveChannel(1);
    while (said.back().find("FDSTOREREMOVE=1\n") == std::string::npos)
      Append(notified.Said(), said);
    // What is stored still arrives in order, with few pings.
    const auto pings = std::erase(said, "WATCHDOG=1");
    CHECK(pings >= 1);
    CHECK(pings < 100);
    REQUIRE(said.size() == 2'000 + 3);
    CHECK(said[said.size() - 2].find("FDSTORE=1\nFDNAME=channel-2000\n") == 0);
    CHECK(said.back() == "FDSTOREREMOVE=1\nFDNAME=channel-1");
  }
}

TEST_CASE("stored descriptors are restored by name, and unknown ones are dropped") {
  const Notified notified("100");
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    std::vector<PassedDescriptor> passed;
    for (const char* name :
         {"channel-3", "state", "channel-3", "channel-", "channel-3x", "chan", "channel--1", "channel-3"})
      passed.push_back({name, Any()});
    const auto stored = store.Take(std::move(passed));
    CHECK(stored.states.size() == 1);
    REQUIRE(stored.channels.size() == 1);
    CHECK(stored.channels.at(3).size() == 3);
    // It keeps its number.
    CHECK(store.StoreChannel(4, *MakeChannel()));
    store.RemoveChannel(3);
  }
  const auto said = notified.Said();
  REQUIRE(said.size() == 6);
  CHECK(said[0] == "FDSTOREREMOVE=1\nFDNAME=channel-");
  CHECK(said[3] == "FDSTOREREMOVE=1\nFDNAME=channel--1");
  CHECK(said[5] == "FDSTOREREMOVE=1\nFDNAME=channel-3");
}
