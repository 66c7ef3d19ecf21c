// Package acpbench measures package acp on ranks that are processes of this machine.
//
// A [Job] is the processes. Rounds on it take turns with their baselines:
//
//	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
//	defer job.Close()
//	us := measure.NewLatency()
//	v, err := measure.Alternate(ctx, 9, job.PingPong(acpbench.Channel{SlotSize: 64 << 10, Imm: true}, 8, 1000, us), send.Rounds(1000, nil))
//
// Rank 0 measures. Between rounds the ranks wait for the next one and cost nothing. Channels are made when a
// round first needs them and kept for the next one.
//
// # Answers
//
// Messages are patterns, of which the receiver compares the last of every round with what it should be; copies are looked at
// as well. What is wrong is an error.
package acpbench
