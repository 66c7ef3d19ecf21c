//go:build !race

package nas_test

const raceEnabled = false
