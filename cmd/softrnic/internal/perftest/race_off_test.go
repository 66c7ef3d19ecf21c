//go:build !race

package perftest_test

const raceEnabled = false
