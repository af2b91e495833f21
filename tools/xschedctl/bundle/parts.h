// The parts of a support bundle: a file for each, and a line for each that is missing, with the reason. Thread rule:
// main thread.
#pragma once

#include <string>
#include <vector>

#include "tools/xschedctl/bundle/redact.h"
#include "tools/xschedctl/bundle/tar.h"
#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

struct Parts {
  std::vector<TarEntry> files;
  std::vector<std::string> missing;  // "journal: why"

  void Add(std::string name, std::string text) { files.push_back({std::move(name), std::move(text)}); }
  void Miss(const std::string& name, const std::string& why) { missing.push_back(name + ": " + why); }
};

// Adds the log and the state of the units. Starts programs, so call it before gRPC has threads.
void AddSystem(Parts* parts);
void AddVersions(const Facts& facts, Parts* parts);
// Adds the daemon's answers, and the check of its configuration file.
void AddDaemon(const std::string& runtime_dir, Redactor* redactor, Parts* parts);
std::string Readme(const Parts& parts, const std::string& when);

}  // namespace xschedd::ctl
