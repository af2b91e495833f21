// The agent's affinity and scheduling class. A thread inherits both from the thread that makes it, and the first thread
// that uses the GPU makes the agent: if that one is bound to a core, the agent would share it; if it runs by
// SCHED_FIFO, gRPC's threads would be real-time ones. Thread rule: the agent's thread, at its start; the threads made
// from it inherit what this sets.
#pragma once

namespace xschedd::shim {

// The calling thread runs by SCHED_OTHER, wherever any thread of the process may run. What the system refuses stays as
// it is. A process that was bound as a whole stays so.
void LeaveTheMakersScheduling();

}  // namespace xschedd::shim
