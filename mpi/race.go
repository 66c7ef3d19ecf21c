//go:build race

package mpi

// underRace is whether the race detector watches.
const underRace = true
