package rdma

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// A stream carries the packets of a link, with FlowRDMA and FlowNIC, as one sequence of bytes: each is padded to 8 bytes, and
// messages of any length, RDMA writes with immediate data, put them back to back into a ring at the other rank. Package flow
// decides when a message leaves. Transfers and notices use the same queue pair, so no packet overtakes a write before it.
//
//	packets -> sendRing -> flow.Sender -> RDMA WRITE with immediate -> ring of the rank -> flow.RingReceiver -> packets
type stream struct {
	out       verbs.MR // send buffer
	sender    flow.Sender
	rdma      *flow.RDMASender // the sender with FlowRDMA, or nil
	nic       *flow.NICSender  // the sender with FlowNIC, or nil
	remote    remoteRing
	posted    uint64 // position after the last message posted
	credits   flow.Credits
	credited  uint32 // messages for which the rank has returned a credit
	peerFreed uint64 // bytes that the rank has freed
	held      bool   // listed in Fabric.heldLinks
	blocked   bool   // the flow control holds bytes back

	in        verbs.MR // ring
	receiver  streamReceiver
	receives  int // posted
	emptyRecv []verbs.RecvWR
	unread    uint32 // messages and notices since the last report
	reported  uint64 // bytes freed as of the last report
}

// A streamReceiver is an RDMAReceiver or NICReceiver of package flow.
type streamReceiver interface {
	flow.RingReceiver
	WriteOffset() int
	Peek(buf []byte) []byte
	Discard(n int)
}

// maxRing is the maximum length of a ring, which the fields of streamImm can express.
const maxRing = 4 << 20

// ringSize returns the length of each ring of a stream, the one that receives and the one
// that sends: together they have the memory of Options.Credits packets, as the receives of
// FlowCredit. A ring holds two packets, so that free bytes of less than half, which are not
// reported, do not prevent the rank from completing a packet.
func (f *Fabric) ringSize() int {
	return (min(max(f.o.Credits*f.o.Eager/2, 2*f.packetSize()), maxRing) + 63) &^ 63
}

// streamWindow returns the virtual window of FlowNIC in a ring of n bytes. Two windows must be
// free beside the longest incomplete packet, of at most n/2. It is short of a multiple of the MTU by the
// immediate data, so that all datagrams of a message have one length.
func streamWindow(n int) int { return min(n/4, 16<<10-8) &^ 7 }

// streamReceives returns the number of messages that may be in flight with FlowRDMA, in a
// ring of n bytes.
func streamReceives(n int) int { return min(max(n/64, 16), 512) }

// streamQueue is the maximum number of messages in the send queue, of which the rest is for
// transfers.
const streamQueue = sendQueue / 2

