package rnic

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/childtest"
	"github.com/softrnic/softrnic/internal/verbstest"
	"github.com/softrnic/softrnic/internal/wiretest"
	"github.com/softrnic/softrnic/verbs"
)

// TestMain runs the tests, or the child process of a test, and checks that no goroutine remains.
func TestMain(m *testing.M) {
	os.Setenv(EnvLog, "off") // many tests cause failures
	childtest.Serve(new(end).execute)
	wiretest.SkipExceptions("rnic")
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

// end is one side of a test: a device with one object of each kind.
type end struct {
	dev *Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR // 8 MiB, all access
}

// newEnd opens a device with an RC queue pair.
func newEnd(t testing.TB, o Options) *end { return newEndOf(t, o, verbs.RC) }

func newEndOf(t testing.TB, o Options, typ verbs.QPType) *end {
	t.Helper()
	dev, err := Open(o)
	require.NoError(t, err)
	return newEndOn(t, dev, typ)
}

// newEndOn returns an end with an open device, which the end of the test closes.
func newEndOn(t testing.TB, dev *Device, typ verbs.QPType) *end {
	t.Helper()
	t.Cleanup(func() { dev.Close() })
	e := &end{dev: dev}
	var err error
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq = e.newCQ(t, 1024)
	e.qp = e.newQP(t, typ)
	e.mr = e.reg(t, 8<<20, allAccess)
	return e
}

// sizes are the sizes of queue pairs in tests.
var sizes = verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}

func (e *end) newQP(t testing.TB, typ verbs.QPType) verbs.QP {
	t.Helper()
	return e.newQPWith(t, verbs.QPInitAttr{Type: typ})
}

// newQPWith returns a queue pair; attributes that are not set are the end's. Unless SignalAll is
// set only requests with SendSignaled complete.
func (e *end) newQPWith(t testing.TB, a verbs.QPInitAttr) verbs.QP {
	t.Helper()
	a.SelectiveSignaling = !a.SignalAll
	if a.SendCQ == nil {
		a.SendCQ = e.cq
	}
	if a.RecvCQ == nil {
		a.RecvCQ = e.cq
	}
	if a.Cap == (verbs.QPCap{}) {
		a.Cap = sizes
	}
	q, err := e.pd.CreateQP(a)
	require.NoError(t, err)
	return q
}

func (e *end) newCQ(t testing.TB, depth int) verbs.CQ {
	t.Helper()
	c, err := e.dev.CreateCQ(depth)
	require.NoError(t, err)
	return c
}

func (e *end) reg(t testing.TB, n int, access verbs.AccessFlags) verbs.MR {
	t.Helper()
	mr, err := e.pd.RegMR(aligned(n), access)
	require.NoError(t, err)
	return mr
}

// pair returns two devices with an RC connection.
func pair(t testing.TB, o Options) (a, b *end) {
	t.Helper()
	return pairOf(t, o, verbs.RC)
}

// pairOf returns two devices whose queue pairs are connected or, for UD, ready to send and receive.
func pairOf(t testing.TB, o Options, typ verbs.QPType) (a, b *end) {
	t.Helper()
	a, b = newEndOf(t, o, typ), newEndOf(t, o, typ)
	if typ == verbs.UD {
		require.NoError(t, verbs.ActivateUD(a.qp, qkey, 100))
		require.NoError(t, verbs.ActivateUD(b.qp, qkey, 200))
		return a, b
	}
	connect(t, a.dev, a.qp, b.dev, b.qp)
	return a, b
}

// qkey is the Q_Key of datagrams in tests.
const qkey = 0x1234

func connect(t testing.TB, a verbs.Device, qa verbs.QP, b verbs.Device, qb verbs.QP) {
	t.Helper()
	connectWith(t, a, qa, b, qb, verbs.ConnectOptions{})
}

func connectWith(t testing.TB, a verbs.Device, qa verbs.QP, b verbs.Device, qb verbs.QP, o verbs.ConnectOptions) {
	t.Helper()
	connectAt(t, a, qa, 100, b, qb, 0xfffff0, o)
}

// connectAt connects queue pairs, each of which sends from a given PSN on.
func connectAt(t testing.TB, a verbs.Device, qa verbs.QP, psnA uint32, b verbs.Device, qb verbs.QP, psnB uint32, o verbs.ConnectOptions) {
	t.Helper()
	ea, err := verbs.LocalEndpoint(a, qa, psnA)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b, qb, psnB)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(qa, ea, eb, o))
	require.NoError(t, verbs.Connect(qb, eb, ea, o))
}

