// Whether there is something to schedule, and how it is intercepted.
#include <cerrno>
#include <cstring>

#include "tools/xschedctl/doctor/checks.h"

namespace xschedd::ctl {

Findings CheckRuntimes(const Facts& facts) {
  if (facts.hip.empty() && facts.cuda.empty()) {
    return {Warning(
        "no libamdhip64 and no libcuda where the loader looks: only programs that bring their own can use a GPU",
        "install ROCm or NVIDIA's driver, or set LD_LIBRARY_PATH or ROCM_PATH")};
  }
  Findings findings;
  for (const RuntimeFacts& hip : facts.hip) {
    const char* route = hip.registers ? ", intercepted by its dispatch table" : ", intercepted by its symbols";
    findings.push_back(Ok(hip.path + " (" + hip.found_by + ")" + route));
  }
  for (const RuntimeFacts& cuda : facts.cuda)
    findings.push_back(Ok(cuda.path + " (" + cuda.found_by + "), intercepted by its symbols"));
  return findings;
}

Findings CheckDevices(const Facts& facts) {
  Findings findings;
  const auto look = [&](const std::vector<DeviceFileFacts>& files, const char* fix) {
    for (const DeviceFileFacts& file : files) {
      if (file.open_error == 0) {
        findings.push_back(Ok(file.path + " can be opened"));
      } else {
        findings.push_back(
            Broken("you cannot open " + file.path + ": " + std::strerror(file.open_error),
                   file.open_error == EACCES || file.open_error == EPERM ? fix : "check the driver: dmesg"));
      }
    }
  };
  look(facts.amd_devices,
       "add the user to the groups render and video, or give the container --device /dev/kfd "
       "--device /dev/dri");
  look(facts.nvidia_devices, "give the container --gpus all, or check the file's mode");
  if (facts.process && facts.process->has_software_gpu) {
    findings.push_back(Warning("pid " + std::to_string(facts.process->pid) + " uses the software GPU, " +
                                   facts.process->maps_hsa + ": its figures are not a GPU's",
                               "start it without that folder in LD_LIBRARY_PATH to use a GPU"));
  } else if (!facts.software_gpu.empty()) {
    findings.push_back(
        Warning("programs here get the software GPU, " + facts.software_gpu + ": its figures are not a GPU's",
                "take its folder out of LD_LIBRARY_PATH to use a GPU"));
  }
  if (findings.empty() && !facts.used_devices.empty()) {
    std::string all;
    for (const std::string& device : facts.used_devices)
      all += (all.empty() ? "" : "; ") + device;
    findings.push_back(Warning(
        "clients use " + all + ", but no GPU device file is here: a software GPU, or a GPU of another container",
        "check one of them by its pid, or give this container the devices"));
  }
  if (findings.empty()) {
    findings.push_back(Warning("no GPU: neither /dev/kfd nor /dev/nvidiactl is there",
                               "load the driver (modprobe amdgpu), or give the container its devices"));
  }
  return findings;
}

// Nothing depends on time slices, so their absence is not an error.
Findings CheckSlices(const Facts& facts) {
  Findings findings;
  for (const auto& [text, times] : facts.slices)
    findings.push_back(Ok(text + (times == 1 ? "" : " (" + std::to_string(times) + " times)")));
  return findings;
}

Findings CheckKernel(const Facts& facts) {
  const KernelFacts& kernel = facts.kernel;
  if (!kernel.has_memfd_seals) {
    return {Broken("Linux " + kernel.release + " lacks sealed memfds (Linux 3.17): the daemon cannot work here",
                   "boot a newer kernel, or allow these calls in the sandbox")};
  }
  // What the daemon does without each is in docs/reference/support-matrix.md.
  std::string text = "Linux " + kernel.release + " has " + (kernel.has_pidfd ? "pidfds and " : "") + "sealed memfds";
  const auto add = [&text](bool has, const char* without) {
    if (!has) text += "; " + std::string(without);
  };
  add(kernel.has_future_write_seal,
      "without F_SEAL_FUTURE_WRITE (5.1) a client's gates are read-only to it by the file's mode");
  add(kernel.has_pidfd, "without pidfd_open (5.3) the end of a process is noticed half a second late");
  add(kernel.has_peer_pidfd, "without SO_PEERPIDFD (6.5) a connecting process is found by its number");
  return {Ok(text)};
}

}  // namespace xschedd::ctl
