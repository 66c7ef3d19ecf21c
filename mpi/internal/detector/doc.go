// Package detector finds out why a rank does not continue: it samples the waiting calls of the
// rank, probes the ranks that they wait for, and has all ranks report when a wait lasts too long.
// At the end of a job it makes sure that every rank knows every mismatch.
//
//	d := detector.New(detector.Config{Engine: eng, GiveUp: 10 * time.Second})
//	d.AttachCalls(calls)         // describes and compares collective calls
//	core.Handler = d.HandlePacket
//	d.Start()
//	text, err := d.Report(ctx)
//	err = d.Flush(ctx, "world") // before the last barrier
//	d.Stop()
//
// # From a wait to a report
//
//	rank 3                          rank 0                         ranks 1, 2, ...
//	sample, twice a second
//	a call has waited too long
//	     ------- Alarm ----------->
//	     <------ AlarmAck ---------
//	     <------ StateQuery ------- ------- StateQuery ----------->
//	     ------- State -----------> <------ State ----------------
//	                                deadlock.Analyze, print
//
// A wait describes itself by the interfaces of package deadlock (Describer, Keyed, Prober,
// Background), and so does a condition that the program polls (deadlock.Poll): once a sample the
// engine passes those that a program has polled (engine.PollStats).
//
//	detector.go   the goroutine, and the samples of waits
//	polls.go      the samples of polled conditions, and whether the program computes in between
//	probes.go     Probe                                 liveness probes of the ranks waited for
//	lost.go       RankLost                              losses, reported to the ranks that wait for us
//	query.go      Alarm, AlarmAck, StateQuery, State    the states of all ranks
//	report.go     the state of this rank, and the text
//	flush.go      Mismatch, Confirm, Flush, Flushed,    the end of a job
//	              Depart
//	packets.go    the packets, whose table is in package deadlock; CallEnded and the payloads of
//	              Probe and Mismatch are for Calls
//
// Analysis and detector are two packages: package deadlock is a function of the states without
// I/O, clocks and locks, and so its tests cover all states of a job.
package detector