// handle returns an address handle from e to a peer's device.
func (e *end) handle(t testing.TB, to *Device) verbs.AH {
	t.Helper()
	port, err := to.QueryPort(1)
	require.NoError(t, err)
	gid, err := to.QueryGID(1, 0)
	require.NoError(t, err)
	ah, err := e.pd.CreateAH(verbs.AHAttr{DGID: gid.GID, UDPPort: port.UDPPort})
	require.NoError(t, err)
	return ah
}

// connectPeers makes two UD queue pairs RDMA peers, and returns the handle of b for a.
func connectPeers(t testing.TB, a, b *end) verbs.PeerAH {
	t.Helper()
	toB, toA := a.peer(t, b), b.peer(t, a)
	require.NoError(t, toB.Connect(toA.Token()))
	require.NoError(t, toA.Connect(toB.Token()))
	return toB
}

// peer returns the handle of an RDMA peer of e's UD queue pair.
func (e *end) peer(t testing.TB, other *end) verbs.PeerAH {
	attr := e.handle(t, other.dev).Attr()
	h, err := e.qp.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: attr, QPN: other.qp.Num(), Access: verbs.AccessRemote})
	require.NoError(t, err)
	return h
}

// post posts one signaled request.
func (e *end) post(t testing.TB, wr verbs.SendWR) {
	t.Helper()
	wr.Flags |= verbs.SendSignaled
	_, err := e.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
}

// recv posts one receive of n bytes at offset off.
func (e *end) recv(t testing.TB, id uint64, off, n int) {
	t.Helper()
	_, err := e.qp.PostRecv([]verbs.RecvWR{{WRID: id, SGList: []verbs.SGE{e.mr.SGE(off, n)}}})
	require.NoError(t, err)
}

// poll1 waits for one successful completion.
func (e *end) poll1(t testing.TB) verbs.WC {
	t.Helper()
	wc := e.next(t)
	require.NoError(t, wc.Err())
	return wc
}

// next waits for one completion of any status.
func (e *end) next(t testing.TB) verbs.WC {
	t.Helper()
	return nextOf(t, e.cq)
}

func nextOf(t testing.TB, c verbs.CQ) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := c.PollWait(ctx, wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	return wc[0]
}

// fails waits for a completion with a status and with words of its text.
func (e *end) fails(t testing.TB, status verbs.WCStatus, says string) {
	t.Helper()
	wc := e.next(t)
	require.Equal(t, status, wc.Status, wc.Err())
	require.ErrorContains(t, wc.Err(), says)
}

// writeTo returns a write of n bytes to the start of a region of the peer.
func writeTo(a *end, mr verbs.MR, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: mr.Addr(), RKey: mr.RKey()}
}

// atomicTo returns a fetch-and-add of 1 to the peer's memory at offset off.
func atomicTo(a, b *end, off int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr() + uint64(off),
		RKey: b.mr.RKey(), CompareAdd: 1}
}

// newQPInState modifies a new queue pair to a state.
func (e *end) newQPInState(t testing.TB, typ verbs.QPType, s verbs.QPState) verbs.QP {
	t.Helper()
	q := e.newQP(t, typ)
	verbstest.ModifyToState(t, q, s, e.dev.Addr())
	return q
}

// checkTransfers writes, reads and sends n bytes between a and b.
func checkTransfers(t testing.TB, a, b *end, n int, seed uint64) {
	t.Helper()
	verbstest.CheckTransfers(t, verbstest.Side{CQ: a.cq, QP: a.qp, MR: a.mr}, verbstest.Side{CQ: b.cq, QP: b.qp, MR: b.mr}, n, seed)
}

// event waits for an asynchronous event of a type and skips others.
func (e *end) event(t testing.TB, typ verbs.EventType) verbs.AsyncEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		ev, err := e.dev.AsyncEvent(ctx)
		require.NoError(t, err, "waiting for %v", typ)
		if ev.Type == typ {
			return ev
		}
	}
}

// needShards skips a test if devices cannot have several shards.
func needShards(t testing.TB) {
	if runtime.GOOS != "linux" || strings.Contains(os.Getenv(EnvLink), "portable") {
		t.Skip("several shards need the fast path of Linux")
	}
}

// fill writes bytes that depend on the seed.
func fill(b []byte, seed uint64) {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	rand.NewChaCha8(key).Read(b)
}
