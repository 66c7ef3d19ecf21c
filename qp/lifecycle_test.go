package qp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestPacketsByState checks in which states packets are processed, and in which they are dropped.
func TestPacketsByState(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for s := verbs.StateReset; s <= verbs.StateErr; s++ {
			if typ == verbs.RC && s == verbs.StateSQE {
				continue
			}
			p := inState(t, typ, s)
			if s != verbs.StateReset {
				p.a.recv(1, 0, 100)
			}
			p.a.takeCompletions()
			pkt := p.packetToA(typ)
			d := p.deliver(p.a, pkt)
			if s == verbs.StateReset || s == verbs.StateInit || s == verbs.StateErr {
				require.Equal(t, wire.DropQPState, d, "%v in %v", typ, s)
				require.Empty(t, p.a.takeCompletions())
				require.Zero(t, p.a.Counters().RcvdPkts)
				continue
			}
			require.Equal(t, wire.DropNone, d, "%v in %v", typ, s)
			require.Len(t, p.a.takeCompletions(), 1)
			if typ == verbs.RC {
				require.Len(t, p.drain(p.a), 1, "the acknowledgement")
			}
		}
	}
}

// packetToA returns a SEND of b with 8 bytes for a, the first of its connection.
func (p *pair) packetToA(typ verbs.QPType) *wire.Packet {
	op := map[verbs.QPType]wire.Opcode{verbs.RC: wire.RCSendOnly, verbs.UC: wire.UCSendOnly, verbs.UD: wire.UDSendOnly}[typ]
	return p.packet(p.b, wire.BTH{Opcode: op, PSN: wire.PSN(p.psn[1]), AckReq: true}, make([]byte, 8), func(b []byte) {
		if typ == verbs.UD {
			wire.DETH{QKey: 0x1234, SrcQPN: p.b.Num()}.Put(b[wire.BTHLen:])
		}
	})
}

// TestResponsesInRTR checks that responses are dropped in RTR.
func TestResponsesInRTR(t *testing.T) {
	p := inState(t, verbs.RC, verbs.StateRTR)
	require.Equal(t, wire.DropQPState, p.deliver(p.a, p.response(p.b, wire.RCAck, 0, 0x1f, nil)))
	require.Empty(t, p.a.raised())
}

// TestCommEst checks that COMM_EST is raised for the first request in RTR, once, on connected
// services.
func TestCommEst(t *testing.T) {
	for _, typ := range rcuc {
		p := inState(t, typ, verbs.StateRTR)
		p.a.recv(1, 0, 100)
		p.a.recv(2, 0, 100)
		p.deliver(p.a, p.packetToA(typ), p.packetToA(typ))
		require.Equal(t, []verbs.EventType{verbs.EventCommEst}, p.a.raised())
		p = inState(t, typ, verbs.StateRTS)
		p.a.recv(1, 0, 100)
		p.deliver(p.a, p.packetToA(typ))
		require.Empty(t, p.a.raised(), "in RTS it is no news")
	}
	p := inState(t, verbs.UD, verbs.StateRTR)
	p.a.recv(1, 0, 100)
	p.deliver(p.a, p.packetToA(verbs.UD))
	require.Empty(t, p.a.raised())
}

// TestAdmission checks the packets that a connected queue pair drops before processing.
func TestAdmission(t *testing.T) {
	for what, c := range map[string]struct {
		change func(p *pair, pkt *wire.Packet)
		want   wire.Drop
	}{
		"another address":     {func(p *pair, pkt *wire.Packet) { pkt.Src = p.b.addr }, wire.DropWrongSource},
		"another port":        {func(p *pair, pkt *wire.Packet) { pkt.Src = netip.AddrPortFrom(p.a.addr.Addr(), 50_000) }, wire.DropNone},
		"another partition":   {func(p *pair, pkt *wire.Packet) { pkt.BTH.PKey = 0x8001 }, wire.DropBadPKey},
		"partition 0":         {func(p *pair, pkt *wire.Packet) { pkt.BTH.PKey = 0x8000 }, wire.DropBadPKey},
		"limited member":      {func(p *pair, pkt *wire.Packet) { pkt.BTH.PKey = 0x7fff }, wire.DropNone},
		"MigReq":              {func(p *pair, pkt *wire.Packet) { pkt.BTH.MigReq = true }, wire.DropNone},
		"another transport":   {func(p *pair, pkt *wire.Packet) { pkt.Info = wire.UCSendOnly.Info() }, wire.DropWrongTransport},
		"a datagram":          {func(p *pair, pkt *wire.Packet) { pkt.Info = wire.UDSendOnly.Info() }, wire.DropWrongTransport},
		"backward congestion": {func(p *pair, pkt *wire.Packet) { pkt.BTH.BECN = true }, wire.DropNone},
	} {
		p := connect(t)
		p.b.recv(9, 0, 100)
		pkt := p.request(wire.RCSendOnly, 0, 8, nil)
		c.change(p, pkt)
		require.Equal(t, c.want, p.deliver(p.b, pkt), what)
		if c.want != wire.DropNone {
			require.Zero(t, p.b.Counters().RcvdPkts, what)
			require.Empty(t, p.drain(p.b), what)
		}
	}
}

