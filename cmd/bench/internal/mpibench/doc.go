// Package mpibench runs benchmarks of MPI on ranks that are processes of this
// machine: those of cmd/bench/internal/osu, cmd/bench/internal/imb and cmd/bench/internal/nas, over any of the nets that package
// mpi has.
//
// A [Job] is the processes. An experiment opens one for each subject and lets them
// take turns:
//
//	rdma, err := mpibench.Open(ctx, mpibench.Config{Over: mpibench.RDMA, Ranks: 2})
//	defer rdma.Close()
//	tcp, err := mpibench.Open(ctx, mpibench.Config{Over: mpibench.TCP, Ranks: 2})
//	defer tcp.Close()
//	v, err := measure.Alternate(ctx, 9, rdma.Latency(8, 1000), tcp.Latency(8, 1000))
//
// Between rounds the ranks wait for the next one and cost nothing. Their process
// manager is the parent: what a rank wants the others to know goes through package
// proc.
//
// # Answers
//
// Each series of rounds begins with one whose data is looked at, and the kernels of
// NAS have results that are published: what is wrong is an error.
package mpibench
