// Every request of the Admin service, well formed or not, to a daemon with clients that chose any names; each answer is
// rendered as by xschedctl. Properties: a refusal is one line; answers can be serialised and rendered.
#include <google/protobuf/message.h>

#include "daemon/admin/admin_operations.h"
#include "daemon/registry/process.h"
#include "tests/fuzz/equip.h"
#include "tests/fuzz/proto_fill.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/shim_end.h"
#include "tests/unit/daemon/believing.h"
#include "tools/xschedctl/render_claims.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"

namespace {

using namespace xschedd;

constexpr int kClients = 4;
constexpr ctl::TextStyle kStyle{80, true};

void Show(const v1::ListClientsResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderClients(answer, kStyle)));
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderDevices(answer, kStyle)));
  FUZZ_CHECK(!nlohmann::json::parse(ctl::Line(ctl::ToJson(answer)), nullptr, false).is_discarded());
}
void Show(const v1::ExplainResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderExplain(1, answer, kStyle)));
  for (const auto& device : answer.devices()) {
    FUZZ_CHECK(device.running_ns() + device.held_ns() + device.idle_ns() + device.untracked_ns() ==
               device.observed_ns());
    FUZZ_CHECK(device.gpu_ns() <= device.observed_ns());
  }
  FUZZ_CHECK(!nlohmann::json::parse(ctl::Line(ctl::ToJson(1, answer)), nullptr, false).is_discarded());
}
void Show(const v1::ChangeResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderChange(answer, false, kStyle)));
}
void Show(const v1::Policy& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderPolicy(answer)));
}
void Show(const v1::ListClaimsResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderClaims(answer, kStyle)));
  FUZZ_CHECK(!nlohmann::json::parse(ctl::Line(ctl::ToJson(answer, "/run")), nullptr, false).is_discarded());
}
void Show(const v1::ReportClaimsResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderReport(answer, kStyle)));
  FUZZ_CHECK(!nlohmann::json::parse(ctl::Line(ctl::ToJson(answer)), nullptr, false).is_discarded());
}
void Show(const v1::PutClaimResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderPut(answer, false, "/run")));
}
void Show(const v1::DeleteClaimResponse& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderRemoved(answer, false)));
}
void Show(const v1::Stats& answer) {
  FUZZ_CHECK(fuzz::IsShowable(ctl::RenderStats(answer)));
}
template <typename Other>
void Show(const Other&) {}

class World {
 public:
  World()
      : core_(io_, {"/nonexistent/xschedd.toml", true, "", true}, test::Believing()),
        quotas_(Quota{}),
        connections_(io_, quotas_,
                     {[](const Connection&) {}, [](Connection&) {}, [](const Principal&, const std::string&) {},
                      &fuzz::Equip, [](Connection&) {}}),
        admin_(core_, connections_, quotas_) {
    core_.SetCgroups([](const std::string& path) { return std::optional<std::uint64_t>(path.size()); });
  }
  ~World() {
    while (!core_.Clients().Clients().empty())
      core_.RemoveClient(core_.Clients().Clients().begin()->first, "end");
    core_.Stop();
    Poll();
  }

  void Run(fuzz::Input& input) {
    while (!input.IsEmpty()) {
      const std::uint8_t op = input.Byte();
      switch (op % 16) {
        case 0:
          Call(input, &AdminOperations::GetVersion);
          break;
        case 1:
          Call(input, &AdminOperations::ListClients);
          break;
        case 2:
        case 3:
          Call(input, &AdminOperations::Set);
          break;
        case 4:
          Call(input, &AdminOperations::Hold);
          break;
        case 5:
          Call(input, &AdminOperations::Release);
          break;
        case 6:
          Call(input, &AdminOperations::GetPolicy);
          break;
        case 7:
          Call(input, &AdminOperations::SetPolicy);
          break;
        case 8:
          Call(input, &AdminOperations::GetStats);
          break;
        case 9:
          Call(input, &AdminOperations::Explain);
          break;
        case 10:
          if (op < 64) Call(input, &AdminOperations::Reload);
          if (op >= 64 && op < 192) Call(input, &AdminOperations::PutClaim);
          if (op >= 192 && op < 224) Call(input, &AdminOperations::DeleteClaim);
          if (op >= 224 && op < 240) Call(input, &AdminOperations::ListClaims);
          if (op >= 240) Call(input, &AdminOperations::ReportClaims);
          break;
        case 11:
          if (op < 32) Call(input, &AdminOperations::Disable);
          if (op >= 224) Call(input, &AdminOperations::Enable);
          break;
        case 12:
          Connect(input);
          break;
        case 13:
          Leave(input);
          break;
        default: {
          const std::size_t i = input.Byte() % kClients;
          if (channels_[i] != nullptr) Scribble(*channels_[i], input);
          break;
        }
      }
      Poll();
    }
  }

