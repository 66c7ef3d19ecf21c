package cm_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/childtest"
	"github.com/softrnic/softrnic/internal/wiretest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestMain runs the tests, or the child process of a test, and checks that no goroutine remains.
func TestMain(m *testing.M) {
	childtest.Serve(new(childState).execute)
	wiretest.SkipExceptions("cm")
	goleak.VerifyTestMain(m)
}

// patience is the time that a test waits for an expected event.
const patience = time.Minute

// soon returns a context that ends after patience.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// end is one side of a test: a device with its manager.
type end struct {
	dev *rnic.Device
	pd  verbs.PD
	cq  verbs.CQ
	m   *cm.Manager
}

func newEnd(t testing.TB, o cm.Options) *end { return newEndOn(t, rnic.Options{}, o) }

func newEndOn(t testing.TB, ro rnic.Options, o cm.Options) *end {
	t.Helper()
	e := &end{}
	var err error
	e.dev, err = rnic.Open(ro)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.dev.Close()) })
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.dev.CreateCQ(4096)
	require.NoError(t, err)
	e.m, err = cm.New(e.dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.m.Close()) })
	return e
}

func (e *end) newQP(t testing.TB, typ verbs.QPType) verbs.QP {
	t.Helper()
	qp, err := e.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInlineData: 64}})
	require.NoError(t, err)
	return qp
}

func (e *end) reg(t testing.TB, n int) verbs.MR {
	t.Helper()
	mr, err := e.pd.RegMR(make([]byte, n), verbs.AccessLocalWrite|verbs.AccessRemote)
	require.NoError(t, err)
	return mr
}

// next waits for one successful completion.
func (e *end) next(t testing.TB) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	n, err := e.cq.PollWait(soon(t), wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, wc[0].Err())
	return wc[0]
}

// dial connects a new RC queue pair of e to a listener of to.
func (e *end) dial(t testing.TB, to *end, at netip.AddrPort, o cm.DialOptions) (*cm.Conn, error) {
	t.Helper()
	o.UDPPort = to.m.Addr().Port()
	return e.m.Dial(soon(t), at, e.newQP(t, verbs.RC), o)
}

// accepted is the result of a request.
type accepted struct {
	conn *cm.Conn
	err  error
}

// acceptOne accepts the next request in another goroutine.
func (e *end) acceptOne(t testing.TB, l *cm.Listener, o cm.AcceptOptions) <-chan accepted {
	t.Helper()
	ch := make(chan accepted, 1)
	ctx := soon(t)
	go func() {
		r, err := l.Accept(ctx)
		if err != nil {
			ch <- accepted{nil, err}
			return
		}
		qp := e.newQP(t, r.Transport)
		conn, err := r.Accept(ctx, qp, o)
		ch <- accepted{conn, err}
	}()
	return ch
}

// connect connects two ends by RC queue pairs.
func connect(t testing.TB, a, b *end, do cm.DialOptions, ao cm.AcceptOptions) (ca, cb *cm.Conn) {
	t.Helper()
	return connectQP(t, a, b, a.newQP(t, verbs.RC), do, ao)
}

// connectQP connects queue pair qp of a to b.
func connectQP(t testing.TB, a, b *end, qp verbs.QP, do cm.DialOptions, ao cm.AcceptOptions) (ca, cb *cm.Conn) {
	t.Helper()
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	defer l.Close()
	ch := b.acceptOne(t, l, ao)
	do.UDPPort = b.m.Addr().Port()
	ca, err = a.m.Dial(soon(t), l.Addr(), qp, do)
	require.NoError(t, err)
	got := <-ch
	require.NoError(t, got.err)
	return ca, got.conn
}

func descriptor(mr verbs.MR) []byte {
	b := binary.BigEndian.AppendUint64(nil, mr.Addr())
	return binary.BigEndian.AppendUint32(b, mr.RKey())
}
