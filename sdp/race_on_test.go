//go:build race

package sdp_test

// raceEnabled says that everything takes ten times as long.
const raceEnabled = true