 private:
  void Poll() {
    io_.restart();
    io_.poll();
  }

  template <typename Request, typename Response>
  void Call(fuzz::Input& input, grpc::Status (AdminOperations::*operation)(const Actor&, const Request&, Response&)) {
    Request request;
    if (input.Flag()) {
      fuzz::FillMessage(input, request);
    } else {
      const std::string_view bytes = input.Piece();
      if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    }
    Response response;
    const grpc::Status status = (admin_.*operation)({1, 0}, request, response);
    FUZZ_CHECK(fuzz::IsOneLine(status.error_message(), 4096));
    // A string that is not UTF-8 can be serialised, but not parsed.
    FUZZ_CHECK(Response().ParseFromString(response.SerializeAsString()));
    if (status.ok()) Show(response);
  }

  // A client as a session makes it, which cleans the client's own texts.
  void Connect(fuzz::Input& input) {
    const std::size_t i = input.Byte() % kClients;
    if (channels_[i] != nullptr) return;
    channels_[i] = Channel::Make().value();
    NewClient fresh;
    fresh.identity.pid = 1 + i;
    fresh.identity.uid = 1000 + input.Byte() % 2;
    fresh.identity.exe = CleanText(input.ShortText(), 1024);
    fresh.identity.cgroup = CleanText(input.ShortText(), 1024);
    fresh.identity.is_cgroup_exact = input.Byte() % 2 == 0;
    fresh.group_name = CleanText(input.ShortText(), 256);
    fresh.channel = channels_[i].get();
    Client& client = core_.AddClient(std::move(fresh));
    client.identity.command = CleanText(input.ShortText(), 256);
    ids_[i] = client.id;
    (void)core_.AttachDevice(client, {input.Byte() % 2u, "0000:c1:00.0", "GPU", "amd", 4, {}});
    if (input.Flag()) (void)core_.AttachDevice(client, {5, "0000:c2:00.0", "GPU", "nvidia", 4, {}});
    (void)core_.CreateQueue(client, {input.Byte(), 0, 0});
  }

  void Leave(fuzz::Input& input) {
    const std::size_t i = input.Byte() % kClients;
    if (channels_[i] == nullptr) return;
    core_.RemoveClient(ids_[i], "it ended");
    channels_[i].reset();
  }

  // The client's writes go through the daemon's mapping, the only one of LedgerReader.
  static void Scribble(Channel& channel, fuzz::Input& input) {
    const Result<Mapping> ledger = MapSharedMemory(channel.LedgerFd(), sizeof(abi::Ledger), Access::kReadWrite);
    if (!ledger) return;
    auto& to = *static_cast<abi::Ledger*>(ledger->Address());
    abi::LedgerDevice& device = to.devices[input.Byte() % 6];
    device.busy = input.Byte() & 1;
    device.gpu_time_ns = input.Take<std::uint64_t>();
    device.deadline_ns = input.Take<std::uint64_t>();
    const std::uint64_t head = to.control.ring_head;
    to.ring[head % abi::kRingSize] = {0, 1, input.Byte() % 6u};
    to.control.ring_head = head + 1;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(channel.EventFd(), &one, sizeof one);
  }

  boost::asio::io_context io_;
  std::unique_ptr<Channel> channels_[kClients];
  std::uint64_t ids_[kClients] = {};
  Core core_;
  Quotas quotas_;
  Connections connections_;
  AdminOperations admin_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::BeQuiet();
  fuzz::Input input(data, size);
  World world;
  world.Run(input);
  return 0;
}
