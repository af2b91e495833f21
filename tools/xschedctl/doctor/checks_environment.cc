// Environment variables that make xschedd or the runtimes behave unexpectedly.
#include <algorithm>
#include <array>

#include "common/memory_limit.h"
#include "common/parse_number.h"
#include "common/passthrough.h"
#include "common/priority.h"
#include "tools/xschedctl/doctor/checks.h"

namespace xschedd::ctl {
namespace {

constexpr std::array kKnown = {"XSCHEDD_PRIORITY",    "XSCHEDD_WEIGHT",  "XSCHEDD_DEADLINE_US", "XSCHEDD_GROUP",
                               "XSCHEDD_PASSTHROUGH", "XSCHEDD_DISABLE", "XSCHEDD_LOG",         "XSCHEDD_RUNTIME_DIR",
                               "XSCHEDD_CLIENT_LIB",  "XSCHEDD_SHIM",    "XSCHEDD_LATENCY",     "XSCHEDD_STREAMS",
                               "XSCHEDD_NOTICE",      "XSCHEDD_MEMORY"};

bool IsNumber(const std::string& text, std::uint64_t highest) {
  const auto value = xschedd::ParseNumber<std::uint64_t>(text);
  return value && *value >= 1 && *value <= highest;
}

// The check of a variable that is set and not empty.
struct VariableCheck {
  const char* name;
  Findings (*run)(const std::string& value);
};

Findings Nothing() {
  return {};
}

const VariableCheck kVariableChecks[] = {
    {"XSCHEDD_DISABLE",
     [](const std::string& value) {
       if (value == "0") return Nothing();
       return Findings{Warning("XSCHEDD_DISABLE=" + value + ": the shim does nothing", "unset it")};
     }},
    {"XSCHEDD_PRIORITY",
     [](const std::string& value) {
       const auto priority = ParsePriority(value);
       if (priority) return Nothing();
       return Findings{
           Broken("XSCHEDD_PRIORITY: " + priority.error().what + "; it is ignored", priority.error().remedy)};
     }},
    {"XSCHEDD_WEIGHT",
     [](const std::string& value) {
       if (IsNumber(value, 10'000)) return Nothing();
       return Findings{Broken("XSCHEDD_WEIGHT=" + value + " is ignored", "give a number from 1 to 10000")};
     }},
    {"XSCHEDD_DEADLINE_US",
     [](const std::string& value) {
       if (IsNumber(value, 3'600'000'000)) return Nothing();
       return Findings{Broken("XSCHEDD_DEADLINE_US=" + value + " is ignored", "give µs, from 1 to 3600000000")};
     }},
    {"XSCHEDD_MEMORY",
     [](const std::string& value) {
       const auto limit = ParseMemoryLimit(value);
       if (limit) return Nothing();
       return Findings{Broken("XSCHEDD_MEMORY: " + limit.error().what, limit.error().remedy)};
     }},
    {"XSCHEDD_STREAMS",
     [](const std::string& value) {
       if (value == "0" || value == "1") return Nothing();
       return Findings{Broken("XSCHEDD_STREAMS=" + value + " is ignored", "give 0 or 1")};
     }},
    {"XSCHEDD_PASSTHROUGH",
     [](const std::string& value) {
       Findings findings;
       for (const std::string_view text : SplitPassthrough(value)) {
         if (const auto entry = ParsePassthrough(text); !entry) {
           findings.push_back(
               Broken("XSCHEDD_PASSTHROUGH: " + entry.error().what + "; it is ignored", entry.error().remedy));
         }
       }
       return findings;
     }},
    {"XSCHEDD_LOG",
     [](const std::string& value) {
       if (value == "quiet") {
         return Findings{
             Warning("XSCHEDD_LOG=quiet: the shim says nothing, not even why it does not work", "unset it")};
       }
       if (value == "warn" || value == "info") return Nothing();
       return Findings{Broken("XSCHEDD_LOG=" + value + " is not a level", "write quiet, warn or info")};
     }},
    {"XSCHEDD_CLIENT_LIB",
     [](const std::string& value) {
       return Findings{Warning("XSCHEDD_CLIENT_LIB=" + value + ": the shim loads this in place of its own library",
                               "unset it; it is for tests")};
     }},
    {"HSA_TOOLS_LIB",
     [](const std::string& value) {
       return Findings{Warning("HSA_TOOLS_LIB=" + value +
                                   ": this tool sits between HIP and the device; if it hides kernel times, "
                                   "GPU times are estimated",
                               "unset it unless you profile")};
     }},
    {"ROCP_TOOL_LIBRARIES",
     [](const std::string& value) {
       return Findings{
           Warning("ROCP_TOOL_LIBRARIES=" + value +
                       ": this tool is called inside the gate; its times do not include waiting at the gate",
                   "nothing, if it is intended")};
     }},
    {"LD_BIND_NOT",
     [](const std::string&) {
       return Findings{Warning("LD_BIND_NOT is set: every call is looked up again", "unset it")};
     }},
};

// Preloaded libraries that hold GPU calls themselves: two gates that do not know of each other.
struct OtherScheduler {
  std::string_view file;  // the beginning of its name
  std::string_view what;
};
constexpr OtherScheduler kOtherSchedulers[] = {
    {"libshimhip.so", "XSched"},   {"libshimcuda.so", "XSched"}, {"libnvshare.so", "nvshare"},
    {"libvgpu.so", "HAMi's vGPU"}, {"libgemhook.so", "Gemini"},
};

std::size_t Differences(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += a[i] != b[i] ? 1 : 0;
  return count;
}

// An unknown variable has no effect; it may be a known one misspelt.
Finding Unknown(const std::string& name) {
  const auto* nearest = std::min_element(kKnown.begin(), kKnown.end(), [&](const char* a, const char* b) {
    return Differences(name, a) < Differences(name, b);
  });
  const bool is_near = Differences(name, *nearest) <= 3;
  std::string known;
  for (const char* one : kKnown)
    known += (known.empty() ? "" : ", ") + std::string(one);
  return Warning(name + " is unknown to xschedd",
                 is_near ? "did you mean " + std::string(*nearest) + "?" : "known are " + known);
}

}  // namespace

Findings CheckEnvironment(const Facts& facts) {
  Findings findings;
  for (const VariableCheck& check : kVariableChecks) {
    const auto found = facts.environment.find(check.name);
    if (found == facts.environment.end() || found->second.empty()) continue;
    for (Finding& finding : check.run(found->second))
      findings.push_back(std::move(finding));
  }
  for (const auto& [name, value] : facts.environment) {
    if (name.rfind("XSCHEDD_", 0) != 0) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) findings.push_back(Unknown(name));
  }
  if (findings.empty()) findings.push_back(Ok("no variable with unexpected effects"));
  return findings;
}

Findings CheckConflicts(const Facts& facts) {
  const auto own = facts.environment.find("LD_PRELOAD");
  const std::pair<std::string_view, std::string> lists[] = {
      {"LD_PRELOAD", own != facts.environment.end() ? own->second : std::string()},
      {"/etc/ld.so.preload", facts.preloaded_for_all},
  };
  Findings findings;
  for (const auto& [where, list] : lists) {
    for (const OtherScheduler& other : kOtherSchedulers) {
      if (list.find(other.file) == std::string::npos) continue;
      findings.push_back(Warning(std::string(where) + " has " + std::string(other.file) + " (" +
                                     std::string(other.what) + "): two schedulers hold the same calls",
                                 "preload one of the two"));
    }
  }
  if (findings.empty()) findings.push_back(Ok("no other scheduler of GPU calls is preloaded"));
  return findings;
}

}  // namespace xschedd::ctl
