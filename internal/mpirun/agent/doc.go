// Package agent is the part of softrnic mpirun that runs on each host: it starts
// ranks, carries their input, output and PMI, and ends what they leave behind.
//
//	err := agent.Run(os.Stdin, os.Stdout)
//
// It hears from the launcher by frames on its input. The end of the input ends all
// its ranks, so nothing survives a launcher or an ssh that dies.
//
// Each rank has a process group of its own. On Linux everything that a rank starts
// is found, whatever group or session it moves to, since it stays below the agent
// (PR_SET_CHILD_SUBREAPER); and ranks die with an agent that dies
// (PR_SET_PDEATHSIG). On other Unix systems what leaves the group is not found, and
// elsewhere only ranks are ended.
package agent
