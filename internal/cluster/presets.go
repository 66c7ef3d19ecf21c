package cluster

import "time"

// InfiniHost are the costs of the nodes of "On using connection-oriented vs. connection-less
// transport for performance and scalability of collective and one-sided operations" (Mamidala and
// others, PPoPP 2007, section 5): MT25208 adapters on PCI Express, DDR links, 3.6 GHz processors,
// and MVAPICH. The flow control papers for SDP have the same adapters.
//
// The paper gives the cost of a context: a message over more than 16 connections takes 1 us
// longer (5.1.2), of which each end has a half here. It says as well that 61 such messages make
// the direct alltoall twice as long as over UD, so that a message over UD takes the processors
// of both ends 1 us: Post, Complete and Match. The latency makes a short message of MPI take the
// 4.1 us that "Evaluating InfiniBand performance with PCI Express" (Liu and others, IEEE Micro
// 2005) has for these adapters, Latency + Post + Complete + 2 Match + 2 Gap.
//
// CopyBlock is fitted: MVAPICH packs the blocks of Bruck's algorithm through an indexed datatype,
// for which the paper has no figure. Without it, Bruck's algorithm is faster than direct over UD.
var InfiniHost = Costs{
	Latency:     2500 * time.Nanosecond,
	ByteTime:    0.7, // 1.4 GB/s: DDR behind PCI Express with 8 lanes
	MTU:         2048 + 100,
	Gap:         300 * time.Nanosecond,
	Contexts:    16,
	ContextMiss: 500 * time.Nanosecond,
	Post:        300 * time.Nanosecond,
	Complete:    300 * time.Nanosecond,
	Match:       200 * time.Nanosecond,
	CopyByte:    0.5, // 2 GB/s
	CopyBlock:   165 * time.Nanosecond,
}
