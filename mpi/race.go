//go:build race

package mpi

// underRace is whether the race detector watches. It does not see that ranks that meet in
// memory in common have done before what others do by the network after, and the other
// way round: so they look at the network as well, before and behind.
const underRace = true
