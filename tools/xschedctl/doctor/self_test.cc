#include "tools/xschedctl/doctor/self_test.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "common/clock.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/doctor/self_test_client.h"
#include "tools/xschedctl/preload.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

using std::chrono::milliseconds;

// Low, so that no ceiling makes them equal.
constexpr int kHigh = -90;
constexpr int kLow = -100;
// How long a step may take on a busy machine, and how often it is polled: a user has 50 calls a second.
constexpr std::chrono::seconds kStepLimit{10};
constexpr milliseconds kPollInterval{50};
constexpr milliseconds kContest{3000};
constexpr std::uint64_t kScheduled = 2;  // XSCHEDD_STATE_SCHEDULED

bool Until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kStepLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

class Test {
 public:
  Test(const SelfTestPlace& place, AdminClient client)
      : client_(std::move(client)), low_(place, kLow), high_(place, kHigh) {}

  // Each returns whether to go on.
  bool Attach() {
    for (SelfTestClient* one : {&low_, &high_}) {
      if (!one->IsRunning()) return Fail("its program cannot be started", "install all of xschedd's client");
      std::optional<std::uint64_t> state;
      const bool attached = Until([&] {
        state = one->Ask("attach");
        return !state || *state == kScheduled;
      });
      if (!state) return Fail("a client did not answer: it ended, or hangs", "its standard error, above, says why");
      if (!attached) {
        return Fail(fmt::format("a client got no session with the daemon within {} s", kStepLimit.count()),
                    "see the other findings, and journalctl -u xschedd for a refusal");
      }
    }
    std::optional<v1::Client> low;
    std::optional<v1::Client> high;
    if (!Until([&] { return (low = FindWithDevice(low_)) && (high = FindWithDevice(high_)); }))
      return Fail("the daemon does not list the clients", kSeeLog);
    is_comparable_ = low->priority_effective() < high->priority_effective() && policy_ == "priority" &&
                     (low->group().empty() || low->group() != high->group());
    Say(
        fmt::format("two clients have sessions, through {}: pid {} at priority {} and pid {} at {}, on a simulated "
                    "device",
                    low->route().empty() ? "the shim" : "the shim's " + low->route(), high_.Pid(),
                    high->priority_effective(), low_.Pid(), low->priority_effective()));
    if (!is_comparable_) {
      findings_.push_back(Warning(
          fmt::format("whether the lower one is held cannot be tested: policy {}, priorities {} and {}", policy_,
                      high->priority_effective(), low->priority_effective()),
          "nothing, if policy and rules are intended; policy priority without a rule that matches these clients can "
          "be tested"));
    }
    return true;
  }

  bool Contest() {
    if (!low_.Ask("work") || !Until([&] { return CountOf(low_) > 4; }))
      return Fail("the lower client makes no progress although no client is above it", kSeeLog);
    if (!high_.Ask("work")) return Fail("the higher client did not answer", kSeeLog);
    if (is_comparable_ && !Until([&] { return IsHeldForHigh(); })) {
      return Fail("the lower client is not held while the higher one works", kSeeLog);
    }
    const std::uint64_t start = MonotonicNs();
    const std::uint64_t held = HeldNs();
    const std::uint64_t low = CountOf(low_);
    const std::uint64_t high = CountOf(high_);
    std::this_thread::sleep_for(kContest);
    const std::uint64_t part = HeldNs() - held;
    const std::uint64_t whole = MonotonicNs() - start;
    const std::string said =
        fmt::format("while the higher one worked the lower was held for {} of {} and launched {}, the higher {}",
                    Share(std::min(part, whole), whole), Duration(whole), Count(CountOf(low_) - low, "time"),
                    CountOf(high_) - high);
    // A tenth is enough: on a simulated device nobody gets slower, so that after some comparisons the lower client may
    // run beside the higher one (tolerance_percent).
    if (is_comparable_ && part < whole / 10) return Fail(said, kSeeLog);
    Say(said);
    return true;
  }

