//go:build race

package perftest_test

// raceEnabled reports whether the race detector watches.
const raceEnabled = true
