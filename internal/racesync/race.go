//go:build race

package racesync

import "sync/atomic"

// Enabled reports whether the race detector is on, under which programs take about ten times as
// long and allocate more.
const Enabled = true

// released is written by Release and read by Acquire, which the race detector
// sees.
var released atomic.Uint64

// Release must be called before data becomes visible to others.
func Release() { released.Add(1) }

// Acquire must be called after data of others was seen.
func Acquire() { released.Load() }
