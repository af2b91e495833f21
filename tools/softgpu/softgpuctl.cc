// softgpuctl: shows or removes the shared memory of a software GPU.
//   softgpuctl status [NAME]   the number of its live users
//   softgpuctl clean [NAME]    removes it if it has no live user (killed processes leave it behind)
// NAME defaults to SOFTGPU_NAME, else to the default of this user.
#include <cstdio>
#include <cstring>

#include "tools/softgpu/model/region.h"
#include "tools/softgpu/model/settings.h"

int main(int argc, char** argv) {
  const softgpu::SettingsResult result = softgpu::settings_from_environment();
  const std::string name = argc > 2 ? argv[2] : result.settings.name;
  const bool clean = argc > 1 && std::strcmp(argv[1], "clean") == 0;
  const bool status = argc > 1 && std::strcmp(argv[1], "status") == 0;
  if ((!clean && !status) || argc > 3) {
    std::fprintf(stderr, "usage: softgpuctl status|clean [NAME]\n");
    return 2;
  }
  const int live = clean ? softgpu::Region::clean(name) : softgpu::Region::live_users(name);
  if (live < 0) {
    std::printf("%s: does not exist\n", name.c_str());
  } else if (clean && live == 0) {
    std::printf("%s: removed\n", name.c_str());
  } else {
    std::printf("%s: %d live user%s\n", name.c_str(), live, live == 1 ? "" : "s");
  }
  return clean && live > 0 ? 1 : 0;
}
