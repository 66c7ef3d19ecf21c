// Package peers runs the benchmark programs of other implementations, where
// they are installed, as a user would instead of ours: two processes on this
// machine, on a CPU each as those of our own experiments.
//
//	if peers.HasLibfabric() {
//		f, err := peers.FabricPingPong(ctx, peers.RXD, 65536, 1000)
//		// f.Micros, f.MBps
//	}
package peers
