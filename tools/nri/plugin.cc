#include "tools/nri/plugin.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/runtime_dir.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::nri {
namespace {

constexpr std::chrono::seconds kRetry{1};
// How soon a daemon that has lost the claims gets them again.
constexpr std::chrono::seconds kCompareInterval{2};
constexpr std::string_view kPreloadVariable = "LD_PRELOAD=";

constexpr std::int32_t Bit(api::Event event) {
  return std::int32_t{1} << (static_cast<int>(event) - 1);
}
constexpr std::int32_t kEvents = Bit(api::CREATE_CONTAINER) | Bit(api::STOP_CONTAINER) | Bit(api::REMOVE_CONTAINER) |
                                 Bit(api::STOP_POD_SANDBOX) | Bit(api::REMOVE_POD_SANDBOX);

template <typename Message, typename Action>
Answer With(const std::string& payload, const Action& action) {
  Message request;
  if (!request.ParseFromString(payload)) return {Answer::kInvalidArgument, "the request cannot be read", {}};
  Answer answer;
  action(request).SerializeToString(&answer.payload);
  return answer;
}

api::Event EventOf(std::string_view method) {
  if (method == "StopContainer") return api::STOP_CONTAINER;
  if (method == "RemoveContainer") return api::REMOVE_CONTAINER;
  if (method == "StopPodSandbox") return api::STOP_POD_SANDBOX;
  if (method == "RemovePodSandbox") return api::REMOVE_POD_SANDBOX;
  return api::UNKNOWN;
}

// What is kept of a pod while it runs.
api::PodSandbox Trimmed(const api::PodSandbox& pod) {
  api::PodSandbox trimmed;
  trimmed.set_id(pod.id());
  trimmed.set_uid(pod.uid());
  trimmed.set_name(pod.name());
  trimmed.set_namespace_(pod.namespace_());
  for (const auto& [key, value] : pod.annotations())
    if (key.rfind(kAnnotationPrefix, 0) == 0) (*trimmed.mutable_annotations())[key] = value;
  return trimmed;
}

api::Container Trimmed(const api::Container& container) {
  api::Container trimmed;
  trimmed.set_id(container.id());
  trimmed.set_name(container.name());
  return trimmed;
}

bool SaysTheSame(const v1::Claim& first, const v1::Claim& second) {
  return SettingsText(first) == SettingsText(second) && first.ceiling() == second.ceiling() &&
         first.weight_ceiling() == second.weight_ceiling();
}

std::string PreloadOf(const api::Container& container) {
  for (const std::string& variable : container.env())
    if (variable.rfind(kPreloadVariable, 0) == 0) return variable.substr(kPreloadVariable.size());
  return {};
}

}  // namespace

Plugin::Plugin(NodePaths paths, Claims& claims, Say say)
    : paths_(std::move(paths)), claims_(claims), say_(std::move(say)), files_(paths_.kubelet_dir) {}

Answer Plugin::Handle(std::string_view method, const std::string& payload) {
  if (method == "Configure") {
    synced_.clear();
    synced_pods_.clear();
    return With<api::ConfigureRequest>(payload, [](const auto&) {
      api::ConfigureResponse response;
      response.set_events(kEvents);
      return response;
    });
  }
  if (method == "Synchronize")
    return With<api::SynchronizeRequest>(payload, [&](const auto& request) { return Synchronize(request); });
  if (method == "CreateContainer") {
    return With<api::ContainerRequest>(payload,
                                       [&](const auto& request) { return Create(request.pod(), request.container()); });
  }
  if (method == "StateChange") {
    return With<api::StateChangeEvent>(payload, [&](const auto& request) {
      HandleEvent(request.event(), request.pod(), request.container());
      return api::Empty();
    });
  }
  if (method == "Shutdown") return {};
  const api::Event event = EventOf(method);
  if (event == api::UNKNOWN) return {Answer::kUnimplemented, "xschedd-nri does not have this call", {}};
  return With<api::ContainerRequest>(payload, [&](const auto& request) {
    HandleEvent(event, request.pod(), request.container());
    return api::Empty();
  });
}

// Read again for each container, so that a change (also of a ConfigMap) applies to the next one.
const Settings& Plugin::CurrentSettings() {
  auto settings = LoadSettings(paths_.settings);
  const std::string fault = settings ? "" : settings.error().Line();
  if (fault != settings_fault_ && !fault.empty()) say_(fault + "; the previous settings still apply");
  settings_fault_ = fault;
  if (settings) settings_ = std::move(*settings);
  return settings_;
}

