package qp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// TestEqualPackets checks that with a softrnic peer each packet of a write, and of a read response, is an
// ONLY. Otherwise the exchange equals that with other adapters.
func TestEqualPackets(t *testing.T) {
	const m = 256
	for _, n := range []int{m + 1, 2*m - 3, 2 * m, 5*m + 1} {
		t.Run(fmt.Sprint(n, " bytes"), func(t *testing.T) {
			p := connect(t, withMTU(verbs.MTU256), withPeerBuffer)
			for i := range n {
				p.a.buf[i], p.b.buf[20_000+i] = byte(i*7), byte(i*3)
			}
			p.b.recv(7, 32768, 64)
			p.a.post(p.now, p.write(1, 0, 8192, n), p.read(2, 12_000, 20_000, n))
			k := (n + m - 1) / m
			var want, responses []string
			for i := range k {
				part, ask := min(m, n-i*m), ""
				if i == k-1 {
					ask = " A"
				}
				want = append(want, fmt.Sprintf("WRITE_ONLY %d len=%d @%x+%d%s", i, part, 8192+i*m, part, ask))
				responses = append(responses, fmt.Sprintf("READ_RESPONSE_ONLY %d len=%d 1f msn=%d", k+i, part, k+1))
			}
			want = append(want, fmt.Sprintf("READ_REQUEST %d @%x+%d A", k, 20_000, n))
			requests := p.drain(p.a)
			require.Equal(t, want, p.describePackets(p.a, requests))
			for i, pkt := range requests {
				goesOn := i < k-1
				require.Equal(t, goesOn, pkt.BTH.More, "packet %d", i)
				p.deliver(p.b, pkt)
				require.Equal(t, goesOn, p.b.MidMessage(), "packet %d", i)
			}
			answers := p.drain(p.b)
			require.Equal(t, responses, p.describePackets(p.b, answers))
			p.deliver(p.a, answers...)
			require.Equal(t, []string{fmt.Sprintf("1 RDMA_WRITE len=%d", n), fmt.Sprintf("2 RDMA_READ len=%d", n)}, p.a.takeCompletions())
			require.Equal(t, p.a.buf[:n], p.b.buf[8192:8192+n])
			require.Equal(t, p.b.buf[20_000:20_000+n], p.a.buf[12_000:12_000+n])
			checkInvariants(t, p.a.Core)
		})
	}
}

// TestEqualPacketsWithImmediate checks that the length of a write with immediate data at the receiver is
// that of all its packets.
func TestEqualPacketsWithImmediate(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU256), withPeerBuffer)
	p.b.recv(7, 32768, 64)
	p.b.recv(8, 32768, 64)
	p.b.recv(9, 32768, 64)
	imm := func(id uint64, n int) verbs.SendWR {
		w := p.write(id, 0, 0, n)
		w.Opcode, w.Imm = verbs.WRRDMAWriteWithImm, 5
		return w
	}
	p.a.post(p.now, imm(1, 600), p.write(2, 0, 0, 300), imm(3, 8), p.send(4, 0, 8))
	require.Equal(t, []string{
		"WRITE_ONLY 0 len=256 @0+256", "WRITE_ONLY 1 len=256 @100+256", "WRITE_ONLY_IMM 2 len=88 @200+88 imm=5 A",
		"WRITE_ONLY 3 len=256 @0+256", "WRITE_ONLY 4 len=44 @100+44 A",
		"WRITE_ONLY_IMM 5 len=8 @0+8 imm=5 A", "SEND_ONLY 6 len=8 A", "ACKNOWLEDGE 6 1f msn=7",
	}, p.exchange())
	require.Equal(t, []string{"7 RECV_RDMA_WITH_IMM len=600 imm=5", "8 RECV_RDMA_WITH_IMM len=8 imm=5", "9 RECV len=8"}, p.b.takeCompletions())
}

// TestEqualPacketsWithoutReceive checks that the last packet of a write with immediate data
// consumes the receive. Without one the earlier packets are placed and counted once.
func TestEqualPacketsWithoutReceive(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU256), withPeerBuffer)
	w := p.write(1, 0, 0, 600)
	w.Opcode, w.Imm = verbs.WRRDMAWriteWithImm, 5
	p.a.post(p.now, w)
	p.exchange()
	require.Empty(t, p.b.takeCompletions())
	p.b.recv(7, 32768, 64)
	p.wait(p.a, 640*reliability.Microsecond)
	p.exchange()
	require.Equal(t, []string{"7 RECV_RDMA_WITH_IMM len=600 imm=5"}, p.b.takeCompletions())
	require.Equal(t, []string{"1 RDMA_WRITE len=600"}, p.a.takeCompletions())
}

// TestEqualPacketsAndCredits checks that every packet increments the peer's MSN and moves the limit of
// the credits, once also when it is retransmitted, so that later messages neither stall nor exceed
// the credits.
func TestEqualPacketsAndCredits(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU256), withPeerBuffer, withCredits)
	p.b.recv(7, 32768, 64)
	p.a.post(p.now, p.write(1, 0, 0, 5*256))
	p.drain(p.a) // all five are lost
	p.wait(p.a, 10*reliability.Millisecond)
	p.exchange()
	p.a.post(p.now, p.send(2, 0, 8), p.send(3, 0, 8), p.send(4, 0, 8))
	require.Equal(t, []string{"SEND_ONLY 5 len=8 A", "SEND_ONLY 6 len=8 A"}, p.describePackets(p.a, p.drain(p.a)),
		"one has a credit, one is the probe, the third waits")
}

// TestEqualPacketBeyondTheRegion checks that a packet that exceeds the region fails without writing
// beyond it.
func TestEqualPacketBeyondTheRegion(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU256), withPeerBuffer)
	end := len(p.b.buf)
	p.a.post(p.now, p.write(1, 0, end-300, 600), p.write(2, 0, 0, 8))
	p.exchange()
	require.Equal(t, []string{"1 REM_ACCESS_ERR", "2 WR_FLUSH_ERR"}, p.a.takeCompletions())
	require.Equal(t, verbs.StateErr, p.b.State())
}

// TestAmidMessage checks that the acknowledgement waits for the end of a message, also while the
// next one arrives, unless only the middle of one message is pending.
func TestAmidMessage(t *testing.T) {
	p := connect(t, withMTU(verbs.MTU256), withPeerBuffer)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.write(2, 1000, 1000, 600))
	requests := p.drain(p.a)
	require.Len(t, requests, 6)
	for i, amid := range []bool{true, true, false, false, false, false} {
		p.deliver(p.b, requests[i])
		require.Equal(t, amid, p.b.MidMessage(), "packet %d", i)
	}
	require.Len(t, p.drain(p.b), 1)

	p.a.post(p.now, p.write(3, 0, 0, 600), p.write(4, 0, 0, 600))
	requests = p.drain(p.a)
	p.deliver(p.b, requests[:3]...)
	require.Len(t, p.drain(p.b), 1)
	p.deliver(p.b, requests[3])
	require.True(t, p.b.MidMessage(), "the end has been acknowledged")
}
