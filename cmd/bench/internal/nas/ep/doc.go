// Package ep is EP of the NAS Parallel Benchmarks, "embarrassingly parallel": pairs
// of random numbers become pairs of normally distributed ones by Marsaglia's polar
// method, of which the sums are taken and how many there are in each square ring
// around the origin. Ranks have nothing to say to each other before the end, so it
// shows what a processor can do.
//
//	report, err := ep.Run(world.Comm, nas.S) // on any number of ranks
package ep
