// The daemon's answers, with any strings and numbers, as xschedctl renders them: tables, JSON, timelines, and the
// doctor's report about a process that chose its own names.
// Properties: JSON is valid, one document a line; text for people has no control characters.
#include <sstream>

#include "tests/fuzz/proto_fill.h"
#include "tools/xschedctl/doctor/report.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"
#include "tools/xschedctl/timeline.h"

namespace {

using namespace xschedd;
using fuzz::FillMessage;
using fuzz::Input;

void CheckJson(const std::string& line) {
  FUZZ_CHECK(!line.empty() && line.find('\n') == line.size() - 1);
  FUZZ_CHECK(!nlohmann::json::parse(line, nullptr, false).is_discarded());
}

void CheckText(const std::string& text) {
  FUZZ_CHECK(fuzz::IsShowable(text));
}

void Trace(Input& input) {
  std::ostringstream out;
  ctl::ChromeTrace trace(out, input.Take<std::uint64_t>(), {{"recorder", input.ShortText()}});
  ctl::Timeline timeline(trace, [&](std::uint64_t) { return input.ShortText(); });
  while (!input.IsEmpty()) {
    if (input.Flag()) {
      v1::ListClientsResponse snapshot;
      FillMessage(input, snapshot);
      if (input.Flag())
        timeline.Take(snapshot);
      else
        timeline.Sample(snapshot);
    } else {
      v1::Event event;
      FillMessage(input, event);
      timeline.Add(event);
    }
  }
  timeline.End(UINT64_MAX);
  trace.Close();
  FUZZ_CHECK(!nlohmann::json::parse(out.str(), nullptr, false).is_discarded());
}

void Doctor(Input& input) {
  ctl::Facts facts;
  facts.process.emplace();
  ctl::ProcessFacts& process = *facts.process;
  process.exists = process.is_readable = true;
  process.exe = input.ShortText();
  process.maps_runtime = input.ShortText();
  process.is_static = input.Flag();
  process.maps_shim = input.Flag();
  process.other_root = input.Flag();
  process.root.dir = "/proc/1/root";
  facts.daemon_error = input.ShortText();
  facts.shim = {input.ShortText(), input.Flag(), input.ShortText(), input.ShortText(), input.Byte()};
  while (!input.IsEmpty()) {
    std::string name = input.Flag() ? "XSCHEDD_PRIORITY" : input.ShortText();
    process.environment[std::move(name)] = input.ShortText();
  }
  facts.environment = process.environment;
  const ctl::Report report = ctl::Examine(facts);
  for (const std::size_t width : {0, 40})
    CheckText(ctl::Render(report, {.width = width}));
  CheckJson(ctl::Line(ctl::ToJson(report)));
}

template <typename Message>
Message Filled(Input& input) {
  Message message;
  FillMessage(input, message);
  return message;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::uint8_t kind = input.Byte() % 8;
  const ctl::TextStyle style{input.Byte(), input.Flag()};
  switch (kind) {
    case 0: {
      const auto answer = Filled<v1::ListClientsResponse>(input);
      CheckText(ctl::RenderClients(answer, style));
      CheckText(ctl::RenderDevices(answer, style));
      CheckJson(ctl::Line(ctl::ToJson(answer)));
      break;
    }
    case 1: {
      const auto answer = Filled<v1::ExplainResponse>(input);
      CheckText(ctl::RenderExplain(4711, answer, style));
      CheckJson(ctl::Line(ctl::ToJson(4711, answer)));
      break;
    }
    case 2: {
      const auto answer = Filled<v1::ChangeResponse>(input);
      CheckText(ctl::RenderChange(answer, false, style));
      CheckJson(ctl::Line(ctl::ToJson(answer, true)));
      break;
    }
    case 3: {
      const auto answer = Filled<v1::Policy>(input);
      CheckText(ctl::RenderPolicy(answer));
      CheckJson(ctl::Line(ctl::ToJson(answer)));
      break;
    }
    case 4: {
      const auto event = Filled<v1::Event>(input);
      CheckText(ctl::RenderEvent(event));
      CheckJson(ctl::Line(ctl::ToJson(event)));
      break;
    }
    case 5: {
      const auto stats = Filled<v1::Stats>(input);
      CheckText(ctl::RenderStats(stats));
      CheckJson(ctl::Line(ctl::ToJson(stats)));
      break;
    }
    case 6:
      Doctor(input);
      break;
    default:
      Trace(input);
      break;
  }
  return 0;
}
