// /proc and files of a process that chose their text itself: cgroup, command line, maps, environment, its ELF.
// Properties: texts that are kept are short and printable.
#include "daemon/config/match.h"
#include "daemon/registry/cgroups.h"
#include "daemon/registry/command_reader.h"
#include "daemon/registry/process.h"
#include "tests/fuzz/input.h"
#include "tools/xschedctl/doctor/elf_file.h"
#include "tools/xschedctl/doctor/gather_process.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xschedd;
  fuzz::Input input(data, size);
  const std::uint8_t kind = input.Byte() % 6;
  const std::string_view text = input.Rest();
  switch (kind) {
    case 0: {
      const std::string cgroup = CleanText(CgroupIn({"/", "name=systemd"}, text).value_or(""), 1024);
      FUZZ_CHECK(fuzz::IsOneLine(cgroup, 1024));
      (void)CgroupMatches("/user.slice", cgroup);
      (void)CgroupMatches(cgroup, "/user.slice/a");
      break;
    }
    case 1:
      FUZZ_CHECK(fuzz::IsOneLine(CommandText(text), 256));
      break;
    case 2: {
      const std::string clean = CleanText(text, 64);
      FUZZ_CHECK(fuzz::IsOneLine(clean, 64));
      FUZZ_CHECK(CleanText(clean, 64) == clean);
      (void)ExeMatches(clean, "/usr/bin/python3");
      break;
    }
    case 3: {
      ctl::ProcessFacts facts;
      ctl::ReadMaps(std::string(text), &facts);
      break;
    }
    case 4:
      for (const auto& [name, value] : ctl::ParseEnvironment(std::string(text)))
        FUZZ_CHECK(name.find('=') == std::string::npos && value.size() <= text.size());
      break;
    default:
      if (const auto elf = ctl::ParseElf(std::string(text))) {
        FUZZ_CHECK(elf->imports.size() <= text.size());
      }
      break;
  }
  return 0;
}
