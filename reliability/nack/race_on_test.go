//go:build race

package nack

// raceEnabled says that everything takes ten times as long.
const raceEnabled = true
