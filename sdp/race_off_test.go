//go:build !race

package sdp_test

const raceEnabled = false
