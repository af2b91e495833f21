// Annotations of running pods: the kubelet's file, its changes, and what must not be read.
#include "tools/nri/pod_files.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tools/nri/plugin.h"

using namespace xschedd::nri;
using xschedd::Result;
namespace fs = std::filesystem;

namespace {

constexpr char kUid[] = "0a1b2c3d-0000-1111-2222-333344445555";
constexpr char kContainer[] = "11111111111111111111111111111111ffffffffffffffffffffffffffffffff";
constexpr char kContainerClaim[] = "nri-11111111111111111111111111111111";

// A kubelet's folder.
class Kubelet {
 public:
  Kubelet() {
    char name[] = "/tmp/xschedd-kubelet-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    root = name;
  }
  ~Kubelet() { fs::remove_all(root); }
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  fs::path Folder(const std::string& kind = "downward-api") const {
    return root / "pods" / kUid / "volumes" / ("kubernetes.io~" + kind) / kAnnotationsVolume;
  }
  // As the kubelet does: a new folder with all files, to which ..data then leads.
  void Write(const std::string& text, const std::string& kind = "downward-api") {
    const fs::path folder = Folder(kind);
    const std::string version = "..2026_11_25_" + std::to_string(++versions);
    fs::create_directories(folder / version);
    std::ofstream(folder / version / kAnnotationsFile) << text;
    fs::create_symlink(version, folder / "..data_tmp");
    fs::rename(folder / "..data_tmp", folder / "..data");
    if (!fs::is_symlink(folder / kAnnotationsFile)) fs::create_symlink("..data/annotations", folder / kAnnotationsFile);
  }

  fs::path root;
  int versions = 0;
};

std::string Value(PodFiles& files) {
  const auto read = files.Follow(kUid);
  if (!read) return "error: " + read.error().Line();
  if (!*read) return "none";
  const auto found = (*read)->find("xschedd.io/priority");
  return found == (*read)->end() ? "without" : found->second;
}

bool IsReadable(int fd) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

class KeptClaims : public Claims {
 public:
  Result<void> Put(const xschedd::v1::Claim& claim) override {
    ++puts;
    there[claim.name()] = claim;
    return {};
  }
  Result<void> Delete(const std::string& name) override {
    there.erase(name);
    return {};
  }
  Result<std::vector<std::string>> Names() override {
    std::vector<std::string> names;
    for (const auto& [name, claim] : there)
      names.push_back(name);
    return names;
  }
  std::map<std::string, xschedd::v1::Claim> there;
  int puts = 0;
};

struct Node {
  Node() { Renew(); }
  void Renew() {
    plugin.emplace(NodePaths{"/run/xschedd", "/nowhere/nri.toml", "/proc/self/exe", kubelet.root}, claims,
                   [this](const auto& line) { said.push_back(line); });
  }
  void Create(const std::string& priority) {
    api::ContainerRequest request;
    *request.mutable_pod() = Pod(priority);
    request.mutable_container()->set_id(kContainer);
    request.mutable_container()->set_name("main");
    CHECK(plugin->Handle("CreateContainer", request.SerializeAsString()).code == Answer::kOk);
  }
  static api::PodSandbox Pod(const std::string& priority) {
    api::PodSandbox pod;
    pod.set_id("pod");
    pod.set_uid(kUid);
    pod.set_name("web-1");
    pod.set_namespace_("ml");
    (*pod.mutable_annotations())["xschedd.io/priority"] = priority;
    return pod;
  }
  // All that there is to do, without a look at what is not watched.
  void Settle() {
    while (plugin->Work(std::chrono::steady_clock::time_point{}).count() == 0) {
    }
  }

  Kubelet kubelet;
  KeptClaims claims;
  std::vector<std::string> said;
  std::optional<Plugin> plugin;
};

}  // namespace

TEST_CASE("the kubelet's file is read as Go quotes") {
  const auto read = ParseAnnotations(
      "a=\"\"\nxschedd.io/priority=\"20\"\n\nb=\"x=\\\"y\\\"\\\\ "
      "\\n\\t\\a\\b\\f\\r\\v\"\nc=\"\\x01\\u00e9\\u20ac\\U0001f600\xc3\xa9\"");
  REQUIRE(read);
  CHECK(*read == Annotations{{"a", ""},
                             {"xschedd.io/priority", "20"},
                             {"b", "x=\"y\"\\ \n\t\a\b\f\r\v"},
                             {"c", "\x01\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9"}});
  CHECK(ParseAnnotations("")->empty());
  for (const char* const wrong : {"a", "=\"x\"", "a=x", "a=\"", "a=\"x", "a=x\"", "a=\"x\"y\"", "a=\"\\\"", "a=\"\\q\"",
                                  "a=\"\\x1\"", "a=\"\\u12\"", "a=\"\\ud800\"", "a=\"\\U00110000\"", "a=\"\\x+1\""}) {
    INFO(wrong);
    CHECK_FALSE(ParseAnnotations(wrong));
  }
  CHECK(ParseAnnotations("a=\"1\"\nb").error().what == "line 2 is not an annotation, KEY=\"VALUE\"");
}

TEST_CASE("a change of the file is told once, and what is forgotten is not told") {
  Kubelet kubelet;
  PodFiles files(kubelet.root);
  REQUIRE(files.Fd() >= 0);
  CHECK(Value(files) == "none");
  kubelet.Write("xschedd.io/priority=\"20\"");
  CHECK(Value(files) == "20");
  CHECK(files.Changed(true).empty());
  kubelet.Write("xschedd.io/priority=\"30\"");
  CHECK(IsReadable(files.Fd()));
  CHECK(files.Changed(false) == std::vector<std::string>{kUid});
  CHECK_FALSE(IsReadable(files.Fd()));
  CHECK(Value(files) == "30");
  kubelet.Write("");
  CHECK(Value(files) == "without");
  files.Changed(false);
  files.Forget(kUid);
  kubelet.Write("xschedd.io/priority=\"40\"");
  CHECK(files.Changed(true).empty());
}