// Replaces the annotations by the current ones, where the kubelet keeps a file of them; reports once why one cannot be
// read. False: they are as they were.
bool Plugin::ReadAnnotations(api::PodSandbox& pod) {
  const auto read = files_.Follow(pod.uid());
  std::string& said = file_faults_[pod.uid()];
  if (!read) {
    const std::string fault = read.error().Line();
    if (fault != said) say_(PodText(pod) + ": " + fault + "; its previous annotations still apply");
    said = fault;
    return false;
  }
  file_faults_.erase(pod.uid());
  if (!*read) return false;
  pod.clear_annotations();
  for (const auto& [key, value] : **read)
    (*pod.mutable_annotations())[key] = value;
  pod = Trimmed(pod);
  return true;
}

void Plugin::ForgetUnused(const std::string& pod_uid) {
  for (const auto& [id, live] : live_)
    if (live.pod.uid() == pod_uid) return;
  files_.Forget(pod_uid);
  file_faults_.erase(pod_uid);
}

api::CreateContainerResponse Plugin::Create(const api::PodSandbox& created, const api::Container& container) {
  api::CreateContainerResponse response;
  const Settings& settings = CurrentSettings();
  // The engine has the annotations with which the pod was made, also for a container that is started again.
  api::PodSandbox pod = Trimmed(created);
  ReadAnnotations(pod);
  const Plan plan = Translate(pod, container, settings);
  for (const std::string& line : plan.lines)
    say_(line);
  if (!plan.touches) return ForgetUnused(pod.uid()), response;
  const auto leave_alone = [&](const std::string& why) {
    say_(ContainerText(pod, container) + " starts without xschedd: " + why);
    ForgetUnused(pod.uid());
    return response;
  };
  if (plan.claim.name().empty()) return leave_alone("its id cannot name a claim");
  const std::string& shim = settings.shim.empty() ? paths_.shim : settings.shim;
  if (shim.empty() || ::access(shim.c_str(), R_OK) != 0)
    return leave_alone("there is no shim: " + (shim.empty() ? std::string(ctl::kShimName) : shim));
  const Result<std::string> preload = ctl::ComposePreload(shim, PreloadOf(container));
  if (!preload) return leave_alone(preload.error().Line());
  if (const Result<void> put = claims_.Put(plan.claim); !put) {
    // It may have been put nevertheless.
    ended_.insert(plan.claim.name());
    return leave_alone(put.error().Line());
  }
  ended_.erase(plan.claim.name());
  live_[container.id()] = {pod, Trimmed(container), plan.claim, plan.lines, {}};
  Adjust(container, plan.claim.name(), shim, *preload, *response.mutable_adjust());
  return response;
}

// As in the CDI specification, but with the claim's socket.
void Plugin::Adjust(const api::Container& container, const std::string& claim, const std::string& shim,
                    const std::string& preload, api::ContainerAdjustment& adjustment) const {
  const auto mount = [&](const std::string& source, const std::string& destination) {
    // This mount replaces another one there, such as that of a hostPath or a CDI device.
    for (const api::Mount& there : container.mounts())
      if (there.destination() == destination) adjustment.add_mounts()->set_destination("-" + destination);
    api::Mount& added = *adjustment.add_mounts();
    added.set_source(source);
    added.set_destination(destination);
    added.set_type("bind");
    for (const char* const option : {"ro", "nosuid", "nodev", "bind"})
      added.add_options(option);
  };
  const std::string folder = shim.substr(0, shim.rfind('/'));
  mount(paths_.runtime_dir + "/" + kClaimsFolderName + "/" + claim, kDefaultRuntimeDir);
  mount(folder, folder);
  api::KeyValue& variable = *adjustment.add_env();
  variable.set_key("LD_PRELOAD");
  variable.set_value(preload);
}

// A container that was created without the plugin has none of its mounts, and needs no claim.
void Plugin::Remember(const api::Container& container) {
  Live& live = synced_[container.id()];
  live.container = Trimmed(container);
  live.pod.set_id(container.pod_sandbox_id());
  const std::string name = ClaimName(container.id());
  const std::string source = paths_.runtime_dir + "/" + kClaimsFolderName + "/" + name;
  const auto pod = synced_pods_.find(live.pod.id());
  if (name.empty() || pod == synced_pods_.end()) return;
  live.pod = pod->second;
  for (const api::Mount& mount : container.mounts()) {
    if (mount.source() != source) continue;
    // It may have changed while the plugin was away.
    if (ReadAnnotations(live.pod)) to_put_.insert(container.id());
    const Plan plan = Translate(live.pod, container, CurrentSettings());
    live.claim = plan.claim;
    live.lines = plan.lines;
  }
}

api::SynchronizeResponse Plugin::Synchronize(const api::SynchronizeRequest& request) {
  for (const api::PodSandbox& pod : request.pods())
    synced_pods_[pod.id()] = Trimmed(pod);
  for (const api::Container& container : request.containers())
    if (container.state() != api::CONTAINER_STOPPED) Remember(container);
  api::SynchronizeResponse response;
  response.set_more(request.more());
  if (request.more()) return response;
  live_ = std::move(synced_);
  synced_.clear();
  synced_pods_.clear();
  must_compare_ = true;
  return response;
}

