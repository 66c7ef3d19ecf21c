// Package udpraw measures what UDP itself can do between two processes of this
// machine, with nothing of an adapter in it: the ceiling that figures of the
// adapter are quoted against, in the same run.
//
// A session holds the two processes, which cost nothing while they are not
// asked. An experiment opens one beside its subject and lets them take turns:
//
//	ceiling, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{Payload: 4096, Offload: true, RecvBuffer: 8 << 20})
//	defer ceiling.Close()
//	v, err := measure.Alternate(ctx, 9, ceiling.Rounds(100*time.Millisecond, udpraw.Flow.MBps), subject)
//	ratio := measure.MedianRatio(v[1], v[0])
//
// # Bandwidth
//
// The source builds packets of the size of a RoCE v2 MIDDLE packet (12 bytes of
// header, the payload copied in, a CRC32 over both) and the sink checks the CRC
// and copies the payload out; so one copy and one CRC on each side, and no
// other work. Payload walks through 4 MiB on both sides. With offload, packets
// leave as full GSO buffers and arrive as GRO buffers; without, each has its
// own system call.
//
// Nothing may be lost, or the figure would be that of the sender alone, so the
// source keeps a window of packets in flight. It learns what the sink has taken
// through a page of memory that both map, so that the data has the sockets for
// itself. [CreditsByDatagram] sends acknowledgements instead, as a transport
// has to; what they cost shows beside it.
// The window is found by trial; what was lost nevertheless is in [Flow].
//
// # Ping-pong
//
// One packet goes to and fro; the figure is half a round trip, with both ends
// waiting in the same way (see [Mode]). [Spin] is the baseline of a poller,
// [Block] that of a waiter on events.
//
// # CPUs
//
// The two processes stay on a CPU each ([proc.Options.Pin]). A subject to be
// compared has to do the same: whether the system happens to put both ends on
// one core or on two changes a blocking ping-pong fourfold.
//
// # Systems
//
// All of this is Linux with its own system calls. Elsewhere there is what Go's
// net package offers: no offload, credits by datagram, Netpoll only.
package udpraw
