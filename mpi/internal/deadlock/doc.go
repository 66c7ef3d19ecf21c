// Package deadlock finds out why a job does not go on: from what each rank says of
// itself, who waits for whom, which ranks wait for one another for ever, which make
// collective calls that do not belong together, and which messages nobody wants. It is
// a core without I/O: package mpi gathers the States and prints the Report.
//
//	states := []*deadlock.State{...}          // of the ranks that have answered
//	r := deadlock.Analyze(size, states, 1000)
//	if r.Stuck(quiet) {                   // nothing that they wait for can come
//		os.Stderr.WriteString(r.String())
//	}
//
// # Who waits for whom
//
// A rank is blocked if every goroutine of it that is in a call of MPI waits, and there
// is one. A call waits for all of some ranks (a collective call for those whose
// messages it needs now), or for any of them (a receive from any source). Whoever is
// not blocked may do anything; so may who has not answered. A blocked rank can go on
// if one of its calls can: if those that it waits for can go on, all of them or any. Those
// that cannot, however long one waits, are the knot of the graph, and in it is a cycle.
//
// Who asks again and again instead of waiting, and does nothing else, waits as well.
// If he does something else in between he is not blocked: nobody knows what that is
// for.
//
// What is not known is what goroutines do that are not in a call of MPI. So a knot is a
// deadlock of the calls, which ends only if another goroutine of these ranks makes one.
package deadlock