void Plugin::EndContainer(const std::string& id) {
  const auto live = live_.find(id);
  if (live == live_.end()) return;
  const std::string pod_uid = live->second.pod.uid();
  live_.erase(live);
  ForgetUnused(pod_uid);
  if (const std::string name = ClaimName(id); !name.empty()) ended_.insert(name);
}

void Plugin::EndPod(const std::string& id) {
  std::vector<std::string> containers;
  for (const auto& [container, live] : live_)
    if (live.pod.id() == id) containers.push_back(container);
  for (const std::string& container : containers)
    EndContainer(container);
}

void Plugin::HandleEvent(api::Event event, const api::PodSandbox& pod, const api::Container& container) {
  if (event == api::STOP_CONTAINER || event == api::REMOVE_CONTAINER) EndContainer(container.id());
  if (event == api::STOP_POD_SANDBOX || event == api::REMOVE_POD_SANDBOX) EndPod(pod.id());
}

// Afterwards, `live_` has only containers with claims, and the claims of others end.
bool Plugin::CompareWithDaemon() {
  const auto names = claims_.Names();
  if (!names) return false;
  const std::set<std::string> there(names->begin(), names->end());
  std::set<std::string> wanted;
  for (auto it = live_.begin(); it != live_.end();) {
    const std::string name = ClaimName(it->first);
    wanted.insert(name);
    const bool is_there = there.count(name) != 0;
    const bool is_lost = !is_there && !it->second.claim.name().empty();
    if (is_lost) to_put_.insert(it->first);
    it = is_there || is_lost ? std::next(it) : live_.erase(it);
  }
  for (const std::string& name : there)
    if (name.rfind(kClaimPrefix, 0) == 0 && wanted.count(name) == 0) ended_.insert(name);
  must_compare_ = false;
  return true;
}

void Plugin::FollowChanges(bool every) {
  for (const std::string& pod_uid : files_.Changed(every))
    for (auto& [id, live] : live_)
      if (live.pod.uid() == pod_uid && !live.claim.name().empty()) Renew(id, live);
}

void Plugin::Renew(const std::string& id, Live& live) {
  if (!ReadAnnotations(live.pod)) return;
  Plan plan = Translate(live.pod, live.container, CurrentSettings());
  if (plan.lines != live.lines)
    for (const std::string& line : plan.lines)
      say_(line);
  live.lines = std::move(plan.lines);
  if (SaysTheSame(live.claim, plan.claim)) return;
  say_(ContainerText(live.pod, live.container) +
       ": its annotations have changed, and its claim has now: " + SettingsText(plan.claim));
  live.claim = std::move(plan.claim);
  to_put_.insert(id);
}

bool Plugin::PutNext() {
  auto next = to_put_.upper_bound(tried_);
  if (next == to_put_.end()) next = to_put_.begin();
  tried_ = *next;
  if (const auto found = live_.find(tried_); found != live_.end()) {
    Live& live = found->second;
    const Result<void> put = claims_.Put(live.claim);
    const std::string fault = put ? "" : put.error().Line();
    if (fault != live.fault && !fault.empty())
      say_(ContainerText(live.pod, live.container) +
           ": its claim could not be put again, and is tried every second: " + fault);
    live.fault = fault;
    if (!put) return false;
  }
  to_put_.erase(next);
  return true;
}

bool Plugin::DeleteNext() {
  const auto name = ended_.begin();
  if (!claims_.Delete(*name)) return false;
  ended_.erase(name);
  return true;
}

std::chrono::milliseconds Plugin::Work(std::chrono::steady_clock::time_point now) {
  // First, so that what wakes the plugin is read.
  FollowChanges(now >= next_compare_);
  const auto until = [&](auto time) { return std::chrono::ceil<std::chrono::milliseconds>(time - now); };
  if (now < next_try_) return until(next_try_);
  if (now >= next_compare_ && !live_.empty()) must_compare_ = true;
  if (!must_compare_ && to_put_.empty() && ended_.empty()) return until(std::max(next_compare_, now + kRetry));
  // One call of the daemon each time: a pod may be waiting to be created.
  bool is_done = true;
  if (must_compare_) {
    is_done = CompareWithDaemon();
    next_compare_ = now + kCompareInterval;
  } else if (!to_put_.empty() && (ended_.empty() || !deletes_next_)) {
    is_done = PutNext();
  } else {
    is_done = DeleteNext();
  }
  if (!is_done) {
    next_try_ = now + kRetry;
    deletes_next_ = !deletes_next_;  // what the daemon refuses keeps nothing else waiting
  }
  return std::chrono::milliseconds{0};
}

}  // namespace xschedd::nri
