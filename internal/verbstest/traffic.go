package verbstest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// message sends n bytes from a to b and returns both completions. On UD the receive begins with the
// GRH area.
func message(t *T, a, b *end, n int, change func(wr *verbs.SendWR)) (sent, got verbs.WC) {
	t.Helper()
	wr := verbs.SendWR{WRID: 11, Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, n)}}
	grh := 0
	if a.qp.Type() == verbs.UD {
		grh = wire.GRHLen
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = a.handle(t, b.dev), b.qp.Num(), qkey
	}
	if change != nil {
		change(&wr)
	}
	fill(a.mr.Bytes()[:n], uint64(n))
	clear(b.mr.Bytes()[:n+grh+8])
	b.recv(t, 12, 0, n+grh)
	a.post(t, wr)
	sent, got = a.poll1(t), b.poll1(t)
	require.EqualValues(t, 11, sent.WRID)
	require.EqualValues(t, 12, got.WRID)
	require.EqualValues(t, n, sent.ByteLen)
	require.EqualValues(t, n+grh, got.ByteLen)
	if wr.Flags&verbs.SendInline == 0 && wr.Opcode != verbs.WRRDMAWriteWithImm {
		require.Equal(t, a.mr.Bytes()[:n], b.mr.Bytes()[grh:grh+n])
	}
	require.Equal(t, make([]byte, 8), b.mr.Bytes()[grh+n:grh+n+8], "not a byte too many")
	return sent, got
}

func withImm(wr *verbs.SendWR) { wr.Opcode, wr.Imm = verbs.WRSendWithImm, 0x01020304 }

func testRCSend(t *T) {
	a, b := pair(t)
	for _, n := range []int{0, 1, 1024, 100_000} {
		message(t, a, b, n, nil)
		message(t, b, a, n, nil)
	}
}

func testUCSend(t *T) {
	a, b := pairOf(t, verbs.UC)
	for _, n := range []int{0, 1, 1024, 30_000} {
		message(t, a, b, n, nil)
	}
}

func testUDSend(t *T) {
	a, b := pairOf(t, verbs.UD)
	for _, n := range []int{1, 3, 1024, 4096} {
		_, got := message(t, a, b, n, nil)
		require.Equal(t, verbs.WCGRH, got.Flags)
		require.Equal(t, a.qp.Num(), got.SrcQPN)
		from, to := t.device.Addr(a.dev).Addr().As4(), t.device.Addr(b.dev).Addr().As4()
		require.Equal(t, append(from[:], to[:]...), b.mr.Bytes()[32:40], "the IPv4 header of the packet ends in its addresses")
	}
}

func testUDZeroSize(t *T) {
	a, b := pairOf(t, verbs.UD)
	message(t, a, b, 0, nil)
}

func testRCSendImm(t *T) {
	a, b := pair(t)
	_, got := message(t, a, b, 5000, withImm)
	require.Equal(t, verbs.WC{WRID: 12, Opcode: verbs.WCRecv, Flags: verbs.WCWithImm, Imm: 0x01020304, ByteLen: 5000, QPN: b.qp.Num()}, got)
}

func testUCSendImm(t *T) {
	a, b := pairOf(t, verbs.UC)
	_, got := message(t, a, b, 5000, withImm)
	require.EqualValues(t, 0x01020304, got.Imm)
}

func testUDSendImm(t *T) {
	a, b := pairOf(t, verbs.UD)
	_, got := message(t, a, b, 100, withImm)
	require.Equal(t, verbs.WCWithImm|verbs.WCGRH, got.Flags)
	require.EqualValues(t, 0x01020304, got.Imm)
}

// writes transfers data by RDMA write, the last one with immediate, which on UC shows that all have
// arrived.
func writes(t *T, typ verbs.QPType) {
	a, b := pairOf(t, typ)
	fill(a.mr.Bytes()[:20_000], 3)
	b.recv(t, 12, 0, 0)
	a.post(t, writeTo(a, b.mr, 10_000))
	wr := writeTo(a, b.mr, 10_000)
	wr.Opcode, wr.Imm = verbs.WRRDMAWriteWithImm, 5
	wr.RemoteAddr += 10_000
	wr.SGList[0].Addr += 10_000
	a.post(t, wr)
	for range 2 {
		require.Equal(t, verbs.WCRDMAWrite, a.poll1(t).Opcode)
	}
	require.Equal(t, verbs.WC{WRID: 12, Opcode: verbs.WCRecvRDMAWithImm, Flags: verbs.WCWithImm, Imm: 5, ByteLen: 10_000, QPN: b.qp.Num()}, b.poll1(t))
	require.Equal(t, a.mr.Bytes()[:20_000], b.mr.Bytes()[:20_000])
}

