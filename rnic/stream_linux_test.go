package rnic

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestStreamTransfer sends, writes and reads messages of many lengths between two devices with iWARP.
func TestStreamTransfer(t *testing.T) {
	for _, noCRC := range []bool{false, true} {
		a, b := pair(t, Options{Wire: IWARP, NoCRC: noCRC})
		for _, n := range []int{0, 1, 7, 8, 63, 64, 65, 100, 4095, 4096, 16 << 10, 65400, 65472, 65473, 65536, 100_001, 1 << 20, 3<<20 + 5} {
			half := 4 << 20
			fill(a.mr.Bytes(), uint64(n))
			clear(b.mr.Bytes())
			b.recv(t, 7, half, n)
			a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, n)}})
			require.EqualValues(t, n, a.poll1(t).ByteLen)
			wc := b.poll1(t)
			require.Equal(t, verbs.WCRecv, wc.Opcode)
			require.EqualValues(t, n, wc.ByteLen)
			require.True(t, bytes.Equal(a.mr.Bytes()[:n], b.mr.Bytes()[half:half+n]), "send %d", n)

			a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(1, n)}, RemoteAddr: b.mr.Addr() + 3, RKey: b.mr.RKey()})
			a.poll1(t)
			a.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{a.mr.SGE(half, n)}, RemoteAddr: b.mr.Addr() + 3, RKey: b.mr.RKey()})
			require.EqualValues(t, n, a.poll1(t).ByteLen)
			require.Equal(t, verbs.StateRTS, b.qp.State()) // and the engine of b is done
			require.True(t, bytes.Equal(a.mr.Bytes()[1:1+n], b.mr.Bytes()[3:3+n]), "write %d", n)
			require.True(t, bytes.Equal(a.mr.Bytes()[1:1+n], a.mr.Bytes()[half:half+n]), "read %d", n)
		}
	}
}

// TestStreamWaitsForReceive checks that a message between two softrnics that finds no receive waits for
// one, in the queue of the queue pair or a shared one, and is then received like any other.
func TestStreamWaitsForReceive(t *testing.T) {
	for _, shared := range []bool{false, true} {
		a, b := newEnd(t, Options{Wire: IWARP}), newEnd(t, Options{Wire: IWARP})
		post := func(wr verbs.RecvWR) (int, error) { return b.qp.PostRecv([]verbs.RecvWR{wr}) }
		if shared {
			srq, err := b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1})
			require.NoError(t, err)
			b.qp = b.newQPWith(t, verbs.QPInitAttr{Type: verbs.RC, SRQ: srq})
			post = func(wr verbs.RecvWR) (int, error) { return srq.PostRecv([]verbs.RecvWR{wr}) }
		}
		connect(t, a.dev, a.qp, b.dev, b.qp)
		for i := range 3 {
			a.mr.Bytes()[i] = byte(i + 1)
			a.post(t, verbs.SendWR{Opcode: verbs.WRSendWithImm, Imm: uint32(i), SGList: []verbs.SGE{a.mr.SGE(i, 1)}})
			a.poll1(t)
		}
		read := verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: 3, SGList: []verbs.SGE{a.mr.SGE(0, 3)}, RemoteAddr: b.mr.Addr() + 100, RKey: b.mr.RKey()}
		a.post(t, read)
		a.poll1(t)
		for i := range 4 {
			_, err := post(verbs.RecvWR{WRID: uint64(i), SGList: []verbs.SGE{b.mr.SGE(i, 1)}})
			require.NoError(t, err)
			wc := b.poll1(t)
			require.EqualValues(t, i, wc.WRID)
			require.EqualValues(t, i, wc.Imm)
		}
		require.Equal(t, []byte{1, 2, 3}, b.mr.Bytes()[:3])
		require.Equal(t, []byte{1, 2, 3}, b.mr.Bytes()[100:103])
	}
}

// TestStreamRequestsBehindOthers checks that requests which wait until earlier ones are complete are
// executed: an invalidation, and one that fails because of its memory.
func TestStreamRequestsBehindOthers(t *testing.T) {
	a, b := pair(t, Options{Wire: IWARP})
	w, err := a.pd.AllocMW()
	require.NoError(t, err)
	defer w.Close()
	write := verbs.SendWR{Flags: verbs.SendSignaled, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
	key := verbs.IncRKey(w.RKey())
	bind := verbs.SendWR{Flags: verbs.SendSignaled, Opcode: verbs.WRBindMW,
		Bind: verbs.BindMW{MW: w, RKey: key, MR: a.mr, Addr: a.mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}}
	bad := write
	bad.SGList = []verbs.SGE{{Addr: a.mr.Addr(), Length: 8, LKey: a.mr.LKey() ^ 1}}
	_, err = a.qp.PostSend([]verbs.SendWR{bind, write, {Flags: verbs.SendSignaled, Opcode: verbs.WRLocalInv, InvKey: key}, write, bad})
	require.NoError(t, err)
	for _, op := range []verbs.WCOpcode{verbs.WCBindMW, verbs.WCRDMAWrite, verbs.WCLocalInv, verbs.WCRDMAWrite} {
		require.Equal(t, op, a.poll1(t).Opcode)
	}
	require.Equal(t, verbs.WCLocProtErr, a.next(t).Status)
}