TEST_CASE("only a file of the kubelet's own volume is read") {
  Kubelet kubelet;
  PodFiles files(kubelet.root);
  // Volumes of other kinds, which a pod can write.
  kubelet.Write("xschedd.io/priority=\"90\"", "empty-dir");
  CHECK(Value(files) == "none");
  const fs::path secret = kubelet.root / "secret";
  std::ofstream(secret) << "xschedd.io/priority=\"90\"";
  // The volume itself is a link.
  fs::create_directories(kubelet.Folder().parent_path());
  fs::create_directory_symlink(fs::path("../kubernetes.io~empty-dir") / kAnnotationsVolume, kubelet.Folder());
  CHECK(Value(files).find("a link leads out") != std::string::npos);
  fs::remove(kubelet.Folder());
  kubelet.Write("xschedd.io/priority=\"20\"");
  CHECK(Value(files) == "20");
  const fs::path file = kubelet.Folder() / kAnnotationsFile;
  for (const fs::path& target : {secret, fs::path("../../../../../../secret"), fs::path("/proc/self/environ")}) {
    fs::remove(file);
    fs::create_symlink(target, file);
    INFO(target);
    CHECK(Value(files).find("a link leads out") != std::string::npos);
  }
  fs::remove(file);
  CHECK(Value(files).find("has no file") != std::string::npos);
  // A pipe would block who opens it.
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK(Value(files).find("is not a regular file") != std::string::npos);
  fs::remove(file);
  fs::create_directory(file);
  CHECK(Value(files).find("is not a regular file") != std::string::npos);
  fs::remove(file);
  std::ofstream(file) << std::string((2 << 20) + 1, 'x');
  CHECK(Value(files).find("longer than 2 MiB") != std::string::npos);
  for (const char* const uid : {"", "..", "../pods", "a/b", "."}) {
    const auto read = files.Follow(uid);
    REQUIRE(read);
    CHECK_FALSE(*read);
  }
}

TEST_CASE("a live change of the annotation is the claim's, in the same bounds") {
  Node node;
  node.kubelet.Write("xschedd.io/priority=\"-5\"\nother=\"1\"");
  node.Create("-5");
  node.Settle();
  REQUIRE(node.claims.there.count(kContainerClaim) == 1);
  CHECK(node.claims.there[kContainerClaim].priority() == -5);
  const int puts = node.claims.puts;
  node.kubelet.Write("xschedd.io/priority=\"-30\"\nother=\"1\"");
  node.Settle();
  CHECK(node.claims.there[kContainerClaim].priority() == -30);
  CHECK(node.said ==
        std::vector<std::string>{"pod ml/web-1, container main: its annotations have changed, and its claim "
                                 "has now: priority -30"});
  // What is not xschedd's changes nothing.
  node.kubelet.Write("xschedd.io/priority=\"-30\"\nother=\"2\"");
  node.Settle();
  CHECK(node.claims.puts == puts + 1);
  node.said.clear();
  node.kubelet.Write("xschedd.io/priority=\"90\"");
  node.Settle();
  CHECK(node.claims.there[kContainerClaim].priority() == 0);
  REQUIRE(node.said.size() == 2);
  CHECK(node.said[0].find("priority 90 is above 0") != std::string::npos);
  node.said.clear();
  node.kubelet.Write("xschedd.io/priority.container.main=\"urgent\"");
  node.Settle();
  CHECK_FALSE(node.claims.there[kContainerClaim].has_priority());
  REQUIRE(node.said.size() == 2);
  CHECK(node.said[0].find("\"urgent\" is not a priority") != std::string::npos);
  // Without annotations the container keeps its claim, and so its ceiling.
  node.said.clear();
  node.kubelet.Write("");
  node.Settle();
  CHECK(node.claims.there.count(kContainerClaim) == 1);
  CHECK(node.said.empty());
  // What cannot be read is said once, and changes nothing.
  node.kubelet.Write("xschedd.io/priority=\"-7\"");
  node.Settle();
  node.said.clear();
  for (int i = 0; i < 2; ++i) {
    node.kubelet.Write("nonsense");
    node.Settle();
  }
  CHECK(node.claims.there[kContainerClaim].priority() == -7);
  REQUIRE(node.said.size() == 1);
  CHECK(node.said[0].find("pod ml/web-1: line 1 is not an annotation") == 0);
}

TEST_CASE("a container that is started again, and a plugin that is, have the annotations of now") {
  Node node;
  node.kubelet.Write("xschedd.io/priority=\"-40\"");
  // The engine still has those with which the pod was made.
  node.Create("-5");
  CHECK(node.claims.there[kContainerClaim].priority() == -40);
  node.kubelet.Write("xschedd.io/priority=\"-50\"");
  node.Renew();
  api::SynchronizeRequest request;
  *request.add_pods() = Node::Pod("-5");
  api::Container& container = *request.add_containers();
  container.set_id(kContainer);
  container.set_name("main");
  container.set_pod_sandbox_id("pod");
  container.add_mounts()->set_source(std::string("/run/xschedd/claims/") + kContainerClaim);
  CHECK(node.plugin->Handle("Synchronize", request.SerializeAsString()).code == Answer::kOk);
  node.Settle();
  CHECK(node.claims.there[kContainerClaim].priority() == -50);
  node.kubelet.Write("xschedd.io/priority=\"-60\"");
  node.Settle();
  CHECK(node.claims.there[kContainerClaim].priority() == -60);
}