func testRCWrite(t *T) { writes(t, verbs.RC) }
func testUCWrite(t *T) { writes(t, verbs.UC) }

// testRCZeroSize checks that keys and addresses of 0 bytes are not checked (IBTA volume 1,
// 9.7.4.1.5; rdma_rxe of Linux 6.1 does the same).
func testRCZeroSize(t *T) {
	a, b := pair(t)
	for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
		a.post(t, verbs.SendWR{Opcode: op, RemoteAddr: 1, RKey: 0xbad})
		require.Zero(t, a.poll1(t).ByteLen)
	}
	require.Equal(t, verbs.StateRTS, b.qp.State())
}

func testRCRead(t *T) {
	a, b := pair(t)
	fill(b.mr.Bytes()[:50_000], 3)
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(0, 50_000)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRDMARead, a.poll1(t).Opcode)
	require.Equal(t, b.mr.Bytes()[:50_000], a.mr.Bytes()[:50_000])
}

// testOpcodesOfTypes posts every opcode to queue pairs that do not support it.
func testOpcodesOfTypes(t *T) {
	connected := []verbs.WROpcode{verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd, verbs.WRSendWithInv}
	refused := map[verbs.QPType][]verbs.WROpcode{
		verbs.RC: {10, 255},
		verbs.UC: append(connected, 10),
		verbs.UD: append(connected, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRLocalInv, verbs.WRBindMW),
	}
	e := newEnd(t)
	for typ, ops := range refused {
		q := e.newQPInState(t, typ, verbs.StateRTS)
		for _, op := range ops {
			n, err := q.PostSend([]verbs.SendWR{{Opcode: op, SGList: []verbs.SGE{e.mr.SGE(0, 8)}}})
			require.ErrorIs(t, err, verbs.ErrUnsupported, "%v on %v", op, typ)
			t.explains(err, op.String())
			require.Zero(t, n)
		}
	}
}

// testInline sends data that is copied while posting.
func testInline(t *T) {
	for _, typ := range qpTypes {
		a, b := pairOf(t, typ)
		data := []byte("taken at once")
		message(t, a, b, len(data), func(wr *verbs.SendWR) {
			wr.Flags, wr.InlineData, wr.SGList = verbs.SendInline, data, nil
		})
		grh := int(0)
		if typ == verbs.UD {
			grh = wire.GRHLen
		}
		require.Equal(t, data, b.mr.Bytes()[grh:grh+len(data)])
	}
}

func testInlineBadFlow(t *T) {
	a, b := pair(t)
	for _, c := range []struct {
		wr   verbs.SendWR
		err  error
		says string
	}{
		{verbs.SendWR{Opcode: verbs.WRSend, InlineData: make([]byte, 65)}, verbs.ErrLimit, "65 bytes of inline data, MaxInlineData is 64"},
		{verbs.SendWR{Opcode: verbs.WRSend, InlineData: make([]byte, 5), SGList: []verbs.SGE{a.mr.SGE(0, 5)}}, verbs.ErrInvalid, "not in SGList"},
		{verbs.SendWR{Opcode: verbs.WRRDMARead, InlineData: make([]byte, 5), RKey: b.mr.RKey()}, verbs.ErrInvalid, "cannot be inline"},
		{verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, InlineData: make([]byte, 8), RKey: b.mr.RKey()}, verbs.ErrInvalid, "cannot be inline"},
	} {
		c.wr.Flags = verbs.SendInline
		_, err := a.qp.PostSend([]verbs.SendWR{c.wr})
		require.ErrorIs(t, err, c.err)
		t.explains(err, c.says)
	}
}

// testUnsignaled checks that only signaled requests and failures complete.
func testUnsignaled(t *T) {
	a, b := pair(t)
	wr := writeTo(a, b.mr, 8)
	list := []verbs.SendWR{wr, wr, wr, wr}
	for i := range list {
		list[i].WRID = uint64(i)
	}
	list[2].Flags = verbs.SendSignaled
	_, err := a.qp.PostSend(list)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.poll1(t).WRID)
	wr.RKey, wr.WRID = 0, 9
	_, err = a.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
	wc := a.next(t)
	require.EqualValues(t, 9, wc.WRID)
	require.Equal(t, verbs.WCRemAccessErr, wc.Status)
}

