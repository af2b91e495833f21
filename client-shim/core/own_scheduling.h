// The agent's place on the processors. A thread inherits affinity and scheduling class from the one that makes it, and
// the agent is made by whichever thread uses the GPU first: one that is bound to a core would share it, one that runs
// by SCHED_FIFO would make gRPC's threads real-time ones. Thread rule: the agent's thread, at its start; the threads
// made from it inherit what this sets.
#pragma once

namespace xschedd::shim {

// The calling thread runs by SCHED_OTHER, wherever any thread of the process may run. What the system refuses stays as
// it is. A process that was bound as a whole stays so.
void LeaveTheMakersScheduling();

}  // namespace xschedd::shim
