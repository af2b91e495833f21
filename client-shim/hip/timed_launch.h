// Launches with a stop event: the device times the kernel, and the event is a marker behind it. Says which entry points
// have such a form, and calls it. The core asks for it only after a plain launch of the same kernel has succeeded
// (core/cost_table.h). Entry points that take events themselves, which rocBLAS, hipBLASLt and MIOpen use, are timed if
// the program passes none and requires the stream's order (`flags`).
// Thread rule: any thread.
#pragma once

#include "client-shim/hip/runtime.h"

namespace xschedd::shim::hip {

inline constexpr uint32_t kEntryExtModule = kEntry_hipExtModuleLaunchKernel;
inline constexpr uint32_t kEntryExtModuleMangled =
    kEntry__Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j;
inline constexpr uint32_t kEntryHccModule = kEntry_hipHccModuleLaunchKernel;
inline constexpr uint32_t kEntryHccModuleMangled =
    kEntry__Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_;

// The events among a launch's arguments. Afterwards the start event stands for nothing; the stop event stands for the
// stream's work up to this kernel, unless the kernel may run out of order (`flags`).
struct LaunchEvents {
  Event start = nullptr;
  Event stop = nullptr;
  bool is_in_order = true;
};
template <typename... Arguments>
LaunchEvents EventsOf(Arguments...) {
  return {};
}
inline LaunchEvents EventsOf(const void*, Dim3, Dim3, void**, size_t, Stream, Event start, Event stop, int flags) {
  return {start, stop, flags == 0};
}
template <typename... Flags>
LaunchEvents EventsOf(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, Stream, void**,
                      void**, Event start, Event stop, Flags... flags) {
  return {start, stop, (... && (flags == 0))};
}

template <Route route, uint32_t entry>
struct TimedLaunch {
  template <typename... Arguments>
  static bool IsPossible(Arguments...) {
    return false;
  }
  template <typename... Arguments>
  static Result Call(Event, Arguments...) {
    return kErrorNotSupported;
  }
};

template <Route route>
struct TimedLaunch<route, kEntry_hipLaunchKernel> {
  using Ext = Result (*)(const void*, Dim3, Dim3, void**, size_t, Stream, Event, Event, int);
  static bool IsPossible(const void*, Dim3, Dim3, void**, size_t, Stream) {
    return HasReal<route>(kEntry_hipExtLaunchKernel);
  }
  static Result Call(Event stop, const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared,
                     Stream stream) {
    return Real<route, Ext>(kEntry_hipExtLaunchKernel)(function, grid, block, arguments, shared, stream, nullptr, stop,
                                                       0);
  }
};

template <Route route>
struct TimedLaunch<route, kEntry_hipModuleLaunchKernel> {
  using Ext = Result (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, Stream, void**,
                         void**, Event, Event, unsigned);
  // This form takes the grid in work items, which must fit into 32 bits.
  static bool IsPossible(Handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned,
                         Stream, void**, void**) {
    const auto fits = [](uint64_t groups, uint64_t size) { return groups * size <= 0xffffffffull; };
    return fits(gx, bx) && fits(gy, by) && fits(gz, bz) &&
           (HasReal<route>(kEntryExtModule) || HasReal<route>(kEntryExtModuleMangled));
  }
  static Result Call(Event stop, Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                     unsigned bz, unsigned shared, Stream stream, void** params, void** extra) {
    const uint32_t entry = HasReal<route>(kEntryExtModule) ? kEntryExtModule : kEntryExtModuleMangled;
    return Real<route, Ext>(entry)(function, gx * bx, gy * by, gz * bz, bx, by, bz, shared, stream, params, extra,
                                   nullptr, stop, 0);
  }
};

template <Route route>
struct TimedLaunch<route, kEntry_hipExtLaunchKernel> {
  static bool IsPossible(const void*, Dim3, Dim3, void**, size_t, Stream, Event start, Event stop, int flags) {
    return start == nullptr && stop == nullptr && flags == 0;
  }
  static Result Call(Event stop, const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared,
                     Stream stream, Event, Event, int flags) {
    using Ext = Result (*)(const void*, Dim3, Dim3, void**, size_t, Stream, Event, Event, int);
    return Real<route, Ext>(kEntry_hipExtLaunchKernel)(function, grid, block, arguments, shared, stream, nullptr, stop,
                                                       flags);
  }
};

// hipExtModuleLaunchKernel, and hipHccModuleLaunchKernel, which has no flags: `Flags` is unsigned or nothing.
template <Route route, uint32_t entry>
struct TimedExtModuleLaunch {
  template <typename... Flags>
  static bool IsPossible(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, Stream, void**,
                         void**, Event start, Event stop, Flags... flags) {
    return start == nullptr && stop == nullptr && (... && (flags == 0));
  }
  template <typename... Flags>
  static Result Call(Event stop, Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                     unsigned bz, size_t shared, Stream stream, void** params, void** extra, Event, Event,
                     Flags... flags) {
    using Ext = Result (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, Stream, void**,
                           void**, Event, Event, Flags...);
    return Real<route, Ext>(entry)(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra, nullptr, stop,
                                   flags...);
  }
};
template <Route route>
struct TimedLaunch<route, kEntryExtModule> : TimedExtModuleLaunch<route, kEntryExtModule> {};
template <Route route>
struct TimedLaunch<route, kEntryExtModuleMangled> : TimedExtModuleLaunch<route, kEntryExtModuleMangled> {};
template <Route route>
struct TimedLaunch<route, kEntryHccModule> : TimedExtModuleLaunch<route, kEntryHccModule> {};
template <Route route>
struct TimedLaunch<route, kEntryHccModuleMangled> : TimedExtModuleLaunch<route, kEntryHccModuleMangled> {};

}  // namespace xschedd::shim::hip
