// Package mpibench runs MPI benchmarks on ranks that are processes of this
// machine: those of packages osu, imb and nas in cmd/bench/internal, over any transport
// of package mpi.
//
// A [Job] is the processes. An experiment opens one for each target and alternates
// them:
//
//	rdma, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: 2})
//	defer rdma.Close()
//	tcp, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.TCP, Ranks: 2})
//	defer tcp.Close()
//	v, err := measure.Alternate(ctx, 9, rdma.Latency(8, 1000), tcp.Latency(8, 1000))
//
// Between rounds the ranks block and use no processor time. Their process
// manager is the parent: key-value pairs are exchanged through package
// proc.
//
// # Verification
//
// The first round of each series verifies data, and the results of the NAS kernels
// are compared with the published ones: a wrong result is an error.
package mpibench
