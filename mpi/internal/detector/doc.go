// Package detector detects deadlocks and lost ranks: it samples the waiting calls of the
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
// The packets that each file handles. A file uses those below it only. The table of packets is in
// package deadlock.
//
//	detector.go   Detector: the goroutine and the dispatch of packets
//	query.go      Alarm, AlarmAck, StateQuery, State   the states of all ranks
//	report.go     -                                    the state of this rank, and Calls
//	polls.go      -                                    conditions that the program polls
//	waits.go      -                                    waiting calls by sample
//	probes.go     Probe                                liveness probes of the ranks waited for
//	lost.go       Probe, RankLost                      losses, for the ranks that wait for us
//	flush.go      Mismatch, Confirm, Flush, Flushed,   the end of a job
//	              Depart
//	rank.go       -                                    times, and SendPacket
//
// CallEnded, and the payloads of Probe and Mismatch, are for Calls.
//
// Analysis and detector are two packages: package deadlock is a function of the states without
// I/O, clocks and locks, and so its tests cover all states of a job.
package detector
