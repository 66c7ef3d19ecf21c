// Package racesync tells the race detector about synchronization that it cannot
// see: data sent through the kernel or through shared memory happens before its
// receipt. Package syscall does the same for Read and Write. Without the race
// detector the functions do nothing.
//
// All channels share one order, because information may pass through several of
// them: memory is written, a barrier in shared memory tells another process,
// and that one's packet operates on the memory.
//
//	racesync.Release() // before packets are passed to the system
//	racesync.Acquire() // after packets were received from it
package racesync
