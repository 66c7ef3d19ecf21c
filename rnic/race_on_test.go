//go:build race

package rnic

// raceEnabled: the race detector is on, which allocates where the program does
// not.
const raceEnabled = true
