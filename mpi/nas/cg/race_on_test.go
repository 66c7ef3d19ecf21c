//go:build race

package cg

const raceEnabled = true
