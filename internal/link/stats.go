package link

import (
	"sync/atomic"
	"syscall"
)

// Stats are the counters of a link since it was opened.
type Stats struct {
	SendCalls   uint64 // system calls that sent something
	SentPackets uint64 // RoCE packets handed to the system
	SentBytes   uint64 // of those packets, BTH to ICRC

	// The receive counters lag while the link is readable, and are exact after
	// a ReadBatch has returned 0.
	ReceiveCalls      uint64 // system calls that received something
	ReceivedDatagrams uint64 // buffers received; GRO puts several packets into one
	ReceivedPackets   uint64
	ReceivedBytes     uint64

	// Datagrams dropped because the socket's receive buffer or the portable
	// link's ring was full.
	ReceiveOverflow uint64

	SendBlocked     uint64 // sends that had to wait for room in the send buffer
	SendTooBig      uint64 // packets above the path MTU (EMSGSIZE)
	SendNoBuffers   uint64 // packets the system had no memory for (ENOBUFS, ENOMEM), or no room in time
	SendDenied      uint64 // packets a firewall or a permission refused (EPERM, EACCES)
	SendUnreachable uint64 // packets without a route or an answering host
	SendFailed      uint64 // packets refused for any other reason
	ICMPErrors      uint64 // errors of earlier packets that a later call reported (ECONNREFUSED)
	GSOFallbacks    uint64 // times that segmentation offload was switched off because it failed

	// The part of the packets that passed through shared memory instead of a socket.
	SharedSentPackets     uint64
	SharedSentBytes       uint64
	SharedReceivedPackets uint64
	SharedReceivedBytes   uint64
	SharedLost            uint64 // packets lost because a ring was full
	SharedLate            uint64 // rings that were read although earlier packets through the socket had not come
}

// SendLost returns the number of packets that the system did not send, for any
// reason.
func (s Stats) SendLost() uint64 {
	return s.SendTooBig + s.SendNoBuffers + s.SendDenied + s.SendUnreachable + s.SendFailed
}

// StatsOf returns the counters of c, or of the innermost link that c wraps,
// found by Unwrap; zeros if there are none.
func StatsOf(c Conn) Stats {
	for c != nil {
		switch l := c.(type) {
		case interface{ Stats() Stats }:
			return l.Stats()
		case interface{ Unwrap() Conn }:
			c = l.Unwrap()
		default:
			return Stats{}
		}
	}
	return Stats{}
}

// sendCounters belong to the writer, receiveCounters to the reader: separate,
// to avoid false sharing of a cache line.
type sendCounters struct {
	calls, packets, bytes, blocked                atomic.Uint64
	tooBig, noBuffers, denied, unreachable, other atomic.Uint64
	icmp, gsoFallbacks                            atomic.Uint64
}

type receiveCounters struct {
	calls, datagrams, packets, bytes, overflow, icmp atomic.Uint64
}

func makeStats(tx *sendCounters, rx *receiveCounters) Stats {
	return Stats{
		SendCalls:         tx.calls.Load(),
		SentPackets:       tx.packets.Load(),
		SentBytes:         tx.bytes.Load(),
		ReceiveCalls:      rx.calls.Load(),
		ReceivedDatagrams: rx.datagrams.Load(),
		ReceivedPackets:   rx.packets.Load(),
		ReceivedBytes:     rx.bytes.Load(),
		ReceiveOverflow:   rx.overflow.Load(),
		SendBlocked:       tx.blocked.Load(),
		SendTooBig:        tx.tooBig.Load(),
		SendNoBuffers:     tx.noBuffers.Load(),
		SendDenied:        tx.denied.Load(),
		SendUnreachable:   tx.unreachable.Load(),
		SendFailed:        tx.other.Load(),
		ICMPErrors:        tx.icmp.Load() + rx.icmp.Load(),
		GSOFallbacks:      tx.gsoFallbacks.Load(),
	}
}

// countLost counts packets that the system did not send. (On Windows, whose
// sockets have their own error numbers, most count as SendFailed.)
func (tx *sendCounters) countLost(errno syscall.Errno, packets int) {
	n := uint64(packets)
	switch errno {
	case syscall.EMSGSIZE:
		tx.tooBig.Add(n)
	case syscall.ENOBUFS, syscall.ENOMEM, syscall.EAGAIN: // EAGAIN: after maxSendBlock
		tx.noBuffers.Add(n)
	case syscall.EPERM, syscall.EACCES:
		tx.denied.Add(n)
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN,
		syscall.EAFNOSUPPORT, syscall.EADDRNOTAVAIL:
		tx.unreachable.Add(n)
	default:
		tx.other.Add(n)
	}
}
