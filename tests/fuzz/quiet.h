// The daemon's log is discarded, but its lines are formatted, because they are part of the test. Thread rule: the
// target's thread.
#pragma once

#include <google/protobuf/stubs/logging.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace xschedd::fuzz {

inline void BeQuiet() {
  static const bool done = [] {
    const auto logger = std::make_shared<spdlog::logger>("fuzz", std::make_shared<spdlog::sinks::null_sink_mt>());
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(logger);
    google::protobuf::SetLogHandler(nullptr);  // the daemon takes it over, too (telemetry/log.cc)
    return true;
  }();
  (void)done;
}

}  // namespace xschedd::fuzz
