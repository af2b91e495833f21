#include "tools/xschedctl/render_claims.h"

#include <fmt/format.h>

#include "common/bytes_text.h"
#include "tools/xschedctl/labels.h"
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

std::string ClientsNow(const v1::Claim& claim) {
  return fmt::format("{} client{} now", claim.clients(), claim.clients() == 1 ? "" : "s");
}

std::string FolderOf(const v1::Claim& claim, const std::string& folder) {
  return folder + "/" + claim.name();
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
               {.header = "MEM-LIMIT", .right = true, .rank = 3},
               {.header = "GROUP", .rank = 4},
               {.header = "CLIENTS", .right = true},
               {.header = "ENDS-IN", .right = true, .rank = 1},
               {.header = "SOCKET", .rank = 4},
               {.header = "LABELS", .rank = 2},
               {.header = "CGROUP", .flexible = true}});
  for (const v1::Claim& claim : answer.claims()) {
    table.Add({claim.name(), GivenNumber(claim.has_priority(), claim.priority()),
               GivenNumber(claim.has_ceiling(), claim.ceiling()), GivenNumber(claim.has_weight(), claim.weight()),
               GivenNumber(claim.has_weight_ceiling(), claim.weight_ceiling()), GivenWord(claim.latency()),
               claim.has_memory_limit() ? BytesText(claim.memory_limit()) : "-", GivenWord(claim.group()),
               fmt::format("{}", claim.clients()),
               claim.expires_in_ms() == 0 ? "-" : Duration(claim.expires_in_ms() * kNsPerMs),
               claim.has_socket() ? "yes" : "no", GivenWord(LabelsText(claim.labels())), GivenWord(claim.cgroup())});
  }
  return table.Render(style);
}

std::string RenderReport(const v1::ReportClaimsResponse& answer, const TextStyle& style) {
  Table table({{.header = "CLAIM"},
               {.header = "GPU-TIME", .right = true},
               {.header = "HELD", .right = true},
               {.header = "LAUNCHES", .right = true, .rank = 3},
               {.header = "UNTRACKED", .right = true, .rank = 2},
               {.header = "MEM-PEAK", .right = true, .rank = 3},
               {.header = "MEM-REFUSED", .right = true, .rank = 3},
               {.header = "CLIENTS", .right = true, .rank = 4},
               {.header = "BEGAN", .rank = 5},
               {.header = "ENDED", .rank = 1},
               {.header = "LABELS", .flexible = true}});
  for (const v1::ClaimReport& claim : answer.claims()) {
    table.Add(
        {claim.name(), Duration(claim.gpu_time_ns()), Duration(claim.held_ns()), fmt::format("{}", claim.launches()),
         Duration(claim.untracked_ns()), claim.memory_peak_bytes() == 0 ? "-" : BytesText(claim.memory_peak_bytes()),
         claim.memory_refused() == 0 ? "-" : fmt::format("{}", claim.memory_refused()),
         fmt::format("{}", claim.clients()), DateTime(claim.began_unix_ms()),
         claim.ended_unix_ms() == 0 ? "-" : DateTime(claim.ended_unix_ms()), GivenWord(LabelsText(claim.labels()))});
  }
  return table.Render(style);
}

std::string RenderPut(const v1::PutClaimResponse& answer, bool dry_run, const std::string& folder) {
  if (dry_run) {
    return fmt::format("would put {}{}\n(dry run: nothing was changed)\n", TitleOf(answer.claim()),
                       answer.is_new() ? "" : ", replacing the one of this name");
  }
  const v1::Claim& claim = answer.claim();
  const std::string mount =
      claim.has_socket() ? "mount " + Harmless(FolderOf(claim, folder)) + " as the container's /run/xschedd\n" : "";
  return fmt::format("{} {}; {}\n{}", TitleOf(claim), answer.is_new() ? "put" : "put again", ClientsNow(claim), mount);
}

std::string RenderRemoved(const v1::DeleteClaimResponse& answer, bool dry_run) {
  if (dry_run) {
    return fmt::format("would remove {}; {}\n(dry run: nothing was changed)\n", TitleOf(answer.claim()),
                       ClientsNow(answer.claim()));
  }
  const std::uint32_t clients = answer.claim().clients();
  return fmt::format("{} removed; it had {} client{}\n", TitleOf(answer.claim()), clients, clients == 1 ? "" : "s");
}

Json ToJson(const v1::Claim& claim, const std::string& folder) {
  return {{"name", claim.name()},
          {"cgroup", claim.cgroup()},
          {"cgroup_inode", claim.cgroup_inode()},
          {"socket_folder", GivenOrNull(claim.has_socket(), FolderOf(claim, folder))},
          {"priority", GivenOrNull(claim.has_priority(), claim.priority())},
          {"ceiling", GivenOrNull(claim.has_ceiling(), claim.ceiling())},
          {"weight", GivenOrNull(claim.has_weight(), claim.weight())},
          {"weight_ceiling", GivenOrNull(claim.has_weight_ceiling(), claim.weight_ceiling())},
          {"latency", GivenOrNull(!claim.latency().empty(), claim.latency())},
          {"memory_limit_bytes", GivenOrNull(claim.has_memory_limit(), claim.memory_limit())},
          {"group", claim.group()},
          {"labels", LabelsJson(claim.labels())},
          {"ttl_ms", claim.ttl_ms()},
          {"expires_in_ms", claim.expires_in_ms()},
          {"clients", claim.clients()}};
}

Json ToJson(const v1::ListClaimsResponse& answer, const std::string& folder) {
  Json json = {{"claims", Json::array()}};
  for (const v1::Claim& claim : answer.claims())
    json["claims"].push_back(ToJson(claim, folder));
  return json;
}

Json ToJson(const v1::ReportClaimsResponse& answer) {
  Json json = {{"claims", Json::array()}};
  for (const v1::ClaimReport& claim : answer.claims()) {
    json["claims"].push_back({{"name", claim.name()},
                              {"labels", LabelsJson(claim.labels())},
                              {"began_unix_ms", claim.began_unix_ms()},
                              {"ended_unix_ms", GivenOrNull(claim.ended_unix_ms() != 0, claim.ended_unix_ms())},
                              {"end_reason", claim.end_reason()},
                              {"gpu_time_ns", claim.gpu_time_ns()},
                              {"held_ns", claim.held_ns()},
                              {"launches", claim.launches()},
                              {"untracked_ns", claim.untracked_ns()},
                              {"memory_peak_bytes", claim.memory_peak_bytes()},
                              {"memory_refused", claim.memory_refused()},
                              {"clients", claim.clients()}});
  }
  return json;
}

Json ToJson(const v1::PutClaimResponse& answer, bool dry_run, const std::string& folder) {
  return {{"dry_run", dry_run},
          {"is_new", answer.is_new()},
          {"applied_ns", answer.applied_ns()},
          {"claim", ToJson(answer.claim(), folder)}};
}

Json ToJson(const v1::DeleteClaimResponse& answer, bool dry_run, const std::string& folder) {
  return {{"dry_run", dry_run}, {"applied_ns", answer.applied_ns()}, {"claim", ToJson(answer.claim(), folder)}};
}

}  // namespace xschedd::ctl
