#include "tools/nri/session.h"

#include "ttrpc.pb.h"

namespace xschedd::nri {
namespace {

constexpr char kRuntimeService[] = "nri.pkg.api.v1alpha1.Runtime";
constexpr char kPluginService[] = "nri.pkg.api.v1alpha1.Plugin";

TtrpcFrame Registration(const std::string& index) {
  api::RegisterPluginRequest plugin;
  plugin.set_plugin_name(kPluginName);
  plugin.set_plugin_idx(index);
  ttrpc::Request request;
  request.set_service(kRuntimeService);
  request.set_method("RegisterPlugin");
  plugin.SerializeToString(request.mutable_payload());
  return {1, TtrpcFrame::kRequest, 0, request.SerializeAsString()};
}

// The engine's answer to the registration.
Result<void> CheckResponse(const TtrpcFrame& frame) {
  ttrpc::Response response;
  if (!response.ParseFromString(frame.data)) return Fail("the container engine's answer cannot be read");
  if (response.status().code() == 0) return {};
  return Fail("the container engine refuses the plugin: " + response.status().message());
}

TtrpcFrame ResponseTo(const TtrpcFrame& frame, Plugin& plugin) {
  ttrpc::Request request;
  Answer answer;
  if (!request.ParseFromString(frame.data)) {
    answer = {Answer::kInvalidArgument, "the request cannot be read", {}};
  } else if (request.service() != kPluginService) {
    answer = {Answer::kUnimplemented, "xschedd-nri does not have this service", {}};
  } else {
    answer = plugin.Handle(request.method(), request.payload());
  }
  ttrpc::Response response;
  if (answer.payload.size() > kMaxTtrpcBytes / 2) answer = {Answer::kResourceExhausted, "the answer is too long", {}};
  if (answer.code != 0) {
    response.mutable_status()->set_code(answer.code);
    response.mutable_status()->set_message(answer.message);
  }
  response.set_payload(answer.payload);
  return {frame.stream, TtrpcFrame::kResponse, 0, response.SerializeAsString()};
}

}  // namespace

Error Serve(Link& link, const std::string& index, Plugin& plugin, const std::function<void()>& on_ready) {
  if (const auto sent = link.Send(kRuntimeConnection, Registration(index)); !sent) return sent.error();
  auto idle = std::chrono::milliseconds{0};
  for (;;) {
    const auto incoming = link.Receive(idle, plugin.WakeFd());
    if (!incoming) return incoming.error();
    if (!*incoming) {
      idle = plugin.Work(std::chrono::steady_clock::now());
      continue;
    }
    const TtrpcFrame& frame = (*incoming)->frame;
    idle = std::chrono::milliseconds{0};
    if ((*incoming)->connection == kRuntimeConnection && frame.type == TtrpcFrame::kResponse) {
      if (const auto checked = CheckResponse(frame); !checked) return checked.error();
      on_ready();
    } else if ((*incoming)->connection == kPluginConnection && frame.type == TtrpcFrame::kRequest) {
      if (const auto sent = link.Send(kPluginConnection, ResponseTo(frame, plugin)); !sent) return sent.error();
    }
  }
}

}  // namespace xschedd::nri
