package rnic_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// datagrams is a UD queue pair with RDMA, and a region.
type datagrams struct {
	dev *rnic.Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
}

func openDatagrams() (d datagrams, err error) {
	if d.dev, err = rnic.Open(rnic.Options{}); err != nil {
		return d, err
	}
	if d.pd, err = d.dev.AllocPD(); err != nil {
		return d, err
	}
	if d.cq, err = d.dev.CreateCQ(64); err != nil {
		return d, err
	}
	if d.qp, err = d.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: d.cq, RecvCQ: d.cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxSendSGE: 1}, MaxDatagramRDMA: 4}); err != nil {
		return d, err
	}
	if d.mr, err = d.pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite|verbs.AccessRemote); err != nil {
		return d, err
	}
	return d, verbs.ActivateUD(d.qp, 1, 0)
}

// peer returns the handle of another.
func (d *datagrams) peer(other *datagrams) (verbs.PeerAH, error) {
	gid, err := other.dev.QueryGID(1, 0)
	if err != nil {
		return nil, err
	}
	return d.qp.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: verbs.AHAttr{DGID: gid.GID}, QPN: other.qp.Num(), Access: verbs.AccessRemote})
}

// RDMA between two UD queue pairs, which have exchanged their tokens.
func Example_datagramRDMA() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	a, err := openDatagrams()
	check(err)
	defer a.dev.Close()
	b, err := openDatagrams()
	check(err)
	defer b.dev.Close()
	toB, err := a.peer(&b)
	check(err)
	toA, err := b.peer(&a)
	check(err)
	check(toB.Connect(toA.Token()))
	check(toA.Connect(toB.Token()))

	copy(b.mr.Bytes(), "read without a connection")
	_, err = a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, AH: toB,
		SGList: []verbs.SGE{a.mr.SGE(0, 25)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	check(err)
	wc := make([]verbs.WC, 1)
	_, err = a.cq.PollWait(context.Background(), wc)
	check(err)
	fmt.Println(wc[0].Status, string(a.mr.Bytes()[:wc[0].ByteLen]))
	// Output: SUCCESS read without a connection
}

// TestPeerHandles checks that invalid peers are refused, and that a closed handle flushes its
// requests and denies access.
func TestPeerHandles(t *testing.T) {
	a, err := openDatagrams()
	require.NoError(t, err)
	defer a.dev.Close()
	b, err := openDatagrams()
	require.NoError(t, err)
	defer b.dev.Close()
	gid, err := b.dev.QueryGID(1, 0)
	require.NoError(t, err)
	rdma := a.qp.(verbs.DatagramRDMA)
	for what, bad := range map[string]verbs.PeerAttr{
		"no queue pair": {AH: verbs.AHAttr{DGID: gid.GID}},
		"nowhere":       {QPN: 5},
		"a group":       {AH: verbs.AHAttr{DGID: verbs.GID{10: 0xff, 11: 0xff, 12: 224, 15: 9}}, QPN: 5},
		"local access":  {AH: verbs.AHAttr{DGID: gid.GID}, QPN: 5, Access: verbs.AccessLocalWrite},
		"MTU":           {AH: verbs.AHAttr{DGID: gid.GID}, QPN: 5, MTU: 9},
	} {
		_, err := rdma.CreatePeer(bad)
		require.ErrorIs(t, err, verbs.ErrInvalid, what)
	}
	plain, err := a.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: a.cq, RecvCQ: a.cq})
	require.NoError(t, err)
	_, err = plain.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: verbs.AHAttr{DGID: gid.GID}, QPN: 5})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	_, err = a.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: a.cq, RecvCQ: a.cq, MaxDatagramRDMA: 1})
	require.ErrorIs(t, err, verbs.ErrUnsupported)

	h, err := a.peer(&b)
	require.NoError(t, err)
	read := []verbs.SendWR{{WRID: 7, Opcode: verbs.WRRDMARead, AH: h, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}}
	_, err = a.qp.PostSend(read)
	require.ErrorIs(t, err, verbs.ErrNotConnected)
	require.NoError(t, h.Connect(12345)) // which b has not drawn: it drops all packets
	_, err = a.qp.PostSend(read)
	require.NoError(t, err)
	require.ErrorIs(t, a.pd.Close(), verbs.ErrBusy)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	wc := make([]verbs.WC, 1)
	n, err := a.cq.PollWait(context.Background(), wc)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, verbs.WCWRFlushErr, wc[0].Status)
	_, err = a.qp.PostSend(read)
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.ErrorIs(t, h.Connect(1), verbs.ErrClosed)
}
