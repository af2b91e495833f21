// A configuration of several files: which are read, in which order, and which overrides which.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "daemon/config/files.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"

namespace xschedd {
namespace {

// A main file x.toml, which may be missing, and conf.d.
class Files {
 public:
  Files() { std::filesystem::create_directory(Path("conf.d")); }
  std::string Path(const std::string& name) const { return folder_.Path() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  std::string ErrorOf() const {
    const auto config = LoadConfig(Path("x.toml"), true);
    return config ? "" : config.error().Line();
  }

 private:
  test::Folder folder_;
};

}  // namespace

TEST_CASE("a missing file") {
  CHECK(LoadConfig("/nonexistent/x.toml", true).has_value());
  const auto config = LoadConfig("/nonexistent/x.toml", false);
  REQUIRE(!config);
  CHECK(config.error().Line() ==
        "cannot open /nonexistent/x.toml: No such file or directory; check the path given to --config");
  CHECK(!LoadConfig("/tmp", false));
  CHECK(DropInFolder("/etc/xschedd/xschedd.toml") == "/etc/xschedd/conf.d");
  CHECK(DropInFolder("x.toml") == "conf.d");
}

TEST_CASE("conf.d contributes .toml files without a leading dot, in byte order of their names") {
  const Files files;
  for (const char* name : {"b.toml", "a.toml", "B.toml", "10.toml", "9.toml"})
    files.Write(std::string("conf.d/") + name, "[policy]\nturn_ms = 7\n");
  for (const char* name : {".c.toml", "d.toml~", "e.toml.dpkg-old", "f.conf", ".toml", "README"})
    files.Write(std::string("conf.d/") + name, "none of it = counts");
  const auto config = LoadConfig(files.Path("x.toml"), true);
  REQUIRE(config);
  std::vector<std::string> expected;
  for (const char* name : {"10.toml", "9.toml", "B.toml", "a.toml", "b.toml"})
    expected.push_back(files.Path("conf.d/") + name);
  CHECK(config->files == expected);
  CHECK(config->places.at("policy.turn_ms").file == files.Path("conf.d/b.toml"));
  CHECK(!LoadConfig(files.Path("x.toml"), false));
}

TEST_CASE("a later file overrides an earlier one key by key; rules and passthrough are appended") {
  const Files files;
  files.Write("x.toml",
              "passthrough = [\"liba.so\"]\n[daemon]\nspin = true\n[policy]\nname = \"share\"\nturn_ms = 5\n"
              "[[rule]]\nuid = 1\nweight = 1\n[[ceiling]]\nuid = 1\npriority = 1\nweight = 1\n"
              "[[ceiling]]\npriority = 9\n");
  files.Write("conf.d/1.toml",
              "passthrough = [\"libb.so\"]\n[policy]\nturn_ms = 6\n[[rule]]\nuid = 1\nweight = 2\n"
              "[[ceiling]]\nuid = 1\nweight = 2\n");
  const auto config = LoadConfig(files.Path("x.toml"), false);
  REQUIRE(config);
  CHECK(config->spin);
  CHECK(config->policy.name == policy::Name::kShare);
  CHECK(config->policy.turn_ms == 6);
  CHECK(config->passthrough == std::vector<std::string>{"liba.so", "libb.so"});
  REQUIRE(config->rules.size() == 2);
  CHECK(config->rules[0].weight == 1u);
  CHECK(config->rules[1].weight == 2u);
  CHECK(config->rules[1].place.file == files.Path("conf.d/1.toml"));
  CHECK(config->rules[1].place.line == 4);
  CHECK(config->WeightCeiling(1) == 2);
  CHECK(config->PriorityCeiling(1) == 9);
  CHECK(config->places.at("policy.name").file == files.Path("x.toml"));
  CHECK((config->places.at("policy.turn_ms").file == files.Path("conf.d/1.toml") &&
         config->places.at("policy.turn_ms").line == 3));
  files.Write("conf.d/2.toml", "passthrough = []\n");
  CHECK(LoadConfig(files.Path("x.toml"), false)->passthrough.empty());
}

TEST_CASE("an error in one of the files names the file") {
  const Files files;
  files.Write("x.toml", "[policy]\nturn_ms = 5\n");
  files.Write("conf.d/1.toml", "[policy]\n\nturn_ms = 0\n");
  CHECK(files.ErrorOf().find(files.Path("conf.d/1.toml") + ":3:11: \"turn_ms\" = 0 is out of range; ") == 0);
  files.Write("conf.d/1.toml", "[[ceiling]]\nweight = 2\n[[ceiling]]\nweight = 3\n");
  CHECK(files.ErrorOf().find(files.Path("conf.d/1.toml") + ":3:1: a second [[ceiling]] without a uid; ") == 0);
  files.Write("conf.d/1.toml", "");
  CHECK(files.ErrorOf().empty());
  std::filesystem::create_symlink("nowhere", files.Path("conf.d/2.toml"));
  CHECK(files.ErrorOf() ==
        "cannot open " + files.Path("conf.d/2.toml") + ": No such file or directory; correct it or remove it");
  std::filesystem::remove(files.Path("conf.d/2.toml"));
  std::filesystem::create_directory(files.Path("conf.d/2.toml"));
  CHECK(files.ErrorOf().find("cannot read " + files.Path("conf.d/2.toml") + ": Is a directory; ") == 0);
  std::filesystem::remove(files.Path("conf.d/2.toml"));
  // A FIFO without a writer.
  REQUIRE(::mkfifo(files.Path("conf.d/2.toml").c_str(), 0600) == 0);
  CHECK(files.ErrorOf().empty());
  std::filesystem::remove_all(files.Path("conf.d"));
  files.Write("conf.d", "");
  CHECK(files.ErrorOf().find("cannot read the folder " + files.Path("conf.d") + ": Not a directory; ") == 0);
}

}  // namespace xschedd
