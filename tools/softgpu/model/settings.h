// The settings, all from environment variables; docs/contributing/softgpu.md lists them. Contract:
// settings_from_environment reads the environment once and returns either settings or one line that names the variable,
// what is wrong with it and what is expected. Thread rule: call before other threads change the environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace softgpu {

inline constexpr uint32_t kMaxDevices = 16;

struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;
};

struct Settings {
  std::string name;                           // SOFTGPU_NAME: processes with the same name share devices
  uint32_t devices = 1;                       // SOFTGPU_DEVICES
  std::string isa = "gfx90a";                 // SOFTGPU_ISA
  uint32_t compute_units = 80;                // SOFTGPU_CUS
  uint64_t vram_mb = 196'592;                 // SOFTGPU_VRAM_MB; 192 GB less what an MI308X's firmware keeps
  std::vector<PciAddress> pci;                // SOFTGPU_BDF; one for each device; partitions have the same
  std::vector<uint32_t> visible;              // ROCR_VISIBLE_DEVICES; ordinals, in the order of this process
  double clock_scale = 1.0;                   // SOFTGPU_CLOCK_SCALE
  uint64_t seed = 0;                          // SOFTGPU_SEED
  double jitter_percent = 0.0;                // SOFTGPU_JITTER
  uint64_t late_barriers_us = 0;              // SOFTGPU_LATE_BARRIERS
  bool refuses_queue_priorities = false;      // SOFTGPU_REFUSE_QUEUE_PRIORITIES
  std::string durations_path;                 // SOFTGPU_DURATIONS
  std::string trace_prefix;                   // SOFTGPU_TRACE
  std::vector<std::string> kernel_libraries;  // SOFTGPU_KERNELS
};

struct SettingsResult {
  Settings settings;
  std::string error;  // empty: settings are good
};

SettingsResult settings_from_environment();

// "GPU-...", different for each device.
std::string device_uuid(const std::vector<PciAddress>& pci, uint32_t ordinal);

// Bus, device and function in one number, as in the runtime.
uint32_t bdf_id(const PciAddress& address);

// "0000:c1:00.0", "c1:00.0"; false when it is neither.
bool parse_pci_address(const std::string& text, PciAddress& address);

}  // namespace softgpu
