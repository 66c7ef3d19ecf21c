package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// script reads choices from the fuzzer's bytes.
type script []byte

func (s *script) byte() (b byte) {
	if len(*s) > 0 {
		b, *s = (*s)[0], (*s)[1:]
	}
	return b
}

func (s *script) take(n int) (p []byte) {
	n = min(n, len(*s))
	p, *s = (*s)[:n:n], (*s)[n:]
	return p
}

var ids = []bsdh.MID{
	bsdh.MIDDisConn, bsdh.MIDSendSm, bsdh.MIDRdmaWrCompl, bsdh.MIDRdmaRdCompl, bsdh.MIDModeChange, bsdh.MIDSrcAvailCancel,
	bsdh.MIDSinkAvailCancel, bsdh.MIDSinkCancelAck, bsdh.MIDChRcvBuf, bsdh.MIDChRcvBufAck, bsdh.MIDSinkAvail, bsdh.MIDSrcAvail,
	bsdh.MIDData, bsdh.MIDRingUpdate, bsdh.MIDRingChange, bsdh.MIDRingSwitched,
}

// step executes the next step of the script: a message of the peer, valid or not, a completion, or
// a call of the application.
func (e *evil) step(s *script, at *int) {
	c := e.core
	op := s.byte() % 27
	if len(e.rq) == 0 && (op < 6 || op == 25) {
		op = 6
	}
	switch op {
	case 0: // arbitrary bytes
		e.deliverRaw(s.take(int(s.byte())))
	case 1, 2, 3: // a message, with any extended header and data
		id := ids[int(s.byte())%len(ids)]
		ext := make([]byte, id.Extended())
		copy(ext[len(ext)-min(len(ext), 1):], s.take(1)) // small numbers
		if len(ext) > 4 {
			ext[3] = s.byte()
		}
		b := e.frame(id, ext, s.take(int(s.byte()%8)))
		b[1] = s.byte() & 7
		e.deliverRaw(b)
	case 4: // a write at the right position
		n := int(s.byte() % 60)
		if e.cfg.FlowControl != flow.Credit {
			n = min(n, len(e.cfg.Ring.Bytes)-*at)
			e.write(*at, n)
			*at = (*at + n) % len(e.cfg.Ring.Bytes)
		}
	case 5: // a write anywhere
		e.write(int(s.byte()), int(s.byte()))
	case 6:
		e.finish()
	case 7: // any completion
		wc := verbs.WC{WRID: uint64(s.byte())<<56 | uint64(s.byte()), Opcode: verbs.WCOpcode(s.byte()), ByteLen: uint32(s.byte()), Imm: uint32(s.byte())}
		c.HandleCompletion(&wc)
	case 8:
		c.Write(make([]byte, s.byte()))
	case 9:
		c.SendUrgent(make([]byte, s.byte()))
	case 10, 11:
		c.Read(make([]byte, s.byte()))
	case 12:
		if c.CanOffer() {
			c.Offer(make([]byte, 1+int(s.byte())), 1, 1)
		}
	case 13:
		c.CancelOffer()
	case 14:
		if c.CanOfferSink() {
			c.OfferSink(1, 1, 1+int(s.byte()))
		}
	case 15:
		c.CancelSink()
	case 16:
		if n := c.PeerSourceLen(); n > 0 {
			c.ReadPeerSource(verbs.SGE{Length: uint32(1 + int(s.byte())%n)})
		}
	case 17:
		if n := c.PeerSinkLen(); n > 0 {
			c.WritePeerSink(verbs.SGE{Length: uint32(1 + int(s.byte())%n)})
		}
	case 18:
		c.RefuseSource()
	case 19:
		c.CloseWrite()
	case 20:
		c.ChangeMode(bsdh.ModeChange{Mode: bsdh.Mode(s.byte() % 3), SendHalf: s.byte()%2 == 0})
	case 21:
		c.SpillRing()
	case 22:
		c.SendKeepAlive()
		c.RequestPeerSize(int(s.byte()) * 2)
		if n := c.RequestedBufferBytes(); n > 0 && !c.Resizing() {
			c.GrantResize(e.register(c.cfg.ResizeBytes(n)), n)
		}
	case 23:
		c.RequestReceiveUpdate()
		c.HoldData(s.byte()%2 == 0)
		c.ReleaseHeld()
	case 24:
		c.ChangeRing(e.register(len(e.cfg.Ring.Bytes) + int(s.byte())))
	case 25: // data with a short header, valid or not
		b, _ := bsdh.MakeShortHeader(bsdh.Header{MID: bsdh.MIDData, Flags: bsdh.Flags(s.byte() & 3), Bufs: e.bufs, Ack: e.lastNumber() + uint32(s.byte()%2)})
		e.deliverImm(uint32(b), s.take(int(s.byte()%120)))
	case 26:
		c.Flush()
	}
	e.handlePosts()
}

// FuzzCore checks that arbitrary messages, completions and calls do not panic, and that the
// buffered data is bounded.
func FuzzCore(f *testing.F) {
	for d := range byte(3) {
		f.Add([]byte{d, 8, 200, 4, 9, 10, 9, 6, 19, 1, 0, 0, 0, 0})
		f.Add([]byte{d, 1, 25, 0, 0, 3, 1, 2, 3, 10, 9, 25, 1, 1, 2, 4, 4})
		f.Add([]byte{d, 12, 50, 1, 3, 20, 0, 0, 14, 80, 13, 1, 1, 0, 0})
		f.Add([]byte{d, 1, 11, 30, 0, 0, 0, 16, 9, 6, 18, 20, 2, 1, 23, 9, 21})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := script(b)
		d := flow.Control(s.byte() % 3)
		e := newEvil(t, d)
		if s.byte() != 255 {
			e.start()
		}
		at := 0
		for len(s) > 0 && e.core.started {
			e.step(&s, &at)
			c := e.core
			require.LessOrEqual(t, len(c.controls.ordered)+len(c.controls.unordered), maxQueuedControls)
			require.LessOrEqual(t, len(c.slots.freeList)+c.slots.posted, e.cfg.largeReceives()+e.cfg.Receives)
			require.LessOrEqual(t, c.spilledBytes(), 2*850)
			require.LessOrEqual(t, c.Buffered(), 3*850+int(e.cfg.largeReceives())*216)
			if c.Err() != nil {
				e.core.HandleCompletion(&verbs.WC{Status: verbs.WCWRFlushErr})
				require.Zero(t, c.Write([]byte{1}))
			}
		}
	})
}
