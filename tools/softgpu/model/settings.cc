#include "tools/softgpu/model/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace softgpu {

namespace {

class Reader {
 public:
  std::string error;

  std::string text(const char* name, const std::string& fallback) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0' ? value : fallback;
  }

  uint64_t integer(const char* name, uint64_t fallback, uint64_t low, uint64_t high) {
    const std::string value = text(name, "");
    if (value.empty()) return fallback;
    char* end = nullptr;
    errno = 0;
    const uint64_t number = std::strtoull(value.c_str(), &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < low || number > high) {
      fail(name, value, "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
      return fallback;
    }
    return number;
  }

  double real(const char* name, double fallback, double low, double high) {
    const std::string value = text(name, "");
    if (value.empty()) return fallback;
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (*end != '\0' || !std::isfinite(number) || number < low || number > high) {
      char range[96];
      std::snprintf(range, sizeof range, "expected a number from %g to %g", low, high);
      fail(name, value, range);
      return fallback;
    }
    return number;
  }

  void fail(const char* name, const std::string& value, const std::string& expected) {
    if (error.empty()) error = std::string(name) + "=" + value + ": " + expected;
  }
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::vector<PciAddress> pci_addresses(Reader& reader, uint32_t devices) {
  const std::string value = reader.text("SOFTGPU_BDF", "");
  std::vector<PciAddress> addresses;
  for (const std::string& part : split(value, ',')) {
    PciAddress address;
    if (!parse_pci_address(part, address)) {
      reader.fail("SOFTGPU_BDF", value, "expected PCI addresses like 0000:c1:00.0, separated by commas");
    }
    addresses.push_back(address);
  }
  if (!value.empty() && addresses.size() < devices) {
    reader.fail("SOFTGPU_BDF", value, "expected one address for each of " + std::to_string(devices) + " devices");
  }
  for (uint32_t i = static_cast<uint32_t>(addresses.size()); i < devices; ++i) {
    addresses.push_back({.domain = 0, .bus = 0x05 + 0x0f * i, .device = 0, .function = 0});
  }
  return addresses;
}

// As ROCr reads it: ordinals and uuids; the first entry that names no device, or one named already, ends the list.
std::vector<uint32_t> visible_devices(Reader& reader, const std::vector<PciAddress>& pci) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < pci.size(); ++i)
    all.push_back(i);
  if (std::getenv("ROCR_VISIBLE_DEVICES") == nullptr) return all;
  std::vector<uint32_t> visible;
  for (const std::string& part : split(reader.text("ROCR_VISIBLE_DEVICES", ""), ',')) {
    const auto named = std::find_if(all.begin(), all.end(), [&](uint32_t ordinal) {
      return part == std::to_string(ordinal) || part == device_uuid(pci, ordinal);
    });
    if (named == all.end() || std::find(visible.begin(), visible.end(), *named) != visible.end()) break;
    visible.push_back(*named);
  }
  return visible;
}

}  // namespace

uint32_t bdf_id(const PciAddress& address) {
  return address.bus << 8 | address.device << 3 | address.function;
}

std::string device_uuid(const std::vector<PciAddress>& pci, uint32_t ordinal) {
  const PciAddress& own = pci[ordinal];
  uint32_t partition = 0;
  for (uint32_t i = 0; i < ordinal; ++i)
    partition += pci[i].domain == own.domain && bdf_id(pci[i]) == bdf_id(own) ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "GPU-%04x%04x%08x", 0x50f7 + partition, own.domain & 0xffff, bdf_id(own));
  return text;
}

bool parse_pci_address(const std::string& text, PciAddress& address) {
  PciAddress a;
  int used = 0;
  const bool with_domain =
      std::sscanf(text.c_str(), "%x:%x:%x.%x%n", &a.domain, &a.bus, &a.device, &a.function, &used) == 4;
  if (!with_domain) {
    a.domain = 0;
    used = 0;
    if (std::sscanf(text.c_str(), "%x:%x.%x%n", &a.bus, &a.device, &a.function, &used) != 3) return false;
  }
  if (static_cast<size_t>(used) != text.size()) return false;
  if (a.domain > 0xffff || a.bus > 0xff || a.device > 0x1f || a.function > 7) return false;
  address = a;
  return true;
}

SettingsResult settings_from_environment() {
  Reader reader;
  Settings s;
  s.name = reader.text("SOFTGPU_NAME", "uid" + std::to_string(getuid()));
  if (s.name.find('/') != std::string::npos || s.name.size() > 200) {
    reader.fail("SOFTGPU_NAME", s.name, "expected a file name without '/', at most 200 characters");
  }
  s.devices = static_cast<uint32_t>(reader.integer("SOFTGPU_DEVICES", s.devices, 1, kMaxDevices));
  s.isa = reader.text("SOFTGPU_ISA", s.isa);
  if (s.isa.compare(0, 3, "gfx") != 0) reader.fail("SOFTGPU_ISA", s.isa, "expected a name like gfx90a or gfx942");
  s.compute_units = static_cast<uint32_t>(reader.integer("SOFTGPU_CUS", s.compute_units, 1, 1024));
  s.vram_mb = reader.integer("SOFTGPU_VRAM_MB", s.vram_mb, 64, 1u << 20);
  s.pci = pci_addresses(reader, s.devices);
  s.pci.resize(s.devices);
  s.visible = visible_devices(reader, s.pci);
  s.clock_scale = reader.real("SOFTGPU_CLOCK_SCALE", s.clock_scale, 1e-3, 1e6);
  s.seed = reader.integer("SOFTGPU_SEED", s.seed, 0, UINT64_MAX);
  s.jitter_percent = reader.real("SOFTGPU_JITTER", s.jitter_percent, 0, 99);
  s.late_barriers_us = reader.integer("SOFTGPU_LATE_BARRIERS", s.late_barriers_us, 0, 1'000'000);
  s.refuses_queue_priorities = reader.integer("SOFTGPU_REFUSE_QUEUE_PRIORITIES", 0, 0, 1) != 0;
  s.durations_path = reader.text("SOFTGPU_DURATIONS", "");
  s.trace_prefix = reader.text("SOFTGPU_TRACE", "");
  s.kernel_libraries = split(reader.text("SOFTGPU_KERNELS", ""), ':');
  return {s, reader.error};
}

}  // namespace softgpu