  bool Release() {
    if (!high_.Ask("rest")) return Fail("the higher client did not become idle", kSeeLog);
    const std::uint64_t rested = MonotonicNs();
    const std::uint64_t before = CountOf(low_);
    if (!Until([&] { return CountOf(low_) > before + 4; }))
      return Fail("the lower client did not continue after the higher one became idle", kSeeLog);
    Say(fmt::format("the lower one continued within {} after the higher one became idle",
                    Duration(MonotonicNs() - rested)));
    return true;
  }

  bool End() {
    const std::uint64_t low = low_.Pid();
    const std::uint64_t high = high_.Pid();
    if (!low_.Ask("rest")) return Fail("the lower client did not become idle", kSeeLog);
    for (SelfTestClient* one : {&low_, &high_}) {
      const auto status = one->End();
      if (!status) return Fail("a client did not end", kSeeLog);
      if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
        return Fail(fmt::format("a client failed (wait status {})", *status), kSeeLog);
    }
    if (!Until([&] { return !Find(low) && !Find(high); })) return Fail("the daemon still lists them", kSeeLog);
    Say("both ended with exit code 0, and the daemon no longer lists them");
    Say(std::string("tested: preload, private library, sessions") +
        (is_comparable_ ? ", priorities, hold and release by this daemon. Not tested: whether"
                        : " with this daemon. Not tested: priorities, hold and release; whether") +
        " a GPU, its driver and its runtime work, and interception by ROCm's dispatch table (6.2 and later)");
    return true;
  }

  Findings Take() { return std::move(findings_); }

 private:
  static constexpr char kSeeLog[] = "see xschedctl events and journalctl -u xschedd";

  void Say(const std::string& what) { findings_.push_back(Ok(what)); }
  bool Fail(const std::string& what, const std::string& fix) {
    findings_.push_back(Broken(what, fix));
    return false;
  }

  std::uint64_t CountOf(SelfTestClient& one) { return one.Ask("count").value_or(0); }

  std::optional<v1::Client> Find(std::uint64_t pid) {
    v1::ListClientsRequest request;
    request.mutable_selector()->add_pid(pid);
    const auto answer = client_.Call(request);
    if (!answer || answer->clients().empty()) return std::nullopt;
    policy_ = answer->policy();
    return answer->clients(0);
  }

  std::optional<v1::Client> FindWithDevice(const SelfTestClient& one) {
    auto found = Find(one.Pid());
    return found && !found->devices().empty() ? found : std::nullopt;
  }

  v1::ClientDevice LowDevice() {
    const auto low = FindWithDevice(low_);
    return low ? low->devices(0) : v1::ClientDevice();
  }
  bool IsHeldForHigh() {
    const v1::ClientDevice device = LowDevice();
    return device.state() == v1::CLIENT_STATE_HELD && device.held_for() == "pid " + std::to_string(high_.Pid());
  }
  std::uint64_t HeldNs() { return LowDevice().held_ns(); }

  AdminClient client_;
  SelfTestClient low_;
  SelfTestClient high_;
  std::string policy_;
  bool is_comparable_ = false;
  Findings findings_;
};

// Unique to this run, so that concurrent self tests do not interfere, and no GPU's.
std::string FakeAddress() {
  const auto pid = static_cast<unsigned>(::getpid());
  return fmt::format("ffff:{:02x}:{:02x}.{}", pid & 0xff, (pid >> 8) & 0x1f, (pid >> 13) & 7);
}

}  // namespace

Findings SelfTest(const std::string& shim, const std::string& runtime_dir) {
  const std::string folder = SelfTestFolder(OwnPath(), XSCHEDD_LIBRARY_DIR);
  if (shim.empty()) return {Broken("there is no shim to test", "install xschedd's client, or give --shim PATH")};
  if (folder.empty()) return {Broken("its programs are not installed", "install all of xschedd's package")};
  auto client = AdminClient::Connect(runtime_dir);
  if (!client) return {Broken(client.error().error.what, client.error().error.remedy)};
  Test test({shim, runtime_dir, folder, FakeAddress()}, std::move(*client));
  [[maybe_unused]] const bool done = test.Attach() && test.Contest() && test.Release() && test.End();
  return test.Take();
}

}  // namespace xschedd::ctl
