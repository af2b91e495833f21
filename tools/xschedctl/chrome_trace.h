// Writes a trace that ui.perfetto.dev opens (Chrome's JSON event format), an event at a time, so that memory does not
// grow with the recording. Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

class ChromeTrace {
 public:
  // A process and a line in it, the format's pid and tid. Neither needs to exist.
  struct Track {
    std::uint64_t process = 0;
    std::uint64_t line = 0;
  };

  // Times are in ns of one clock; the trace begins at `origin_ns`. `out` outlives it.
  ChromeTrace(std::ostream& out, std::uint64_t origin_ns, const Json& about);

  void NameProcess(std::uint64_t process, const std::string& name, int order);
  void NameLine(const Track& track, const std::string& name);
  // `colour`: one of the names that the format reserves.
  void Slice(const Track& track, std::string_view name, std::string_view colour, std::uint64_t start_ns,
             std::uint64_t end_ns, const Json& args);
  // A mark on a process, or on all (process 0).
  void Instant(std::uint64_t process, std::string_view name, std::uint64_t time_ns, const Json& args);
  // The values of `args` from `time_ns` on, as one chart.
  void Counter(std::uint64_t process, std::string_view name, std::uint64_t time_ns, const Json& args);
  // Nothing may be written afterwards.
  void Close();

  std::uint64_t Slices() const { return slices_; }

 private:
  void Write(const Json& event);
  double Us(std::uint64_t time_ns) const;

  std::ostream& out_;
  std::uint64_t origin_ns_;
  std::uint64_t slices_ = 0;
  bool is_first_ = true;
};

}  // namespace xschedd::ctl
