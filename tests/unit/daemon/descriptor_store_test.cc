// What outlives the daemon, and how a service manager is told: the test is the service manager.
#include "daemon/ipc/descriptor_store.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/abi.h"
#include "common/versions.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;

namespace {

// Its notification socket, and the environment that a service manager gives.
class Notified {
 public:
  explicit Notified(const char* most) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_.Path() + "/notify";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd_.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    if (most != nullptr) ::setenv("FDSTORE", most, 1);
  }
  ~Notified() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("FDSTORE");
  }
  Notified(const Notified&) = delete;
  Notified& operator=(const Notified&) = delete;
  // All that was said so far, a line each.
  std::vector<std::string> Said() const {
    std::vector<std::string> said;
    char buffer[512];
    for (;;) {
      const ssize_t size = ::recv(fd_.Get(), buffer, sizeof buffer, 0);
      if (size < 0) return said;
      said.emplace_back(buffer, static_cast<std::size_t>(size));
    }
  }

 private:
  UniqueFd fd_;
  const test::Folder folder_;
};

std::unique_ptr<Channel> MakeChannel() {
  auto channel = Channel::Make(abi::Newest());
  REQUIRE(channel);
  return std::move(*channel);
}

UniqueFd Any() {
  return UniqueFd(::dup(STDERR_FILENO));
}

}  // namespace

TEST_CASE("a store has as much room as the service manager says, and numbers are the smallest that are free") {
  const Notified notified("8");  // the state's, and two clients' three
  const auto channel = MakeChannel();
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    REQUIRE(store.IsPresent());
    CHECK(store.StoreChannel(*channel) == 0U);
    CHECK(store.StoreChannel(*channel) == 1U);
    CHECK_FALSE(store.HasRoom());
    CHECK_FALSE(store.StoreChannel(*channel));
    store.RemoveChannel(7);  // of which there is none
    CHECK_FALSE(store.HasRoom());
    store.RemoveChannel(0);
    CHECK(store.StoreChannel(*channel) == 0U);
    store.RemoveState();
  }
  const auto said = notified.Said();
  REQUIRE(said.size() == 5);
  CHECK(said[0].find("FDSTORE=1\nFDNAME=channel-0") == 0);
  CHECK(said[1].find("FDSTORE=1\nFDNAME=channel-1") == 0);
  CHECK(said[2].find("FDSTOREREMOVE=1\nFDNAME=channel-0") == 0);
  CHECK(said[3].find("FDSTORE=1\nFDNAME=channel-0") == 0);
  CHECK(said[4].find("FDSTOREREMOVE=1\nFDNAME=state") == 0);
}

TEST_CASE("what a service manager says of its store is a number, or there is no store") {
  const std::string most = GENERATE("", "many", "9x", "-1", "99999999999", "1", "0");
  const Notified notified(most.c_str());
  ServiceManager manager;
  DescriptorStore store(manager);
  INFO(most);
  CHECK_FALSE(store.IsPresent());
  CHECK_FALSE(store.StoreChannel(*MakeChannel()));
}

TEST_CASE("where nothing is said of the store it is the unit's, and without a service manager there is none") {
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

TEST_CASE("without descriptors nothing is stored, and nothing of it is forgotten") {
  const Notified notified("100");
  const auto channel = MakeChannel();
  {
    ServiceManager manager;
    DescriptorStore store(manager);
    {
      const test::FewDescriptors none(0);
      CHECK_FALSE(store.StoreChannel(*channel));
      store.StoreState(STDERR_FILENO);
    }
    {
      const test::FewDescriptors two(2);
      CHECK_FALSE(store.StoreChannel(*channel));
    }
    CHECK(notified.Said().empty());
    CHECK(store.StoreChannel(*channel) == 0U);
  }
  CHECK(notified.Said().size() == 1);
}

TEST_CASE("a service manager that has gone is told nothing, and hinders nobody") {
  std::optional<Notified> notified(std::in_place, "100");
  ServiceManager manager;
  DescriptorStore store(manager);
  const std::string path = std::getenv("NOTIFY_SOCKET");
  notified.reset();
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);  // as the daemon knows it still
  CHECK(store.StoreChannel(*MakeChannel()) == 0U);
  CHECK(store.StoreChannel(*MakeChannel()) == 1U);
  manager.Notify("STOPPING=1");
}

TEST_CASE("what an earlier daemon stored is taken by its name, and what nobody knows is given up") {
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
    // It keeps its number; another gets the first.
    CHECK(store.StoreChannel(*MakeChannel()) == 0U);
    store.RemoveChannel(3);
  }
  const auto said = notified.Said();
  REQUIRE(said.size() == 6);
  CHECK(said[0] == "FDSTOREREMOVE=1\nFDNAME=channel-");
  CHECK(said[3] == "FDSTOREREMOVE=1\nFDNAME=channel--1");
  CHECK(said[5] == "FDSTOREREMOVE=1\nFDNAME=channel-3");
}
