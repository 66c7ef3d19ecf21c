package cluster

import "time"

// InfiniHost are the costs of the nodes of "On using connection-oriented vs. connection-less
// transport for performance and scalability of collective and one-sided operations" (Mamidala and
// others, PPoPP 2007, section 5): MT25208 adapters on PCI Express, DDR links, 3.6 GHz processors,
// and MVAPICH. The flow control papers for SDP have the same adapters.
//
// Few of the numbers are published. Experiment sim-costs of
// bench changes one cost at a time.
//
//   - Contexts is published: "the caching overhead comes into play after 16 connections" (5.1.2).
//     Figure 6b rises at 32, so that 16 to 31 agree with it.
//   - Latency + Post + Complete + 2 Match + 2 Gap are the 4.1 us of a short message of MPI
//     with these adapters in "Evaluating InfiniBand performance with PCI Express" (Liu and
//     others, IEEE Micro 2005). Latency is what the other costs leave.
//   - Post, Complete and Match are inferred: "if 1 us overhead is incurred per message", UD takes
//     half as long as RC, so that the processors of both ends spend 1 us on a message of UD,
//     Post + Complete + 2 Match. How it is divided is an assumption.
//   - Gap, ByteTime (1.4 GB/s: DDR behind PCI Express with 8 lanes) and CopyByte (2 GB/s) are
//     estimates.
//   - ContextMiss was chosen among 333, 500 and 1,000 ns, for the ratio of UD to RC in figure 9.
//     500 ns at each end agree with the paper's 1 us, which it assumes and did not measure.
//   - CopyBlock was chosen for the ratio of UD to Bruck's algorithm in figure 9: MVAPICH packs
//     the blocks through an indexed datatype, of which the paper has no time.
var InfiniHost = Costs{
	Latency:     2500 * time.Nanosecond,
	ByteTime:    0.7,
	MTU:         2048 + 100,
	Gap:         300 * time.Nanosecond,
	Contexts:    16,
	ContextMiss: 500 * time.Nanosecond,
	Post:        300 * time.Nanosecond,
	Complete:    300 * time.Nanosecond,
	Match:       200 * time.Nanosecond,
	CopyByte:    0.5,
	CopyBlock:   165 * time.Nanosecond,
}
