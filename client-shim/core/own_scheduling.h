// The agent's affinity and scheduling class. A thread inherits both from its creator, and the agent's is the first
// thread that uses the GPU. If that thread is bound to a core, the agent would compete with it there; if it runs under
// SCHED_FIFO, gRPC's threads would be real-time threads. Thread rule: the agent's thread, at its start; the threads
// that it creates inherit the result.
#pragma once

namespace xschedd::shim {

// Puts the calling thread under SCHED_OTHER, and lets it run wherever any thread of the process may. What the system
// refuses stays as it is. A process that is bound as a whole stays bound.
void ResetInheritedScheduling();

}  // namespace xschedd::shim
