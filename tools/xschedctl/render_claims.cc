#include "tools/xschedctl/render_claims.h"

#include <fmt/format.h>

#include <map>

#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

template <typename Value>
std::string GivenNumber(bool is_given, Value value) {
  return is_given ? fmt::format("{}", value) : "-";
}

std::string GivenWord(const std::string& text) {
  return text.empty() ? "-" : text;
}

template <typename Value>
Json GivenOrNull(bool is_given, Value value) {
  return is_given ? Json(value) : Json();
}

// By their names: protobuf has no order.
std::map<std::string, std::string> SortedLabels(const v1::Claim& claim) {
  return {claim.labels().begin(), claim.labels().end()};
}

std::string LabelsText(const v1::Claim& claim) {
  std::string text;
  for (const auto& [name, value] : SortedLabels(claim))
    text += (text.empty() ? "" : ",") + name + "=" + value;
  return GivenWord(text);
}

std::string ClientsNow(const v1::Claim& claim) {
  return fmt::format("{} client{} now", claim.clients(), claim.clients() == 1 ? "" : "s");
}

std::string TitleOf(const v1::Claim& claim) {
  return "claim \"" + Harmless(claim.name()) + "\"";
}

}  // namespace

std::string RenderClaims(const v1::ListClaimsResponse& answer, const TextStyle& style) {
  Table table({{.header = "CLAIM"},
               {.header = "PRIO", .right = true},
               {.header = "CEILING", .right = true, .rank = 2},
               {.header = "WEIGHT", .right = true, .rank = 3},
               {.header = "W-CEILING", .right = true, .rank = 6},
               {.header = "LATENCY", .rank = 5},
               {.header = "GROUP", .rank = 4},
               {.header = "CLIENTS", .right = true},
               {.header = "ENDS-IN", .right = true, .rank = 1},
               {.header = "LABELS", .rank = 2},
               {.header = "CGROUP", .flexible = true}});
  for (const v1::Claim& claim : answer.claims()) {
    table.Add({claim.name(), GivenNumber(claim.has_priority(), claim.priority()),
               GivenNumber(claim.has_ceiling(), claim.ceiling()), GivenNumber(claim.has_weight(), claim.weight()),
               GivenNumber(claim.has_weight_ceiling(), claim.weight_ceiling()), GivenWord(claim.latency()),
               GivenWord(claim.group()), fmt::format("{}", claim.clients()),
               claim.expires_in_ms() == 0 ? "-" : Duration(claim.expires_in_ms() * kNsPerMs), LabelsText(claim),
               claim.cgroup()});
  }
  return table.Render(style);
}

std::string RenderPut(const v1::PutClaimResponse& answer, bool dry_run) {
  if (dry_run) {
    return fmt::format("would put {}{}\n(dry run: nothing was changed)\n", TitleOf(answer.claim()),
                       answer.is_new() ? "" : " in place of the one of this name");
  }
  return fmt::format("{} {}; {}\n", TitleOf(answer.claim()), answer.is_new() ? "put" : "put again",
                     ClientsNow(answer.claim()));
}

std::string RenderRemoved(const v1::DeleteClaimResponse& answer, bool dry_run) {
  if (dry_run) {
    return fmt::format("would remove {}; {}\n(dry run: nothing was changed)\n", TitleOf(answer.claim()),
                       ClientsNow(answer.claim()));
  }
  const std::uint32_t clients = answer.claim().clients();
  return fmt::format("{} removed; it had {} client{}\n", TitleOf(answer.claim()), clients, clients == 1 ? "" : "s");
}

Json ToJson(const v1::Claim& claim) {
  Json labels = Json::object();
  for (const auto& [name, value] : SortedLabels(claim))
    labels[name] = value;
  return {{"name", claim.name()},
          {"cgroup", claim.cgroup()},
          {"cgroup_inode", claim.cgroup_inode()},
          {"priority", GivenOrNull(claim.has_priority(), claim.priority())},
          {"ceiling", GivenOrNull(claim.has_ceiling(), claim.ceiling())},
          {"weight", GivenOrNull(claim.has_weight(), claim.weight())},
          {"weight_ceiling", GivenOrNull(claim.has_weight_ceiling(), claim.weight_ceiling())},
          {"latency", GivenOrNull(!claim.latency().empty(), claim.latency())},
          {"group", claim.group()},
          {"labels", labels},
          {"ttl_ms", claim.ttl_ms()},
          {"expires_in_ms", claim.expires_in_ms()},
          {"clients", claim.clients()}};
}

Json ToJson(const v1::ListClaimsResponse& answer) {
  Json json = {{"claims", Json::array()}};
  for (const v1::Claim& claim : answer.claims())
    json["claims"].push_back(ToJson(claim));
  return json;
}

Json ToJson(const v1::PutClaimResponse& answer, bool dry_run) {
  return {{"dry_run", dry_run},
          {"is_new", answer.is_new()},
          {"applied_ns", answer.applied_ns()},
          {"claim", ToJson(answer.claim())}};
}

Json ToJson(const v1::DeleteClaimResponse& answer, bool dry_run) {
  return {{"dry_run", dry_run}, {"applied_ns", answer.applied_ns()}, {"claim", ToJson(answer.claim())}};
}

}  // namespace xschedd::ctl
