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

// InfiniBandQDR are the costs of the nodes of "Evaluation of on-demand message-passing module over
// RDMA network" (Nanri and Soga, section IV), which introduces the ACP channel: InfiniBand QDR, one
// Xeon E5-2609 a node.
//
//   - Latency + Post + Complete + 2 Gap are 1.5 us: "around 6 micro seconds, which is about four times
//     longer than the latency of the network". How they are divided is an assumption.
//   - ByteTime is published: "the peak bandwidth reaches to 2.9GB/sec which is close to the maximum
//     of the practical speed on the network".
//   - Match, CopyByte (4 GB/s: DDR3-1066), CopyBlock and MTU (the default of such adapters) are
//     estimates.
//   - Contexts is 0: the paper has no measurement with many connections, and names no adapter.
var InfiniBandQDR = Costs{
	Latency:   800 * time.Nanosecond,
	ByteTime:  1 / 2.9,
	MTU:       2048 + 100,
	Gap:       100 * time.Nanosecond,
	Post:      250 * time.Nanosecond,
	Complete:  250 * time.Nanosecond,
	Match:     100 * time.Nanosecond,
	CopyByte:  0.25,
	CopyBlock: 20 * time.Nanosecond,
}

// ChelsioT3 are the costs of the nodes of "High performance MPI over iWARP: early experiences"
// (Narravula and others, ICPP 2007, section 4): Chelsio T3B adapters, 10 Gigabit Ethernet with an MTU
// of 9000 bytes, two quad core Xeons of 2.33 GHz, and MVAPICH2. The simulated adapters speak RoCE,
// so only the times are those of iWARP.
//
//   - Latency + Post + Complete + 2 Gap are 6.49 us, the published latency of an RDMA write. How
//     they are divided is an assumption.
//   - Match is published: MVAPICH2-SR, which sends and receives, has 8.43 us, so that both ends of a
//     message of MPI add 1.94 us.
//   - ByteTime is published: the peak bandwidth of RDMA writes is 1287 MB/s.
//   - MTU is published; a packet of an adapter that speaks RoCE has at most 4096 bytes.
//   - CopyByte (2.5 GB/s) and CopyBlock are estimates.
//   - Contexts is 0: the paper measures up to 32 processes on four nodes and names no cache.
var ChelsioT3 = Costs{
	Latency:   4490 * time.Nanosecond,
	ByteTime:  1 / 1.287,
	MTU:       9000,
	Gap:       500 * time.Nanosecond,
	Post:      500 * time.Nanosecond,
	Complete:  500 * time.Nanosecond,
	Match:     970 * time.Nanosecond,
	CopyByte:  0.4,
	CopyBlock: 40 * time.Nanosecond,
}

// A TestBed is a cluster of a paper.
type TestBed struct {
	Name  string // of the paper's conference or system, and its year
	Costs Costs
}

// TestBeds are the clusters of the papers. The SDP papers have the adapters of ppopp2007.
var TestBeds = []TestBed{{"ppopp2007", InfiniHost}, {"acp", InfiniBandQDR}, {"iwarp2007", ChelsioT3}}
