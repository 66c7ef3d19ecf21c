//go:build !race

package nack

const raceEnabled = false
