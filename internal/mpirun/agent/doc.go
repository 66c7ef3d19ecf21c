// Package agent is the part of softrnic mpirun that runs on each host. It starts
// ranks, forwards their input, output and PMI connections, and terminates the
// processes that they leave behind.
//
//	err := agent.Run(os.Stdin, os.Stdout)
//
// The launcher controls it by frames on its input. The end of the input terminates
// all ranks, so none survives a launcher or an ssh that dies.
//
// Each rank has its own process group. On Linux the agent finds every descendant of
// a rank, in whatever group or session, because orphans become its children
// (PR_SET_CHILD_SUBREAPER), and ranks die with an agent that dies
// (PR_SET_PDEATHSIG). On other Unix systems it finds only the processes in the
// group, and elsewhere only the ranks.
package agent
