//go:build race

package shm

import "sync/atomic"

// The race detector does not see what happens in memory outside of Go's heap. Where
// ranks are goroutines of one process, as in tests, it is told here that who has shown
// something or is done has done so before those who find that out go on.
var happened atomic.Uint64

func happens()       { happened.Add(1) }
func happensBefore() { happened.Load() }
