#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch.h"
#include "tools/xschedctl/bundle/redact.h"
#include "tools/xschedctl/bundle/tar.h"
#include "tools/xschedctl/bundle/whole_file.h"

namespace xschedd::ctl {
namespace {

TEST_CASE("an archive has headers with a checksum, whole blocks and an end") {
  const TarEntry entries[] = {{"README", "hello\n"}, {"empty", ""}};
  const std::string archive = Tar(entries, 01234);
  REQUIRE(archive.size() == 10240);
  CHECK(archive.substr(0, 7) == std::string("README\0", 7));
  CHECK(archive.substr(100, 8) == std::string("0000600\0", 8));
  CHECK(archive.substr(124, 12) == std::string("00000000006\0", 12));
  CHECK(archive.substr(136, 12) == std::string("00000001234\0", 12));
  CHECK(archive.substr(257, 8) == std::string("ustar\00000", 8));
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? 0u : static_cast<unsigned char>(archive[i]);
  CHECK(std::strtoul(archive.substr(148, 6).c_str(), nullptr, 8) == sum);
  CHECK(archive.substr(512, 7) == std::string("hello\n\0", 7));
  CHECK(archive.substr(1024, 6) == std::string("empty\0", 6));
  CHECK(archive.find_first_not_of('\0', 1536) == std::string::npos);
}

TEST_CASE("clients have numbers instead of names") {
  Redactor redactor({});
  Json client = {{"exe", "/home/a/train"},
                 {"command", "train --secret"},
                 {"cgroup", "/a"},
                 {"group", "nightly"},
                 {"passed", Json::array({{{"rule", "hipFoo"}, {"count", 1}}})}};
  Json ps = {{"clients", Json::array({client, client})},
             {"unscheduled", {{"processes", Json::array({{{"pid", 1}, {"command", "train"}}})}}}};
  redactor.Clients(&ps);
  const std::string text = ps.dump();
  for (const char* name : {"train", "secret", "nightly", "\"/a\"", "hipFoo"})
    CHECK(text.find(name) == std::string::npos);
  CHECK(ps["clients"][0] == ps["clients"][1]);
  Json event = {{"kind", "connected"}, {"reason", "/home/a/train"}};
  redactor.Event(&event);
  CHECK(event["reason"] == ps["clients"][0]["exe"]);
}

TEST_CASE("a line of the log loses only the values that clients choose") {
  const Redactor redactor({});
  CHECK(redactor.LogLine(R"(client connected pid=1 exe="/a" b" cgroup="/c" group="x" y" priority=3)") ==
        "client connected pid=1 exe=(left out) priority=3");
  CHECK(redactor.LogLine(R"(ready reason="none")") == R"(ready reason="none")");
  CHECK(Redactor::UnitLine("Environment=A=1 B=2") == "Environment=(left out)");
  CHECK(Redactor::UnitLine("Environment=") == "Environment=");
  CHECK(Redactor::UnitLine("Restart=always") == "Restart=always");
}

TEST_CASE("variables' values are replaced by their names") {
  const Redactor redactor(
      {{"XSCHEDD_PRIORITY", "hi"}, {"LD_LIBRARY_PATH", "/opt/mine:/opt/mine/more"}, {"HOME", "/root"}});
  CHECK(redactor.Text("XSCHEDD_PRIORITY=hi is ignored") == "XSCHEDD_PRIORITY=(left out) is ignored");
  CHECK(redactor.Text("\"hi\" is no number of this") == "$XSCHEDD_PRIORITY is no number of this");
  CHECK(redactor.Text("/opt/mine/more/lib.so, /opt/mine/lib.so, /root") ==
        "$LD_LIBRARY_PATH/lib.so, $LD_LIBRARY_PATH/lib.so, /root");
}

TEST_CASE("a file is written whole, for its owner, or not at all") {
  char name[] = "/tmp/whole-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  const std::string path = folder / "file";
  std::ofstream(path) << "old and longer";
  REQUIRE(WriteWhole(path, "new"));
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "new");
  struct stat there {};
  REQUIRE(::stat(path.c_str(), &there) == 0);
  CHECK((there.st_mode & 0777) == 0600);
  const auto full = WriteWhole("/dev/full", "new");
  REQUIRE(!full);
  CHECK(full.error().remedy.starts_with("make room"));
  CHECK(std::filesystem::is_character_file("/dev/full"));
  CHECK(!WriteWhole(folder, "new"));
  CHECK(!WriteWhole(folder / "none" / "file", "new"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace xschedd::ctl
