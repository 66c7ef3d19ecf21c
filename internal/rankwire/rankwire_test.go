package rankwire

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A job is the book of ranks in one process.
type job struct {
	id   string
	size int
	keys sync.Map
}

// A rankBook is the book of one rank.
type rankBook struct {
	*job
	rank int
}

func (b rankBook) Rank() int                   { return b.rank }
func (b rankBook) Size() int                   { return b.size }
func (b rankBook) JobID() string               { return b.id }
func (b rankBook) Put(key, value string) error { b.keys.Store(key, value); return nil }

func (b rankBook) Get(_ context.Context, key string) (string, error) {
	v, ok := b.keys.Load(key)
	if !ok {
		return "", fmt.Errorf("no key %q", key)
	}
	return v.(string), nil
}

// A peer is a rank with a queue pair to dial.
type peer struct {
	*Wire
	pd verbs.PD
	cq verbs.CQ
}

func newPeer(t *testing.T, j *job, rank int, requests bool) *peer {
	t.Helper()
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	p := &peer{}
	p.pd, err = dev.AllocPD()
	require.NoError(t, err)
	p.cq, err = dev.CreateCQ(16)
	require.NoError(t, err)
	p.Wire, err = Listen(dev, rankBook{j, rank}, Options{Name: "test", Magic: 0x54455354, Requests: requests})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func (p *peer) newQP(t *testing.T) verbs.QP {
	t.Helper()
	qp, err := p.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(t, err)
	return qp
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestDial connects two ranks, after a request of the one that does not dial.
func TestDial(t *testing.T) {
	ctx := testContext(t)
	j := &job{id: "job", size: 2}
	a, b := newPeer(t, j, 0, false), newPeer(t, j, 1, true)
	tickets := make(chan Ticket, 1)
	a.Serve(ctx, func(from Ticket, r *cm.Request) {
		_, err := r.Accept(ctx, a.newQP(t), cm.AcceptOptions{PrivateData: []byte("reply")})
		if err == nil {
			tickets <- from
		}
	})
	dials := make(chan int, 1)
	b.ServeRequests(ctx, func(rank int) { dials <- rank })

	require.NoError(t, a.RequestDial(ctx, 1))
	require.Equal(t, 0, <-dials)
	conn, err := b.Dial(ctx, 0, 7, b.newQP(t), cm.DialOptions{PrivateData: []byte("data")})
	require.NoError(t, err)
	from := <-tickets
	require.Equal(t, 1, from.Rank)
	require.Equal(t, 7, from.Channel)
	require.Equal(t, "data", string(from.Private[:4]))
	require.Equal(t, "reply", string(conn.PrivateData()[:5]))
	DisconnectAll(ctx, []*cm.Conn{conn})

	var rejected *cm.UDRejectError
	require.ErrorAs(t, b.RequestDial(ctx, 0), &rejected, "rank 0 serves no requests")
	_, err = b.Dial(ctx, 5, 0, b.newQP(t), cm.DialOptions{})
	require.ErrorContains(t, err, "test-5")
}

// TestForeignConnections dials without the ticket of another rank of the job: the reason
// is in the rejection.
func TestForeignConnections(t *testing.T) {
	ctx := testContext(t)
	j := &job{id: "job", size: 2}
	a, b := newPeer(t, j, 0, false), newPeer(t, j, 1, false)
	a.Serve(ctx, func(from Ticket, r *cm.Request) { t.Errorf("ticket %v accepted", from) })
	at, port, err := b.address(ctx, 0)
	require.NoError(t, err)
	mine := b.appendTicket(nil, 0)
	with := func(off int, value byte) []byte {
		ticket := append([]byte(nil), mine...)
		ticket[off] ^= value
		return ticket
	}
	for name, test := range map[string]struct {
		ticket []byte
		reason string
	}{
		"nothing":         {nil, "malformed ticket"},
		"other transport": {with(3, 1), "malformed ticket"},
		"other job":       {with(11, 1), fmt.Sprintf("job %#x, want %#x", b.job^1, b.job)},
		"the peer's rank": {with(15, 1), "invalid rank 0"},
		"rank 3 of two":   {with(15, 2), "invalid rank 3"},
		"a negative rank": {with(12, 0x80), "invalid rank 2147483649"},
	} {
		_, err = b.cm.Dial(ctx, at, b.newQP(t), cm.DialOptions{PrivateData: test.ticket, UDPPort: port})
		var rejected *cm.RejectError
		require.ErrorAs(t, err, &rejected, name)
		require.Contains(t, string(rejected.PrivateData), test.reason, name)
	}
}
