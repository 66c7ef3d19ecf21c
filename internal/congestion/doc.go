// Package congestion limits the rate and the window of a queue pair, so that flows share a bottleneck fairly and its
// queue stays short. It has no I/O and no clock: packets sent, acknowledgements, congestion
// notifications and the time go in, and a window and the time of the next packet come out.
//
//	c := congestion.New(congestion.Auto, congestion.Config{Packet: 4352, MaxWindow: 1 << 20})
//	c.OnSent(now, 4352)
//	c.OnAck(now+200_000, congestion.Ack{Bytes: 4352, InFlight: 4352, RTT: 200_000})
//	c.OnMark(now)                    // a CNP: a packet met a queue that a switch marks (ECN)
//	if inFlight+n <= c.Window() && now >= c.NextSend(now) { send }
//
// Two rules exist, and Auto uses both, of which the stricter one holds:
//
//	DCQCN   the path marks packets: the rate follows the share of marked periods (SIGCOMM 2015)
//	Delay   it does not: the window follows the round-trip time, in the manner of Swift (SIGCOMM
//	        2020); beside loss-based flows that fill the buffer, in the manner of CUBIC (RFC 9438)
//
// A pacer spreads packets at the rate of the rules, in bursts of up to a GSO batch, so that it
// costs no system call beyond those of the bursts.
//
// All sizes are in bytes of the window, in which a packet counts with its payload and a constant
// overhead. docs/congestion.md describes the algorithms and their parameters.
package congestion
