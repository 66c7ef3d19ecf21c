// Package peers runs the benchmark programs of other implementations that are
// installed, as a user would: two processes on this
// machine, each pinned to a CPU like those of our own experiments.
//
//	if peers.HasLibfabric() {
//		f, err := peers.FabricPingPong(ctx, peers.RXD, 65536, 1000)
//		// f.Micros, f.MBps
//	}
package peers
