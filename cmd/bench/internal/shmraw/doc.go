// Package shmraw measures plain shared memory between two processes of this machine, without an
// adapter: the limits with which figures of the shared-memory link are compared in the same run.
//
//	s, err := shmraw.Open(ctx)
//	defer s.Close()
//	rounds := []measure.Round{s.FlagRounds(10000), s.RingLatencyRounds(8, 10000), s.RingRounds(1<<20, 100*time.Millisecond)}
//
// A flag goes back and forth in one cache line. A ring has records of a word, which is stored last, and
// a message, which the producer copies in and the consumer copies out: two copies, and no other work.
// Each of the two processes is pinned to a CPU. The distance of the two CPUs changes all figures, so
// compare only those of one run, with the flag's beside.
package shmraw
