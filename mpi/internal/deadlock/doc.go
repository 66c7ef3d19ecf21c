// Package deadlock analyzes why a job makes no progress. From the state of each rank it
// derives the ranks that wait for each other forever, the collective calls that do not
// match, and the unmatched messages. It performs no I/O: package mpi gathers the States
// and prints the Report.
//
//	states := []*deadlock.State{...}          // of the ranks that replied
//	r := deadlock.Analyze(size, states, 1000)
//	if r.IsStuck(quiet) {                     // no call in the knot can complete
//		os.Stderr.WriteString(r.String())
//	}
//
// # Wait-for graph
//
// A rank is blocked if it has goroutines in MPI calls and all of these wait. A call
// waits for all of some ranks (a collective call, for the ranks whose messages it needs
// now) or for any of them (a receive from any source: the OR model). A rank that is not
// blocked, or that did not reply, may do anything. A blocked rank can progress if one
// of its calls can: if the ranks that it waits for can, all or any. The ranks that
// cannot progress are the knot of the graph, which contains a cycle.
//
// A rank that polls in a loop and does nothing else waits as well. If it does other
// work in between, it is not blocked, since the purpose of that work is unknown.
//
// The analysis does not see goroutines outside of MPI calls. Thus a knot is a deadlock
// of the calls, which ends only if another goroutine of these ranks makes an MPI call.
package deadlock