// newStream creates the memory of a stream.
func (f *Fabric) newStream() (s *stream, err error) {
	n := f.ringSize()
	s = &stream{}
	if s.out, err = f.pd.RegMR(make([]byte, n), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if s.in, err = f.pd.RegMR(make([]byte, n), verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
		return nil, errors.Join(err, s.out.Close())
	}
	if f.o.Flow == FlowNIC {
		s.receiver = flow.NewNICReceiver(s.in.Bytes(), streamWindow(n), f.linkReceives())
	} else {
		s.receiver = flow.NewRDMAReceiver(s.in.Bytes(), streamReceives(n))
	}
	s.emptyRecv = make([]verbs.RecvWR, f.linkReceives())
	for i := range s.emptyRecv {
		s.emptyRecv[i].WRID = wrid(wrRecv, 0, 0)
	}
	return s, nil
}

// close deregisters the memory of a stream whose queue pair is closed.
func (s *stream) close() error { return errors.Join(s.out.Close(), s.in.Close()) }

// handshake returns the address of the ring, for the rank.
func (s *stream) handshake(m Flow) handshake {
	n := s.in.Len()
	h := handshake{flow: m, ring: remoteRing{addr: s.in.Addr(), rkey: s.in.RKey(), size: uint32(n), n: uint32(streamReceives(n))}}
	if m == FlowNIC {
		h.window = uint32(streamWindow(n))
	}
	return h
}

// connect applies the rank's handshake. packet is the maximum length of a packet.
func (s *stream) connect(h *handshake, packet int) error {
	n, receives, window := int(h.ring.size), int(h.ring.n), int(h.window)
	switch {
	case n < 2*packet || n > maxRing:
		return fmt.Errorf("%w: ring of %d bytes out of range [%d, %d]", envelope.ErrMalformed, n, 2*packet, maxRing)
	case h.flow == FlowRDMA && (receives < 1 || receives > maxReported):
		return fmt.Errorf("%w: %d receives out of range [1, %d]", envelope.ErrMalformed, receives, maxReported)
	case h.flow == FlowNIC && (window < 8 || window%8 != 0 || window > n/4):
		return fmt.Errorf("%w: window of %d bytes in a ring of %d", envelope.ErrMalformed, window, n)
	}
	s.remote = h.ring
	if mem := s.out.Bytes(); h.flow == FlowNIC {
		s.nic = flow.NewNICSender(mem, 0, n, window, streamQueue)
		s.sender = s.nic
	} else {
		s.credits.Start(uint16(receives) + flow.ReservedCredits)
		s.rdma = flow.NewRDMASender(mem, 0, n, streamQueue, &s.credits)
		s.sender = s.rdma
	}
	return nil
}

// mayPost reports whether a message or a notice has a receive at the rank. With FlowNIC the
// adapter waits for one.
func (s *stream) mayPost() bool { return s.nic != nil || s.credits.Available() > flow.ReservedCredits }

// sendInStream appends a packet to the stream, and reports whether there was room.
func (f *Fabric) sendInStream(l *link, h *envelope.Header, payload []byte) bool {
	s := l.stream
	n := envelope.Size + len(payload)
	if l.writtenStripes > 0 || s.sender.Free() < paddedSize(n) {
		f.waitForRoom(l)
		return false
	}
	h.Credits = 0
	h.MarshalTo(f.frame[:])
	s.sender.Write(f.frame[:envelope.Size])
	s.sender.Write(payload)
	s.sender.Write(padding[:paddedSize(n)-n])
	if s.sender.Unposted() > paddedSize(n) {
		f.stats.coalesced++
	}
	if l.recent > 0 && paddedSize(n) <= maxBatchedPacket && s.sender.Unposted() < maxDelayed {
		f.listHeld(l)
	} else {
		f.postStream(l)
	}
	f.countRecent(l)
	return true
}

// maxDelayed is the number of bytes from which on short packets are not delayed to be
// coalesced with later ones (batch.go).
const maxDelayed = 8 << 10

// padding follows a packet.
var padding [8]byte

// postStream posts the messages that the flow control permits.
func (f *Fabric) postStream(l *link) {
	s := l.stream
	for l.freeSendSlots() > 0 && !l.failed {
		m, ok := s.sender.Next()
		if !ok {
			break
		}
		f.sge[0] = s.out.SGE(m.Local, m.Len)
		wr := verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: uint32(s.nextImm()), SGList: f.sge[:],
			RemoteAddr: s.remote.addr + uint64(m.Remote), RKey: s.remote.rkey, WRID: l.nextWRID(wrStream, streamIndex(m.End()))}
		if m.Signal || l.posted%signalInterval == 0 {
			wr.Flags = verbs.SendSignaled
		}
		f.wr[0] = wr
		if !f.postWR(l) {
			return
		}
		s.credits.NextSeq()
		s.posted = m.End()
		f.stats.packets++
	}
	if s.blocked = s.sender.Unposted() > 0 && !l.failed; s.blocked {
		f.listHeld(l)
	}
}

// listHeld lists a link with bytes that are not posted, for flushStreams.
func (f *Fabric) listHeld(l *link) {
	s := l.stream
	if s.held {
		return
	}
	s.held = true
	f.heldLinks = append(f.heldLinks, l)
	if s.blocked {
		f.startProbes()
	}
	if s.nic != nil || !s.blocked { // with FlowRDMA, what is held back waits for a call
		f.timer.Reset(batchTime)
	}
}

// streamIndex returns the index of a position in a WRID. Positions are multiples of 8, and
// those of a send queue differ by less than maxRing.
func streamIndex(pos uint64) int { return int(pos / 8 & 0xffffff) }

// completeUpTo handles the completion of the message with an index.
func (s *stream) completeUpTo(index int) {
	s.sender.CompleteUpTo(s.posted - uint64((streamIndex(s.posted)-index)&0xffffff)*8)
}

// flushStreams posts the bytes that were delayed to be coalesced, and tries those that the
// flow control has held back: with FlowNIC without coalescing, unless more packets follow;
// with FlowRDMA in a call of the program only (section 4.2 of the paper of package flow).
func (f *Fabric) flushStreams(inCall bool) {
	links := f.heldLinks
	f.heldLinks, f.spareLinks = f.spareLinks[:0], nil
	for _, l := range links {
		s := l.stream
		s.held = false
		switch {
		case s.rdma != nil && s.blocked && !inCall:
			f.listHeld(l)
			continue
		case s.nic != nil && !l.coreWaiting:
			s.nic.Flush()
		}
		f.postStream(l)
	}
	f.spareLinks = links
}
