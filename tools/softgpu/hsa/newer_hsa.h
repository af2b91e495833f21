// Attributes of HSA headers newer than the installed 5.2.3, which ROCm 6.4 and 7.2 query. Values from the public ROCr
// headers (hsa_ext_amd.h), which only ever append.
#pragma once

namespace softgpu {

enum NewerPoolInfo {
  kPoolInfoLocation = 17,
  kPoolInfoAllocRecGranule = 18,
};

enum NewerAgentInfo {
  kAgentInfoMemoryAvail = 0xA015,
  kAgentInfoTimestampFrequency = 0xA016,
  kAgentInfoAsicFamilyId = 0xA107,
  kAgentInfoUcodeVersion = 0xA108,
  kAgentInfoSdmaUcodeVersion = 0xA109,
  kAgentInfoNumSdmaEngines = 0xA10A,
  kAgentInfoNumSdmaXgmiEngines = 0xA10B,
  kAgentInfoIommuSupport = 0xA110,
  kAgentInfoNumXcc = 0xA111,
  kAgentInfoDriverUid = 0xA112,
  kAgentInfoNearestCpu = 0xA113,
  kAgentInfoMemoryProperties = 0xA114,
  kAgentInfoAqlExtensions = 0xA115,
  kAgentInfoScratchLimitMax = 0xA116,
  kAgentInfoScratchLimitCurrent = 0xA117,
  kAgentInfoClockCounters = 0xA118,
};

enum NewerSystemInfo {
  kSystemInfoMwaitxEnabled = 0x203,
  kSystemInfoDmabufSupported = 0x204,
  kSystemInfoVirtualMemSupported = 0x205,
  kSystemInfoXnackEnabled = 0x206,
  kSystemInfoExtVersionMajor = 0x207,
  kSystemInfoExtVersionMinor = 0x208,
};

}  // namespace softgpu