// testSignaling posts an unsignaled and a signaled request, and counts their completions.
func testSignaling(t *T) {
	for name, c := range map[string]struct {
		init verbs.QPInitAttr
		want []uint64
	}{
		"by default":           {verbs.QPInitAttr{}, []uint64{1, 2}},
		"with all signaled":    {verbs.QPInitAttr{SignalAll: true}, []uint64{1, 2}},
		"selectively signaled": {verbs.QPInitAttr{SelectiveSignaling: true}, []uint64{2}},
	} {
		t.Run(name, func(t *T) {
			for _, typ := range []verbs.QPType{verbs.RC, verbs.UC} {
				a, b := newEnd(t), newEnd(t)
				c.init.Type, c.init.SendCQ, c.init.RecvCQ, c.init.Cap = typ, a.cq, a.cq, sizes
				var err error
				a.qp, err = a.pd.CreateQP(c.init)
				require.NoError(t, err)
				b.qp = b.newQP(t, typ)
				connect(t, a.dev, a.qp, b.dev, b.qp)
				plain, signaled := writeTo(a, b.mr, 8), writeTo(a, b.mr, 8)
				plain.WRID, signaled.WRID, signaled.Flags = 1, 2, verbs.SendSignaled
				_, err = a.qp.PostSend([]verbs.SendWR{plain, signaled})
				require.NoError(t, err)
				for _, id := range c.want {
					require.Equal(t, id, a.poll1(t).WRID, "%v", typ)
				}
				require.Zero(t, a.cq.Len(), "%v", typ)
			}
		})
	}
}

// testFence reads memory that a later request overwrites at the peer, and sends the result of an
// earlier read.
func testFence(t *T) {
	a, b := pair(t)
	for i := range 50 {
		fill(b.mr.Bytes()[:9000], uint64(i))
		want := append([]byte(nil), b.mr.Bytes()[:9000]...)
		fenced := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendFence | verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 9000)},
			RemoteAddr: b.mr.Addr() + 100_000, RKey: b.mr.RKey()}
		_, err := a.qp.PostSend([]verbs.SendWR{
			{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(0, 9000)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}, fenced,
		})
		require.NoError(t, err)
		a.poll1(t)
		require.Equal(t, want, b.mr.Bytes()[100_000:109_000])
	}
}

// testNoReceive sends to a peer that posts no receive: the message is retried as often as rnr_retry
// permits.
func testNoReceive(t *T) {
	a, b := newEnd(t), newEnd(t)
	connectWith(t, a.dev, a.qp, b.dev, b.qp, verbs.ConnectOptions{RNRRetries: 2, RNRDelay: 10 * time.Microsecond})
	a.post(t, empty[0])
	wc := a.next(t)
	require.Equal(t, verbs.WCRNRRetryExcErr, wc.Status)
	if t.device.Explains {
		require.Equal(t, 2, wc.Failure.Retries)
	}
	t.explains(wc.Err(), "the peer posts receives too late, or too few")
}

// testMessageTooLong sends more than fits in the receive.
func testMessageTooLong(t *T) {
	a, b := pair(t)
	b.recv(t, 1, 0, 99)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}})
	a.fails(t, verbs.WCRemInvReqErr, "longer than the peer's receive")
	b.fails(t, verbs.WCLocLenErr, "longer than the 99 bytes of the posted receive")
	require.Zero(t, b.mr.Bytes()[99])
}

// testUDDrops sends datagrams that are dropped: each is counted under its reason, and the queue
// pair continues.
func testUDDrops(t *T) {
	a, b := pairOf(t, verbs.UD)
	drops := map[string]func(wr *verbs.SendWR){
		wire.DropBadQKey.String():         func(wr *verbs.SendWR) { wr.RemoteQKey++ },
		wire.DropUnknownQPN.String():      func(wr *verbs.SendWR) { wr.RemoteQPN ^= 1 },
		wire.DropTooBigForBuffer.String(): func(wr *verbs.SendWR) { wr.SGList = []verbs.SGE{a.mr.SGE(0, 200)} },
	}
	b.recv(t, 12, 0, 140)
	for reason, change := range drops {
		wr := verbs.SendWR{Opcode: verbs.WRSend, AH: a.handle(t, b.dev), RemoteQPN: b.qp.Num(), RemoteQKey: qkey, SGList: []verbs.SGE{a.mr.SGE(0, 100)}}
		change(&wr)
		a.post(t, wr)
		a.poll1(t)
		for t.device.Drops != nil && t.device.Drops(b.dev, reason) == 0 {
			b.dev.Progress()
		}
	}
	_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: a.handle(t, b.dev), RemoteQPN: 5, SGList: []verbs.SGE{a.mr.SGE(0, 4097)}}})
	require.ErrorIs(t, err, verbs.ErrLimit)
	t.explains(err, "message of 4097 bytes, limit 4096")
	message(t, a, b, 100, nil)
}
