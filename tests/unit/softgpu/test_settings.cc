// Settings from the environment, and messages about invalid values.
#include <cstdlib>
#include <map>

#include "tests/catch.h"
#include "tools/softgpu/model/settings.h"

using namespace softgpu;

namespace {

SettingsResult with(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables)
    setenv(name.c_str(), value.c_str(), 1);
  SettingsResult result = settings_from_environment();
  for (const auto& [name, value] : variables)
    unsetenv(name.c_str());
  return result;
}

}  // namespace

TEST_CASE("without settings there is one device of 80 compute units") {
  const SettingsResult r = with({});
  REQUIRE(r.error.empty());
  CHECK(r.settings.devices == 1);
  CHECK(r.settings.compute_units == 80);
  CHECK(r.settings.pci.size() == 1);
}

TEST_CASE("devices have different PCI addresses unless they are given") {
  const SettingsResult defaults = with({{"SOFTGPU_DEVICES", "16"}});
  REQUIRE(defaults.error.empty());
  std::map<uint32_t, int> buses;
  for (const PciAddress& a : defaults.settings.pci) {
    CHECK(a.bus <= 0xff);
    ++buses[a.bus];
  }
  CHECK(buses.size() == 16);
  const SettingsResult given = with({{"SOFTGPU_DEVICES", "2"}, {"SOFTGPU_BDF", "0001:c1:00.0,c2:1f.7"}});
  REQUIRE(given.error.empty());
  CHECK(given.settings.pci[0].domain == 1);
  CHECK(given.settings.pci[1].bus == 0xc2);
  CHECK(given.settings.pci[1].device == 0x1f);
}

TEST_CASE("partitions have one PCI address and different names") {
  const SettingsResult r = with({{"SOFTGPU_DEVICES", "3"}, {"SOFTGPU_BDF", "0000:c1:00.0,0000:c1:00.0,0000:c2:00.0"}});
  REQUIRE(r.error.empty());
  const std::string first = device_uuid(r.settings.pci, 0);
  CHECK(first.size() == 20);
  CHECK(first != device_uuid(r.settings.pci, 1));
  CHECK(device_uuid(r.settings.pci, 1) != device_uuid(r.settings.pci, 2));
  CHECK(bdf_id(r.settings.pci[0]) == bdf_id(r.settings.pci[1]));
}

TEST_CASE("ROCR_VISIBLE_DEVICES chooses and orders the devices") {
  const auto visible = [](const std::string& value) {
    const SettingsResult r = with({{"SOFTGPU_DEVICES", "3"}, {"ROCR_VISIBLE_DEVICES", value}});
    REQUIRE(r.error.empty());
    return r.settings.visible;
  };
  using Ordinals = std::vector<uint32_t>;
  CHECK(with({{"SOFTGPU_DEVICES", "3"}}).settings.visible == Ordinals{0, 1, 2});
  CHECK(visible("1") == Ordinals{1});
  CHECK(visible("2,0") == Ordinals{2, 0});
  CHECK(visible("1,9,0") == Ordinals{1});  // entries after a wrong one do not count
  CHECK(visible("1,1,0") == Ordinals{1});
  CHECK(visible("").empty());
  CHECK(visible("-1").empty());
  CHECK(visible(device_uuid(with({{"SOFTGPU_DEVICES", "3"}}).settings.pci, 2)) == Ordinals{2});
}

TEST_CASE("an error names the wrong value and what is expected") {
  const std::map<std::string, std::string> wrong = {
      {"SOFTGPU_DEVICES", "0"},
      {"SOFTGPU_CUS", "many"},
      {"SOFTGPU_CLOCK_SCALE", "-1"},
      {"SOFTGPU_JITTER", "100"},
      {"SOFTGPU_BDF", "zz"},
      {"SOFTGPU_ISA", "sm_90"},
      {"SOFTGPU_SEED", "1x"},
      {"SOFTGPU_NAME", "a/b"},
      {"SOFTGPU_VRAM_MB", "1"},
      {"SOFTGPU_LATE_BARRIERS", "-1"},
      {"SOFTGPU_REFUSE_QUEUE_PRIORITIES", "2"},
  };
  for (const auto& [name, value] : wrong) {
    const SettingsResult r = with({{name, value}});
    CHECK(r.error.find(name) == 0);
    CHECK(r.error.find("=" + value + ": expected") == name.size());
  }
}

TEST_CASE("kernel libraries are separated by colons") {
  const SettingsResult r = with({{"SOFTGPU_KERNELS", "/a.so::/b.so"}});
  CHECK(r.settings.kernel_libraries == std::vector<std::string>{"/a.so", "/b.so"});
}
