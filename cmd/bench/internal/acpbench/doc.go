// Package acpbench measures package acp on ranks that are processes of this machine.
//
// A [Job] is the processes. Rounds on it alternate with their baselines:
//
//	job, err := acpbench.Open(ctx, acpbench.Config{Ranks: 2})
//	defer job.Close()
//	us := measure.NewLatency()
//	v, err := measure.Alternate(ctx, 9, job.PingPong(acpbench.Channel{SlotSize: 64 << 10, Imm: true}, 8, 1000, us), send.LatencyRounds(1000, nil))
//
// Rank 0 measures. Between rounds the ranks block and use no processor time. Channels are created by the first
// round that needs them, and reused by later rounds.
//
// # Verification
//
// Messages are patterns. The receiver verifies the last message of every round, and the last copy is verified
// as well. Wrong data is an error.
package acpbench
