// Package mpirun starts the ranks of a job on this host or, by ssh, on others. It is
// their process manager, forwards their input and output, and terminates all ranks
// when one fails.
//
//	err := mpirun.Run(ctx, mpirun.Options{
//		Programs: []mpirun.Program{{N: 4, Args: []string{"./ring"}}},
//		Stdout:   os.Stdout,
//		Stderr:   os.Stderr,
//	})
//	failed := (*mpirun.Failure)(nil)
//	if errors.As(err, &failed) {
//		os.Exit(failed.Status) // "rank 3 on node1 (pid 4711) exited with status 2; ..."
//	}
//
// Each host, including this one, runs an agent (package agent). The launcher
// exchanges frames with it over its standard input and output, which ssh carries to
// other hosts. The PMI connection of a rank to the process manager (package
// server of internal/pmi) takes the same path. So no port has to pass firewalls or to be
// guarded against strangers, and the end of either side ends the other.
//
//	Options      the user's settings; hosts.go and place.go map ranks to hosts
//	gobuild.go   compiles Go packages
//	verdict.go   the state machine that determines why a job ends
//	run.go       the event loop around it
//	link.go      the connection to one agent
//	output.go    opens the files of the output, and merges it in whole lines
package mpirun
