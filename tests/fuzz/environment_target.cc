// Environment variables: of the shim, of the software GPU, of `xschedctl run`. Properties: accepted values are within
// their limits.
#include "client-shim/core/environment.h"
#include "common/passthrough.h"
#include "common/priority.h"
#include "tests/fuzz/input.h"
#include "tools/softgpu/model/duration.h"
#include "tools/softgpu/model/settings.h"
#include "tools/xschedctl/preload.h"

namespace {

constexpr const char* kNames[] = {"XSCHEDD_PRIORITY",    "XSCHEDD_WEIGHT",
                                  "XSCHEDD_DEADLINE_US", "XSCHEDD_GROUP",
                                  "XSCHEDD_PASSTHROUGH", "SLURM_JOB_ID",
                                  "SLURM_NTASKS",        "SLURM_STEP_ID",
                                  "MASTER_PORT",         "RANK",
                                  "WORLD_SIZE",          "TORCHELASTIC_RUN_ID",
                                  "PMIX_NAMESPACE",      "PMI_SIZE",
                                  "PMI_JOBID",           "SOFTGPU_NAME",
                                  "SOFTGPU_DEVICES",     "SOFTGPU_ISA",
                                  "SOFTGPU_CUS",         "SOFTGPU_VRAM_MB",
                                  "SOFTGPU_BDF",         "ROCR_VISIBLE_DEVICES",
                                  "SOFTGPU_SEED",        "SOFTGPU_CLOCK_SCALE",
                                  "SOFTGPU_JITTER",      "SOFTGPU_KERNELS",
                                  "SOFTGPU_DURATIONS",   "SOFTGPU_LATE_BARRIERS",
                                  "XSCHEDD_STREAMS",     "XSCHEDD_MEMORY"};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xschedd;
  fuzz::Input input(data, size);
  setenv("XSCHEDD_LOG", "quiet", 1);
  for (const char* name : kNames)
    unsetenv(name);
  while (!input.IsEmpty()) {
    const std::uint32_t kind = input.Byte() % (std::size(kNames) + 2);
    const std::string text = input.Text();
    if (kind < std::size(kNames)) {
      setenv(kNames[kind], text.c_str(), 1);
    } else if (kind == std::size(kNames)) {
      const auto composed = ctl::ComposePreload("/opt/lib/libxschedd-shim.so", text);
      FUZZ_CHECK(!composed || composed->find("/opt/lib/libxschedd-shim.so") == 0);
      (void)ctl::ShimCandidates(text, "lib");
    } else {
      softgpu::DurationTable table;
      const std::string wrong = table.parse(text, "durations");
      FUZZ_CHECK(wrong.find('\n') == std::string::npos);
      (void)table.duration_ns("_Z6kernelPf");
    }
  }
  const shim::Environment environment = shim::Environment::Read();
  FUZZ_CHECK(!environment.priority || IsPriority(*environment.priority));
  FUZZ_CHECK(!environment.weight || shim::IsWeight(*environment.weight));
  FUZZ_CHECK(!environment.deadline_us || *environment.deadline_us >= 1);
  for (const std::string_view entry : SplitPassthrough(environment.passthrough))
    (void)ParsePassthrough(entry);
  const softgpu::SettingsResult gpu = softgpu::settings_from_environment();
  if (gpu.error.empty()) {
    FUZZ_CHECK(gpu.settings.devices >= 1 && gpu.settings.devices <= softgpu::kMaxDevices);
    FUZZ_CHECK(gpu.settings.pci.size() == gpu.settings.devices);
    for (const std::uint32_t ordinal : gpu.settings.visible)
      FUZZ_CHECK(ordinal < gpu.settings.devices);
  }
  return 0;
}
