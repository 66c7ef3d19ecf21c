package qp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// couple is two UD queue pairs that are RDMA peers.
type couple struct {
	*pair
	ofA, ofB *Peer // the peer state at A of B, and at B of A
}

// peerHandle is the handle of a peer.
type peerHandle struct {
	verbs.AH
	peer *Peer
}

func newCouple(t testing.TB, mtu int, access verbs.AccessFlags) *couple {
	c := &couple{pair: connect(t, ofType(verbs.UD), withConfig(func(c *Config) { c.MaxRDMA, c.PortMTU, c.LocalBuffer = 40, mtu, 64<<10 }))}
	c.ofA = c.a.AddPeer(PeerConfig{Path: wire.Path{Dst: c.b.addr}, QPN: c.b.Num(), Token: 0xa, Access: access, GiveUp: 1000 * reliability.Millisecond})
	c.ofB = c.b.AddPeer(PeerConfig{Path: wire.Path{Dst: c.a.addr}, QPN: c.a.Num(), Token: 0xb, Access: access, GiveUp: 1000 * reliability.Millisecond})
	c.ofA.Connect(0xb)
	c.ofB.Connect(0xa)
	return c
}

// request returns a request of A for n bytes at off of its region and at of B's.
func (c *couple) request(id uint64, op verbs.WROpcode, off, at, n int) verbs.SendWR {
	return verbs.SendWR{WRID: id, Opcode: op, Flags: verbs.SendSignaled, AH: peerHandle{peer: c.ofA}, SGList: []verbs.SGE{c.a.sge(off, n)},
		RemoteAddr: c.b.base + uint64(at), RKey: c.b.key}
}

func TestDatagramRDMA(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	rand.NewChaCha8([32]byte{}).Read(c.b.buf)
	binary.NativeEndian.PutUint64(c.b.buf[8:], 5)
	add, swap := c.request(4, verbs.WRAtomicFetchAdd, 8, 8, 8), c.request(5, verbs.WRAtomicCmpSwap, 16, 8, 8)
	add.CompareAdd, swap.CompareAdd, swap.Swap = 3, 8, 100
	swap.Flags |= verbs.SendFence
	inline := verbs.SendWR{WRID: 6, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, InlineData: []byte("inline"), AH: peerHandle{peer: c.ofA}, RemoteAddr: c.b.base + 50_000, RKey: c.b.key}
	c.a.post(c.now, c.request(1, verbs.WRRDMARead, 1000, 2000, 9001), c.request(2, verbs.WRRDMAWrite, 1000, 30_000, 700), c.request(3, verbs.WRRDMARead, 20_000, 0, 0), add, swap, inline)
	c.exchange()
	require.ElementsMatch(t, []string{"1 RDMA_READ len=9001", "2 RDMA_WRITE len=700", "3 RDMA_READ len=0", "4 FETCH_ADD len=8", "5 COMP_SWAP len=8"}, c.a.takeCompletions())
	require.Equal(t, c.b.buf[2000:11001], c.a.buf[1000:10001])
	require.Len(t, c.b.buf[30_000:30_700], 700)
	require.Equal(t, []uint64{5, 8, 100}, []uint64{binary.NativeEndian.Uint64(c.a.buf[8:]), binary.NativeEndian.Uint64(c.a.buf[16:]), binary.NativeEndian.Uint64(c.b.buf[8:])})
	require.Equal(t, "inline", string(c.b.buf[50_000:50_006]))
	require.Empty(t, c.b.takeCompletions(), "the target does not notice")
	require.Empty(t, c.a.rdma.busy)
	require.Zero(t, c.a.rdma.readBytes)
}

