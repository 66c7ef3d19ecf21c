//go:build !linux

package overlap

import "time"

var began = time.Now()

// threadTime returns the time since the start of the process, because the processor time of a thread
// is not known.
func threadTime() time.Duration { return time.Since(began) }
