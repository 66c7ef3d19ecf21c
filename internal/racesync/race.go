//go:build race

package racesync

import "sync/atomic"

// left is written by what leaves and read by what arrives, which the detector sees.
var left atomic.Uint64

// Leaving stands before anything becomes visible to others.
func Leaving() { left.Add(1) }

// Arrived stands after something of others was seen.
func Arrived() { left.Load() }