// TestDatagramRDMASeeds runs random programs on a network with loss, duplication and reordering:
// each operation is executed exactly once, as writes to separate places and sums show.
func TestDatagramRDMASeeds(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playRDMA(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func playRDMA(t *testing.T, rng *rand.Rand) {
	c := newCouple(t, 256, verbs.AccessRemote)
	for _, p := range []*Peer{c.ofA, c.ofB} { // near where PSNs wrap
		p.next = wire.PSN(0).Add(-30)
		p.una = p.next
	}
	for _, p := range []*Peer{c.ofB, c.ofA} {
		for at := -200; at < -30; at += 40 {
			p.replay.MarkExecuted(wire.PSN(0).Add(at))
		}
		p.replay = reliability.Replay{}
		for at := 0; at < 1<<24-30; at += reliability.ReplayWindow {
			p.replay.MarkExecuted(wire.PSN(at))
		}
		for i := range 2 * reliability.ReplayWindow {
			if psn := wire.PSN(0).Add(-31 - i); p.replay.Classify(psn) == reliability.Fresh {
				p.replay.MarkExecuted(psn)
			}
		}
	}
	const ops, half = 200, regionBytes / 2
	rng.Uint64()
	for i := range c.a.buf {
		c.a.buf[i], c.b.buf[i] = byte(rng.Uint32()), byte(rng.Uint32())
	}
	clear(c.b.buf[:8])
	model := append([]byte(nil), c.b.buf...)
	reads := map[uint64][2]int{}
	sum, posted, done, cells := uint64(0), 0, 0, 0
	var flying []*wire.Packet // in each direction
	var to []*node
	busy := map[int]bool{} // words of A that an operation uses
	cell := map[uint64]int{}
	for done < ops {
		for posted < ops && rng.IntN(3) > 0 && c.a.rdma.ops < 40 {
			id, n := uint64(posted), 1+rng.IntN(1200)
			for busy[cells%40] {
				cells++
			}
			off := 1600 * (cells % 40)
			wr := c.request(id, verbs.WRRDMARead, off, half+rng.IntN(half-n), n)
			switch rng.IntN(3) {
			case 0:
				reads[id] = [2]int{off, n}
			case 1:
				wr.Opcode, wr.RemoteAddr = verbs.WRRDMAWrite, c.b.base+uint64(8+posted*100)
				n = min(n, 100)
				wr.SGList[0].Length = uint32(n)
				copy(model[8+posted*100:], c.a.buf[off:off+n])
			case 2:
				wr.Opcode, wr.RemoteAddr, wr.CompareAdd = verbs.WRAtomicFetchAdd, c.b.base, uint64(posted)
				wr.SGList[0].Length = 8
				sum += uint64(posted)
			}
			if rng.IntN(2) == 0 {
				wr.Flags |= verbs.SendDelayAck
			}
			if reads[id][1] > 0 {
				reads[id] = [2]int{off, int(wr.RemoteAddr - c.b.base)}
			}
			busy[cells%40], cell[id] = true, cells%40
			c.a.post(c.now, wr)
			posted++
		}
		for _, n := range []*node{c.a, c.b} {
			for _, k := range c.drain(n) {
				for range 1 + rng.IntN(10)/9 {
					if rng.IntN(12) > 0 {
						flying, to = append(flying, k), append(to, c.peer(n))
					}
				}
			}
		}
		if len(flying) == 0 { // neither has a packet to send
			first := c.a
			if b := c.b.Deadline(); b != 0 && b == reliability.Earlier(b, c.a.Deadline()) {
				first = c.b
			}
			if first.Deadline() != 0 {
				c.advanceToDeadline(first)
			}
		}
		for i := range flying { // some are exchanged
			if j := rng.IntN(len(flying)); rng.IntN(4) == 0 {
				flying[i], flying[j], to[i], to[j] = flying[j], flying[i], to[j], to[i]
			}
		}
		for k := rng.IntN(1 + len(flying)); k > 0; k-- {
			c.deliver(to[0], flying[0])
			flying, to = flying[1:], to[1:]
		}
		c.now += reliability.Time(rng.IntN(50_000))
		for _, wc := range c.a.wcs {
			require.Equal(t, verbs.WCSuccess, wc.Status)
			if r, ok := reads[wc.WRID]; ok {
				n := int(wc.ByteLen)
				require.Equal(t, c.b.buf[r[1]:r[1]+n], c.a.buf[r[0]:r[0]+n])
			}
			busy[cell[wc.WRID]] = false
			done++
		}
		c.a.wcs = nil
	}
	binary.NativeEndian.PutUint64(model, sum)
	require.Equal(t, model, c.b.buf)
	for i, k := range flying { // late packets have no effect
		c.deliver(to[i], k)
	}
	require.Equal(t, model, c.b.buf)
	require.Zero(t, c.ofA.inFlight+c.ofA.lostSlots+c.a.rdma.readBytes+c.a.rdma.ops)
}

// TestDatagramRDMARefused checks that a forbidden request fails alone: the queue pair and other
// requests continue.
func TestDatagramRDMARefused(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemoteRead|verbs.AccessRemoteAtomic)
	bad := c.request(1, verbs.WRRDMARead, 0, 0, 1000)
	bad.RKey++
	beyond := c.request(2, verbs.WRRDMARead, 0, regionBytes-8, 5000)
	odd := c.request(4, verbs.WRAtomicFetchAdd, 0, 4, 8)
	local := c.request(5, verbs.WRRDMARead, 0, 0, 8)
	local.SGList[0].LKey++
	c.a.post(c.now, bad, beyond, c.request(3, verbs.WRRDMAWrite, 0, 0, 1000), odd, local, c.request(6, verbs.WRRDMARead, 100, 0, 8))
	c.exchange()
	require.ElementsMatch(t, []string{"1 REM_ACCESS_ERR", "2 REM_ACCESS_ERR", "3 REM_INV_REQ_ERR", "4 REM_INV_REQ_ERR", "5 LOC_PROT_ERR", "6 RDMA_READ len=8"}, c.a.takeCompletions())
	require.Equal(t, verbs.StateRTS, c.a.State())
	require.Equal(t, verbs.StateRTS, c.b.State())
	require.Equal(t, make([]byte, regionBytes), c.b.buf)
	require.Empty(t, c.b.raised())

	// and locally, before a packet is sent
	_, err := c.a.PostSend(c.now, []verbs.SendWR{{Opcode: verbs.WRRDMARead, AH: handle{path: wire.Path{Dst: c.b.addr}}}})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	for range 40 {
		c.a.post(c.now, c.request(9, verbs.WRRDMARead, 0, 0, 8))
	}
	_, err = c.a.PostSend(c.now, []verbs.SendWR{c.request(9, verbs.WRRDMARead, 0, 0, 8)})
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	c.exchange()
	c.a.takeCompletions()
	c.ofA.Remove()
	_, err = c.a.PostSend(c.now, []verbs.SendWR{c.request(9, verbs.WRRDMARead, 0, 0, 8)})
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestDatagramRDMAForeignPackets checks that packets of a sender that is not a peer, has another token,
// or has not agreed have no effect and no response.
func TestDatagramRDMAForeignPackets(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	request := func() *wire.Packet {
		c.a.post(c.now, c.request(1, verbs.WRRDMAWrite, 0, 0, 8))
		k := c.drain(c.a)
		require.Len(t, k, 1)
		return k[0]
	}
	copy(c.a.buf, "written!")
	k := request()
	k.Raw[wire.BTHLen+3]++ // the token
	require.Equal(t, wire.DropBadQKey, c.deliver(c.b, k))
	k = request()
	k.Raw[wire.BTHLen+7]++ // the queue pair
	require.Equal(t, wire.DropWrongSource, c.deliver(c.b, k))
	k = request()
	k.Src = c.b.addr
	require.Equal(t, wire.DropWrongSource, c.deliver(c.b, k))
	k = request()
	k.BTH.PSN = k.BTH.PSN.Add(1000)
	require.Equal(t, wire.DropOutOfSequence, c.deliver(c.b, k))
	k = request()
	c.ofB.connected = false
	require.Equal(t, wire.DropQPState, c.deliver(c.b, k))
	require.Empty(t, c.drain(c.b))
	require.Zero(t, c.b.buf[0])
	plain := connect(t, ofType(verbs.UD))
	require.Equal(t, wire.DropWrongTransport, plain.b.HandlePacket(plain.now, k), "without RDMA peers it is dropped as by rxe")
}

// TestDatagramRDMAGivesUp checks that a silent peer fails the requests to it, and no others.
func TestDatagramRDMAGivesUp(t *testing.T) {
	c := newCouple(t, 256, verbs.AccessRemote)
	c.a.post(c.now, c.request(1, verbs.WRRDMARead, 0, 0, 8), c.request(2, verbs.WRRDMAWrite, 0, 0, 30_000), c.request(3, verbs.WRRDMARead, 0, 0, 50_000))
	begin, packets := c.now, 0
	for len(c.a.wcs) == 0 {
		packets += len(c.drain(c.a))
		c.advanceToDeadline(c.a)
	}
	require.ElementsMatch(t, []string{"1 RETRY_EXC_ERR", "2 RETRY_EXC_ERR", "3 RETRY_EXC_ERR"}, c.a.takeCompletions())
	require.InDelta(t, 1000*reliability.Millisecond, float64(c.now-begin), 400*reliability.Millisecond)
	require.Less(t, packets, 100, "it is probed, not flooded")
	require.Zero(t, c.a.Deadline())
	require.Equal(t, verbs.StateRTS, c.a.State())

	c.a.post(c.now, c.request(4, verbs.WRRDMARead, 0, 0, 8), c.request(5, verbs.WRRDMAWrite, 0, 0, 8))
	require.NoError(t, c.modify(c.a, verbs.StateErr))
	require.ElementsMatch(t, []string{"4 WR_FLUSH_ERR", "5 WR_FLUSH_ERR"}, c.a.takeCompletions())
	c.a.post(c.now, c.request(6, verbs.WRRDMARead, 0, 0, 8))
	require.Equal(t, []string{"6 WR_FLUSH_ERR"}, c.a.takeCompletions())
}

// FuzzDatagramRDMA checks that arbitrary packets of a peer with a valid token write only where
// permitted, cause a bounded number of packets, and do not fail the queue pair.
func FuzzDatagramRDMA(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3})
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	ops := []wire.Opcode{wire.UDXWriteOnly, wire.UDXReadRequest, wire.UDXReadResponse, wire.UDXAck, wire.UDXAtomicAck, wire.UDXCmpSwap, wire.UDXFetchAdd}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &script{in}
		c := newCouple(t, 256, verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
		for i := range c.a.buf {
			c.a.buf[i] = garbage
		}
		private := make([]byte, 64)
		key := c.a.mem.add(1<<40, private, verbs.AccessLocalWrite)
		var seen []*wire.Packet
		for id := uint64(0); len(s.rest) > 0; id++ {
			switch s.below(6) {
			case 0:
				_, _ = c.a.PostSend(c.now, []verbs.SendWR{c.request(id, []verbs.WROpcode{verbs.WRRDMARead, verbs.WRRDMAWrite}[s.below(2)], 0, 0, 8*s.below(200))})
			case 1: // a valid exchange
				k := c.drain(c.a)
				c.deliver(c.b, k...)
				answers := c.drain(c.b)
				seen = append(seen, answers...)
				c.deliver(c.a, answers...)
			case 2:
				if c.a.Deadline() != 0 {
					c.advanceToDeadline(c.a)
				}
			case 3: // repeated
				if len(seen) > 0 {
					c.deliver(c.a, seen[s.below(len(seen))])
				}
			default: // arbitrary
				op := ops[s.below(len(ops))]
				n := 4 * s.below(8)
				if _, most := op.Info().PayloadRange(256); most == 0 {
					n = 0
				}
				k := c.packet(c.b, wire.BTH{Opcode: op, PSN: wire.PSN(0).Add(s.below(140) - 70)}, s.bytes(n), func(b []byte) {
					wire.DETH{QKey: 0xa, SrcQPN: c.b.Num()}.Put(b[wire.BTHLen:])
					h := b[wire.BTHLen+wire.DETHLen : op.Info().HeaderLen]
					rand.NewChaCha8([32]byte{s.byte()}).Read(h)
					if op.Info().RETH && s.below(2) == 0 {
						wire.RETH{VA: c.a.base + uint64(s.below(250)), RKey: c.a.key, Length: uint32(n)}.Put(h)
					} else if op.Info().RETH {
						wire.RETH{VA: 1 << 40, RKey: key, Length: uint32(s.below(64))}.Put(h)
					}
				})
				before := len(c.ofA.core.rdma.ackPeers) + c.a.rdma.replies.Len()
				c.deliver(c.a, k)
				require.LessOrEqual(t, len(c.a.rdma.ackPeers)+c.a.rdma.replies.Len(), before+1)
			}
			require.LessOrEqual(t, c.ofA.pendingReplies, maxReplies)
			require.Equal(t, make([]byte, 64), private)
			require.Equal(t, verbs.StateRTS, c.a.State())
			require.GreaterOrEqual(t, c.ofA.inFlight, 0)
			require.GreaterOrEqual(t, c.ofA.lostSlots, 0)
		}
	})
}
