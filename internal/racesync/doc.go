// Package order tells the race detector what it cannot see: that what was done
// before something left by the kernel or by memory in common has happened before
// whatever is done by those whom it reaches. Package syscall says so of Read and
// Write in the same way. Without the detector it is nothing.
//
// It is one order for all ways, because news takes several: memory is written, a
// barrier in common memory says so to another process, and that one's packet works
// on the memory.
//
//	racesync.Release() // before packets are given to the system
//	racesync.Acquire() // after they have come from it
package racesync