// TestDrain checks that in SQD started requests complete, no others start, one event reports that
// the queue is drained, and RTS continues.
func TestDrain(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		p := connect(t, ofType(typ))
		p.b.recv(9, 0, 2000)
		p.a.post(p.now, p.toPeer(p.send(1, 0, 600)))
		out := &batch{room: 1}
		require.Equal(t, typ != verbs.UD, p.a.Drain(p.now, out))
		require.NoError(t, p.modify(p.a, verbs.StateSQD))
		p.a.post(p.now, p.toPeer(p.send(2, 0, 8)))
		if typ != verbs.UD {
			require.True(t, p.a.Query().SQDraining)
			require.Empty(t, p.a.raised())
			for _, s := range []verbs.QPState{verbs.StateRTS, verbs.StateSQD} {
				require.ErrorIs(t, p.modify(p.a, s), verbs.ErrState, "while it drains")
			}
		}
		p.deliver(p.b, p.parse(p.a, out)...)
		p.exchange()
		require.Equal(t, []string{"1 SEND len=600"}, p.a.takeCompletions())
		require.Equal(t, []verbs.EventType{verbs.EventSQDrained}, p.a.raised())
		require.False(t, p.a.Query().SQDraining)
		p.a.post(p.now, p.toPeer(p.send(3, 0, 8)))
		require.Empty(t, p.drain(p.a), "nothing starts")
		require.NoError(t, p.modify(p.a, verbs.StateSQD))
		require.Empty(t, p.a.raised())
		p.b.recv(10, 0, 100)
		p.b.recv(11, 0, 100)
		require.NoError(t, p.modify(p.a, verbs.StateRTS))
		p.exchange()
		require.Equal(t, []string{"2 SEND len=8", "3 SEND len=8"}, p.a.takeCompletions())
		require.NoError(t, p.modify(p.a, verbs.StateSQD))
		require.Equal(t, []verbs.EventType{verbs.EventSQDrained}, p.a.raised(), "idle at once")
	}
}

// TestDrainEventAttribute checks that EnSQDAsyncNotify selects whether an event is raised, and that it
// is raised without the attribute.
func TestDrainEventAttribute(t *testing.T) {
	for _, c := range []struct {
		name       string
		mask       verbs.QPAttrMask
		set, event bool
	}{{"left out", 0, false, true}, {"wanted", verbs.AttrEnSQDAsyncNotify, true, true}, {"not wanted", verbs.AttrEnSQDAsyncNotify, false, false}, {"left out again", 0, false, true}} {
		for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
			p := connect(t, ofType(typ))
			require.NoError(t, p.a.Modify(p.now, &verbs.QPAttr{State: verbs.StateSQD, EnSQDAsyncNotify: c.set}, verbs.AttrState|c.mask))
			require.Equal(t, c.event, len(p.a.raised()) == 1, c.name)
			require.Equal(t, c.event, p.a.Query().EnSQDAsyncNotify)
		}
	}
}

// TestDrainUnderLoss checks that timers run in SQD: a lost packet does not prevent draining.
func TestDrainUnderLoss(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.write(1, 0, 0, 600), p.read(2, 0, 0, 600))
	p.drain(p.a) // lost
	require.NoError(t, p.modify(p.a, verbs.StateSQD))
	p.a.post(p.now, p.write(3, 0, 0, 8))
	for p.a.Deadline() != 0 {
		p.advanceToDeadline(p.a)
		p.exchange()
	}
	require.Equal(t, []string{"1 RDMA_WRITE len=600", "2 RDMA_READ len=600"}, p.a.takeCompletions())
	require.Equal(t, []verbs.EventType{verbs.EventSQDrained}, p.a.raised())
	require.NoError(t, p.modify(p.a, verbs.StateErr))
	require.Equal(t, []string{"3 WR_FLUSH_ERR"}, p.a.takeCompletions())
}

// TestAttributesChangeInSQD checks that the timing attributes may be modified in SQD.
func TestAttributesChangeInSQD(t *testing.T) {
	p := connect(t)
	require.NoError(t, p.modify(p.a, verbs.StateSQD))
	require.NoError(t, p.a.Modify(p.now, &verbs.QPAttr{Timeout: 10, RetryCnt: 0, MaxRdAtomic: 1},
		verbs.AttrTimeout|verbs.AttrRetryCnt|verbs.AttrMaxQPRdAtomic))
	require.NoError(t, p.modify(p.a, verbs.StateRTS))
	p.a.post(p.now, p.read(1, 0, 0, 8), p.read(2, 0, 0, 8))
	require.Len(t, p.drain(p.a), 1)
	p.wait(p.a, MinAckTimeout)
	require.Equal(t, []string{"1 RETRY_EXC_ERR", "2 WR_FLUSH_ERR"}, p.a.takeCompletions())
}

