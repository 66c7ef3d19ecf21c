// Package mpirun starts the ranks of a job, here or on other hosts by ssh, is
// their process manager, passes on what they read and write, and ends them all when
// one fails.
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
// On each host there is an agent, also on this one: package agent. The launcher talks
// to it through its standard input and output, which ssh carries to other hosts, and
// everything between a rank and the process manager (package server of mpi/pmi)
// goes the same way. So there is no port to be reached through firewalls or to be
// guarded against strangers, and the end of either side is the end of both.
//
//	Options      what the user says; hosts.go and place.go say who runs where
//	gobuild.go   Go packages become programs
//	verdict.go   why a job ends, a state machine
//	run.go       the loop around it
//	link.go      an agent, as the launcher sees it
//	output.go    whole lines, whoever writes at the same time; files.go says where
package mpirun
