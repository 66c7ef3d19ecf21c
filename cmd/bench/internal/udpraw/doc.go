// Package udpraw measures plain UDP between two processes of this
// machine, without an adapter: the upper bound with which figures of the
// adapter are compared in the same run.
//
// A session holds the two processes, which use no processor time between
// rounds. An experiment opens one in addition to its target and alternates them:
//
//	ceiling, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{Payload: 4096, Offload: true, RecvBuffer: 8 << 20})
//	defer ceiling.Close()
//	v, err := measure.Alternate(ctx, 9, ceiling.Rounds(100*time.Millisecond, udpraw.Flow.MBps), target)
//	ratio := measure.MedianRatio(v[1], v[0])
//
// # Bandwidth
//
// The source builds packets of the size of a RoCE v2 MIDDLE packet (12 bytes of
// header, the payload copied in, a CRC32 over both) and the sink checks the CRC
// and copies the payload out: one copy and one CRC on each side, and no
// other work. Payload cycles through 4 MiB on both sides. With offload, packets
// are sent as full GSO buffers and received as GRO buffers; without, each needs its
// own system call.
//
// Packet loss would make the figure that of the sender alone, so the
// source limits the packets in flight to a window. The sink returns credits
// through a shared memory page, so that the sockets carry data
// only. [CreditsByDatagram] sends acknowledgements instead, as a transport
// must, to measure their cost.
// The window is determined by trials; [Flow] counts packets lost nevertheless.
//
// # Ping-pong
//
// One packet goes back and forth. The figure is half a round trip, with both sides
// waiting in the same way (see [Mode]). [Spin] is the baseline for polling,
// [Block] for waiting on events.
//
// # CPUs
//
// Each of the two processes is pinned to a CPU ([proc.Options.Pin]). A target to be
// compared must do the same: a blocking ping-pong differs fourfold between one
// core for both processes and two.
//
// # Systems
//
// On Linux the package makes its own system calls. On other systems it uses
// package net: no offload, credits by datagram, Netpoll only.
package udpraw
