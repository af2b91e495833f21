// The folders and sockets of claims, in a temporary folder.
#include "daemon/connections/claim_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;
namespace fs = std::filesystem;

namespace {

Claim Socketed(const std::string& name, std::uint64_t id) {
  Claim claim;
  claim.name = name;
  claim.id = id;
  claim.has_socket = true;
  return claim;
}

UniqueFd ConnectAt(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.Reset();
  return fd;
}

struct Sockets {
  Sockets() { Begin(); }
  void Begin() {
    sockets.emplace(io, folder.Path(), [this](UniqueFd, std::uint64_t claim) { accepted.push_back(claim); });
  }
  void Poll() {
    io.restart();
    io.poll();
  }
  std::string Path(const std::string& name) const { return folder.Path() + "/claims/" + name; }

  test::Folder folder;
  boost::asio::io_context io;
  std::vector<std::uint64_t> accepted;
  std::optional<ClaimSockets> sockets;
};

mode_t FileMode(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode;
}

}  // namespace

TEST_CASE("a connection through a claim's socket is known as that claim's, once the socket serves") {
  Sockets world;
  REQUIRE(world.sockets->Open(Socketed("one", 1)));
  REQUIRE(
      world.sockets->Open(Socketed(std::string(kMaxClaimNameBytes, 'n'), 2)));  // longer than a socket's path may be
  CHECK((FileMode(world.folder.Path() + "/claims") & 0777) == 0700);
  CHECK((FileMode(world.Path("one")) & 0777) == 0755);
  CHECK(FileMode(world.Path("one") + "/client.sock") == (S_IFSOCK | 0666));
  const UniqueFd early = ConnectAt(world.Path("one") + "/client.sock");
  REQUIRE(early.IsValid());
  world.Poll();
  CHECK(world.accepted.empty());
  world.sockets->Start();
  REQUIRE(world.sockets->Open(Socketed("three", 3)));
  const UniqueFd late = ConnectAt(world.Path("three") + "/client.sock");
  for (int i = 0; i < 3; ++i)
    world.Poll();
  CHECK(world.accepted == std::vector<std::uint64_t>{1, 3});
  REQUIRE(world.sockets->Open(Socketed("one", 1)));  // open already
  world.sockets->Close(Socketed("one", 1));
  CHECK(!fs::exists(world.Path("one")));
  CHECK(fs::exists(world.Path("three")));
  world.sockets->Close(Socketed("one", 1));
  world.sockets->Stop();
}

TEST_CASE("the next daemon makes the socket in the same folder, and removes those without a claim") {
  Sockets world;
  REQUIRE(world.sockets->Open(Socketed("one", 1)));
  REQUIRE(world.sockets->Open(Socketed("two", 2)));
  struct stat before {};
  REQUIRE(::stat(world.Path("one").c_str(), &before) == 0);
  world.sockets->Stop();
  world.Begin();
  REQUIRE(world.sockets->Open(Socketed("one", 1)));
  world.sockets->Start();
  struct stat after {};
  REQUIRE(::stat(world.Path("one").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(ConnectAt(world.Path("one") + "/client.sock").IsValid());
  // The engine may still put the claim again.
  CHECK(fs::exists(world.Path("two")));
  world.sockets->RemoveUnclaimed();
  CHECK(!fs::exists(world.Path("two")));
  CHECK(fs::exists(world.Path("one") + "/client.sock"));
  world.sockets->Stop();
}

TEST_CASE("nothing that a container puts into its folder is followed") {
  Sockets world;
  const std::string secret = world.folder.Path() + "/secret";
  std::ofstream(secret) << "1";
  fs::permissions(secret, fs::perms::owner_read);
  fs::create_directory(world.folder.Path() + "/elsewhere");
  fs::create_directory(world.folder.Path() + "/claims");

  SECTION("a link in place of the socket") {
    fs::create_directory(world.Path("one"));
    fs::create_symlink(secret, world.Path("one") + "/client.sock");
    REQUIRE(world.sockets->Open(Socketed("one", 1)));
    CHECK(S_ISSOCK(FileMode(world.Path("one") + "/client.sock")));
  }
  SECTION("a folder in place of the socket: that claim gets no socket") {
    fs::create_directories(world.Path("one") + "/client.sock/deep");
    CHECK(world.sockets->Open(Socketed("one", 1)).error().what.find("cannot replace client.sock of claim \"one\"") ==
          0);
    REQUIRE(world.sockets->Open(Socketed("two", 2)));
    world.sockets->RemoveUnclaimed();
    CHECK(fs::exists(world.Path("one")));  // it stays, and is reported
  }
  SECTION("a link in place of the folder") {
    fs::create_symlink(world.folder.Path() + "/elsewhere", world.Path("one"));
    CHECK(!world.sockets->Open(Socketed("one", 1)));
    CHECK(fs::is_empty(world.folder.Path() + "/elsewhere"));
    world.sockets->RemoveUnclaimed();
    CHECK(!fs::is_symlink(world.Path("one")));
    CHECK(fs::exists(world.folder.Path() + "/elsewhere"));
  }
  SECTION("links in it, when it is removed") {
    REQUIRE(world.sockets->Open(Socketed("one", 1)));
    fs::create_symlink(secret, world.Path("one") + "/link");
    fs::create_symlink(world.folder.Path() + "/elsewhere", world.Path("one") + "/folder");
    world.sockets->Close(Socketed("one", 1));
    CHECK(!fs::exists(world.Path("one")));
    CHECK(fs::exists(world.folder.Path() + "/elsewhere"));
  }
  CHECK(fs::file_size(secret) == 1);
  CHECK((FileMode(secret) & 0777) == 0400);
  world.sockets->Stop();
}

TEST_CASE("a link in place of the folder of all claims is refused") {
  Sockets world;
  fs::create_directory(world.folder.Path() + "/elsewhere");
  fs::create_symlink("elsewhere", world.folder.Path() + "/claims");
  CHECK(!world.sockets->Open(Socketed("one", 1)));
  world.sockets->RemoveUnclaimed();
  CHECK(fs::is_empty(world.folder.Path() + "/elsewhere"));
}

TEST_CASE("a claim that gets no socket, for lack of descriptors or of the folder, can be put again") {
  Sockets world;
  world.sockets->RemoveUnclaimed();  // before there is a folder
  // At the runtime folder, at that of all claims, at the socket.
  for (const rlim_t more : {0, 1, 2}) {
    test::FewDescriptors few(more);
    const auto opened = world.sockets->Open(Socketed("one", 1));
    few.End();
    REQUIRE(!opened);
    CHECK(opened.error().what.ends_with("Too many open files"));
    CHECK(!ConnectAt(world.Path("one") + "/client.sock").IsValid());
  }
  REQUIRE(world.sockets->Open(Socketed("one", 1)));
  CHECK(ConnectAt(world.Path("one") + "/client.sock").IsValid());
  {
    const test::FewDescriptors none(0);
    world.sockets->Close(Socketed("one", 1));  // its folder stays, for the next daemon to remove
  }
  CHECK(fs::exists(world.Path("one")));
  world.sockets->RemoveUnclaimed();
  CHECK(!fs::exists(world.Path("one")));
  fs::remove_all(world.folder.Path());
  CHECK(world.sockets->Open(Socketed("one", 1)).error().what.ends_with("No such file or directory"));
}
