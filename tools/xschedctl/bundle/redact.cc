#include "tools/xschedctl/bundle/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace xschedd::ctl {
namespace {

constexpr std::string_view kLeftOut = "(left out)";
// Shorter pieces of a value would also match unrelated text.
constexpr std::size_t kMinPiece = 4;

bool IsRelevant(const std::string& variable) {
  constexpr std::array kBegin = {"XSCHED", "LD_", "ROCM_", "ROCP", "HSA_", "HIP_", "CUDA_", "ROCR_", "GPU_", "NVIDIA_"};
  return std::any_of(kBegin.begin(), kBegin.end(), [&](const char* begin) { return variable.starts_with(begin); });
}

void ReplaceAll(std::string* text, const std::string& what, const std::string& by) {
  for (auto at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size()))
    text->replace(at, what.size(), by);
}

// A client chooses the text between quotes, which may contain quotes: cut from the first quote to the last.
std::string WithoutQuoted(const std::string& text, std::size_t from = 0) {
  const auto first = text.find('"', from);
  const auto last = text.rfind('"');
  if (first == std::string::npos || last <= first) return text;
  return text.substr(0, first) + std::string(kLeftOut) + text.substr(last + 1);
}

}  // namespace

Redactor::Redactor(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) {
    if (!value.empty() && IsRelevant(name)) environment_.emplace(name, value);
  }
}

std::string Redactor::Number(const std::string& kind, const std::string& name) {
  if (name.empty()) return {};
  std::map<std::string, std::string>& known = numbers_[kind];
  return known.emplace(name, kind + " " + std::to_string(known.size() + 1)).first->second;
}

void Redactor::Clients(Json* ps) {
  for (Json& client : (*ps)["clients"]) {
    client["exe"] = Number("executable", client["exe"].get<std::string>());
    client["command"] = client["exe"];
    client["cgroup"] = Number("cgroup", client["cgroup"].get<std::string>());
    client["group"] = Number("group", client["group"].get<std::string>());
    for (Json& entry : client["passed"])  // a rule may come from the client's environment
      entry["rule"] = Number("rule", entry["rule"].get<std::string>());
  }
  if (!ps->contains("unscheduled") || (*ps)["unscheduled"].is_null()) return;
  for (Json& process : (*ps)["unscheduled"]["processes"])
    process["command"] = kLeftOut;
}

void Redactor::Event(Json* event) {
  std::string reason = (*event)["reason"].get<std::string>();
  if ((*event)["kind"] == "connected") {  // the reason is the executable
    reason = Number("executable", reason);
  } else {
    reason = WithoutQuoted(reason);
  }
  (*event)["reason"] = reason;
}

std::string Redactor::LogLine(const std::string& line) {
  std::size_t first = line.size();
  for (const std::string_view field : {" exe=\"", " cgroup=\"", " group=\"", " command=\""})
    first = std::min(first, line.find(field));
  return first < line.size() ? WithoutQuoted(line, first) : line;
}

std::string Redactor::UnitLine(const std::string& line) {
  const bool is_environment =
      line.starts_with("Environment=") || line.starts_with("PassEnvironment=") || line.starts_with("UnsetEnvironment=");
  return is_environment && !line.ends_with('=') ? line.substr(0, line.find('=') + 1) + std::string(kLeftOut) : line;
}

std::string Redactor::Text(std::string text) const {
  std::vector<std::pair<std::string, std::string>> pieces;  // text, and its replacement
  for (const auto& [name, value] : environment_) {
    ReplaceAll(&text, fmt::format("{}={}", name, value), fmt::format("{}={}", name, kLeftOut));
    ReplaceAll(&text, '"' + value + '"', "$" + name);
    pieces.emplace_back(value, "$" + name);
    constexpr char kBetween[] = ":;, ";
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t end = std::min(value.find_first_of(kBetween, at), value.size());
      pieces.emplace_back(value.substr(at, end - at), "$" + name);
      at = end + 1;
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [what, by] : pieces) {
    if (what.size() >= kMinPiece) ReplaceAll(&text, what, by);
  }
  return text;
}

}  // namespace xschedd::ctl
