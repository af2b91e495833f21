#include "tools/xschedctl/chrome_trace.h"

#include <algorithm>

namespace xschedd::ctl {

ChromeTrace::ChromeTrace(std::ostream& out, std::uint64_t origin_ns, const Json& about)
    : out_(out), origin_ns_(origin_ns) {
  out_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":" << about.dump(-1, ' ', false, Json::error_handler_t::replace)
       << ",\"traceEvents\":[\n";
}

// The format has microseconds; a double resolves ns for a hundred days.
double ChromeTrace::Us(std::uint64_t time_ns) const {
  return static_cast<double>(std::max(time_ns, origin_ns_) - origin_ns_) / 1e3;
}

void ChromeTrace::NameProcess(std::uint64_t process, const std::string& name, int order) {
  Write({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}});
  Write({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", process}, {"args", {{"sort_index", order}}}});
}

void ChromeTrace::NameLine(const Track& track, const std::string& name) {
  Write(
      {{"ph", "M"}, {"name", "thread_name"}, {"pid", track.process}, {"tid", track.line}, {"args", {{"name", name}}}});
}

void ChromeTrace::Slice(const Track& track, std::string_view name, std::string_view colour, std::uint64_t start_ns,
                        std::uint64_t end_ns, const Json& args) {
  ++slices_;
  Write({{"ph", "X"},
         {"name", name},
         {"cname", colour},
         {"pid", track.process},
         {"tid", track.line},
         {"ts", Us(start_ns)},
         {"dur", static_cast<double>(end_ns - std::min(start_ns, end_ns)) / 1e3},
         {"args", args}});
}

void ChromeTrace::Instant(std::uint64_t process, std::string_view name, std::uint64_t time_ns, const Json& args) {
  Write({{"ph", "i"},
         {"s", process == 0 ? "g" : "p"},
         {"name", name},
         {"pid", process},
         {"tid", 0},
         {"ts", Us(time_ns)},
         {"args", args}});
}

void ChromeTrace::Counter(std::uint64_t process, std::string_view name, std::uint64_t time_ns, const Json& args) {
  Write({{"ph", "C"}, {"name", name}, {"pid", process}, {"ts", Us(time_ns)}, {"args", args}});
}

void ChromeTrace::Write(const Json& event) {
  out_ << (is_first_ ? "" : ",\n") << event.dump(-1, ' ', false, Json::error_handler_t::replace);
  is_first_ = false;
}

void ChromeTrace::Close() {
  out_ << "\n]}\n";
  out_.flush();
}

}  // namespace xschedd::ctl
