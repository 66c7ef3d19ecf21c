package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/verbs"
)

// TestNoAllocation checks that neither data nor credit updates allocate after the lists have grown.
func TestNoAllocation(t *testing.T) {
	out, in := make([]byte, 60), make([]byte, 300)
	for _, d := range allFlowControls {
		e := newEvil(t, d).start()
		c := e.core
		type receive struct {
			wrid uint64
			at   verbs.SGE
		}
		var recv []receive
		for _, wr := range e.rq {
			recv = append(recv, receive{wr.WRID, wr.SGList[0]})
		}
		sends := make([]verbs.SendWR, 0, 100)
		at, reserved := 0, make([]byte, 0, 200)
		deliver := func(b []byte, n int) { // a message, or a write of n bytes
			e.seq++
			wc := verbs.WC{WRID: recv[0].wrid, Opcode: verbs.WCRecv, ByteLen: uint32(len(b))}
			if b != nil {
				s := recv[0].at
				m := e.mem[s.LKey]
				copy(m.Bytes[s.Addr-m.Addr:], b)
			} else {
				wc.Opcode, wc.ByteLen, wc.Imm = verbs.WCRecvRDMAWithImm, uint32(n), uint32(at)
				at = (at + n) % len(e.cfg.Ring.Bytes)
			}
			recv = recv[:copy(recv, recv[1:])]
			c.HandleCompletion(&wc)
		}
		take := func() {
			for _, wr := range c.Receives() {
				recv = append(recv, receive{wr.WRID, wr.SGList[0]})
			}
			sends = append(sends, c.Sends()...)
			c.ClearPosted()
		}
		round := func() {
			require.Equal(t, len(out), c.Write(out), "%v: %v", d, c.Err())
			take()
			if d == credit {
				reserved = bsdh.Header{MID: data, Bufs: 100, Len: 16 + 50, Seq: e.seq + 1, Ack: e.lastNumber()}.Append(reserved[:0])
				reserved = append(reserved, out[:50]...)
				deliver(reserved, 0)
			} else {
				deliver(nil, 50)
			}
			if d == rdma {
				reserved = bsdh.Header{MID: bsdh.MIDRingUpdate, Bufs: 100, Len: 24, Seq: e.seq + 1, Ack: e.lastNumber()}.Append(reserved[:0])
				reserved = bsdh.RingUpdate{Freed: c.Stats().BytesWritten}.Append(reserved)
				take()
				deliver(reserved, 0)
			}
			require.Equal(t, 50, c.Read(in))
			take()
			for i := range sends {
				if sends[i].Flags&verbs.SendSignaled != 0 {
					c.HandleCompletion(&verbs.WC{WRID: sends[i].WRID, Opcode: verbs.WCSend})
				}
			}
			sends = sends[:0]
			take()
		}
		for range 100 {
			round()
		}
		require.NoError(t, c.Err())
		require.Zero(t, testing.AllocsPerRun(500, round), "%v", d)
		require.NoError(t, c.Err())
	}
}