// TestQueuedReadsKeepTheirResource checks that max_rd_atomic 0 is refused while reads or atomics
// are queued in SQD, because it would block them without a timer.
func TestQueuedReadsKeepTheirResource(t *testing.T) {
	for _, post := range []func(p *pair) verbs.SendWR{
		func(p *pair) verbs.SendWR { return p.read(2, 0, 0, 8) },
		func(p *pair) verbs.SendWR { return p.fetchAdd(2, 0, 0, 1) },
	} {
		p := connect(t)
		none := func() error {
			return p.a.Modify(p.now, &verbs.QPAttr{MaxRdAtomic: 0}, verbs.AttrMaxQPRdAtomic)
		}
		require.NoError(t, p.modify(p.a, verbs.StateSQD))
		p.a.post(p.now, p.write(1, 0, 0, 8), post(p))
		err := none()
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "1 reads and atomics are queued")
		require.NoError(t, p.modify(p.a, verbs.StateRTS))
		p.exchange()
		require.Len(t, p.a.takeCompletions(), 2)
		require.NoError(t, p.modify(p.a, verbs.StateSQD))
		require.NoError(t, none(), "none is queued any more")
	}
}

// TestAbandonedReceiveGoesBack checks that a receive of a shared queue that belongs to an
// incomplete message returns to the front of the queue when the queue pair is reset or destroyed.
// One of the queue pair's own queue is discarded.
func TestAbandonedReceiveGoesBack(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for what, leave := range map[string]func(p *pair){
			"reset":   func(p *pair) { require.NoError(t, p.modify(p.b, verbs.StateReset)) },
			"destroy": func(p *pair) { p.b.ReleaseSharedRecv(); p.b.ReleaseSharedRecv() },
		} {
			p := connect(t, ofType(typ), func(o *options) { o.srq = true })
			p.b.recv(7, 0, 600)
			p.b.recv(8, 0, 600)
			if typ == verbs.UD {
				p.a.post(p.now, p.datagram(1, 600)) // with a GRH it is too long for the receive
			} else {
				p.a.post(p.now, p.send(1, 0, 600))
			}
			p.deliver(p.b, p.drain(p.a)[0])
			require.Equal(t, 1, p.b.srq.len(), "%v has taken one", typ)
			leave(p)
			require.Empty(t, p.b.takeCompletions())
			var wqe RecvWQE
			for id := uint64(7); id < 9; id++ {
				require.True(t, p.b.srq.Pop(&wqe), "%v %s", typ, what)
				require.Equal(t, id, wqe.ID)
				require.Equal(t, []verbs.SGE{p.b.sge(0, 600)}, wqe.SGList)
			}
			require.False(t, p.b.srq.Pop(&wqe), "only once")
		}
	}
	p := connect(t)
	p.b.recv(7, 0, 600)
	p.a.post(p.now, p.send(1, 0, 600))
	p.deliver(p.b, p.drain(p.a)[0])
	require.NoError(t, p.modify(p.b, verbs.StateReset))
	_, recvs := p.b.Queued()
	require.Zero(t, recvs)
}

// TestReset checks that RESET clears queues without completions, message counters, windows, credits
// and resources, and that the queue pair then serves a new connection.
func TestReset(t *testing.T) {
	for _, from := range []verbs.QPState{verbs.StateRTS, verbs.StateErr} {
		p := connect(t, withCredits)
		p.recvs(0, 6)
		p.sends(1, 10)
		p.a.post(p.now, p.read(20, 0, 0, 600))
		p.a.recv(30, 0, 600)
		p.exchange()
		p.deliver(p.b, p.request(wire.RCSendFirst, 99, 256, nil)) // a gap
		if from == verbs.StateErr {
			require.NoError(t, p.modify(p.a, verbs.StateErr))
			require.NoError(t, p.modify(p.b, verbs.StateErr))
		}
		p.a.takeCompletions()
		p.b.takeCompletions()
		o := newOptions([]option{withCredits})
		for _, n := range []*node{p.a, p.b} {
			require.NoError(t, p.modify(n, verbs.StateReset))
			require.Empty(t, n.takeCompletions(), "no completions")
			require.Empty(t, p.drain(n))
			require.Zero(t, n.Deadline())
			require.Equal(t, verbs.QPAttr{}, n.Query())
			send, recv := n.Queued()
			require.Zero(t, send+recv)
		}
		p.psn = [2]uint32{77, 88}
		p.modifyTo(p.a, p.b, 77, 88, o, verbs.StateRTS)
		p.modifyTo(p.b, p.a, 88, 77, o, verbs.StateRTS)
		p.recvs(0, 2)
		p.sends(1, 4)
		probe := p.drain(p.a)
		require.Equal(t, []string{"SEND_ONLY 0 len=8 A"}, p.describePackets(p.a, probe), "credits are counted anew")
		p.deliver(p.b, probe...)
		require.Equal(t, []string{"ACKNOWLEDGE 0 01 msn=1"}, p.describePackets(p.b, p.drain(p.b)))
	}
}

// TestDatagramHasNoPeer checks that a datagram queue pair needs no attributes of a peer.
func TestDatagramHasNoPeer(t *testing.T) {
	p := connect(t, ofType(verbs.UD))
	require.Zero(t, p.a.DestQPN())
	require.False(t, p.a.PeerPath().Dst.IsValid())
	require.Equal(t, verbs.UD, p.a.Type())
}
