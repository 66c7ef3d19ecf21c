package verbstest

import (
	"context"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// patience is the time that most tests wait for an expected event.
const patience = time.Minute

// patience returns the time that a test waits for an expected event: short for one that must fail.
func (t *T) patience() time.Duration {
	if t.except != nil && t.except.Fails != "" {
		return time.Second
	}
	return patience
}

// soon returns a context that ends after the test's patience.
func soon(t *T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), t.patience())
	t.Cleanup(cancel)
	return ctx
}

const allAccess = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessMWBind

// qkey is the Q_Key of datagrams in tests.
const qkey = 0x1234

// sizes are the sizes of queue pairs in tests.
var sizes = verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}

// empty and recv0 are a message without data and a receive for it.
var (
	empty = []verbs.SendWR{{WRID: 7, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}}
	recv0 = []verbs.RecvWR{{WRID: 8}}
)

// end is one side of a test: a device with one object of each kind.
type end struct {
	dev verbs.Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR // 8 MiB, all access
}

// newEnd opens a device with an RC queue pair.
func newEnd(t *T) *end { return newEndOf(t, verbs.RC) }

func newEndOf(t *T, typ verbs.QPType) *end {
	t.Helper()
	e := &end{dev: t.device.Open(t)}
	t.Cleanup(func() { e.dev.Close() })
	var err error
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq = e.newCQ(t, 1024)
	e.qp = e.newQP(t, typ)
	e.mr = e.reg(t, 8<<20, allAccess)
	return e
}

func (e *end) newQP(t *T, typ verbs.QPType) verbs.QP {
	t.Helper()
	return e.newQPWith(t, verbs.QPInitAttr{Type: typ})
}

// newQPWith returns a queue pair; attributes that are not set are the end's. Unless SignalAll is
// set only requests with SendSignaled complete.
func (e *end) newQPWith(t *T, a verbs.QPInitAttr) verbs.QP {
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

func (e *end) newCQ(t *T, depth int) verbs.CQ {
	t.Helper()
	c, err := e.dev.CreateCQ(depth)
	require.NoError(t, err)
	return c
}

func (e *end) reg(t *T, n int, access verbs.AccessFlags) verbs.MR {
	t.Helper()
	mr, err := e.pd.RegMR(aligned(n), access)
	require.NoError(t, err)
	return mr
}

// aligned returns memory whose address is a multiple of 8.
func aligned(n int) []byte {
	b := make([]byte, n+8)
	return b[-uintptr(unsafe.Pointer(&b[0]))&7:][:n:n]
}

// pair returns two devices with an RC connection.
func pair(t *T) (a, b *end) {
	t.Helper()
	return pairOf(t, verbs.RC)
}

// pairOf returns two devices whose queue pairs are connected or, for UD, ready to send and receive.
func pairOf(t *T, typ verbs.QPType) (a, b *end) {
	t.Helper()
	a, b = newEndOf(t, typ), newEndOf(t, typ)
	if typ == verbs.UD {
		require.NoError(t, verbs.ActivateUD(a.qp, qkey, 100))
		require.NoError(t, verbs.ActivateUD(b.qp, qkey, 200))
		return a, b
	}
	connect(t, a.dev, a.qp, b.dev, b.qp)
	return a, b
}

func connect(t *T, a verbs.Device, qa verbs.QP, b verbs.Device, qb verbs.QP) {
	t.Helper()
	connectWith(t, a, qa, b, qb, verbs.ConnectOptions{})
}

func connectWith(t *T, a verbs.Device, qa verbs.QP, b verbs.Device, qb verbs.QP, o verbs.ConnectOptions) {
	t.Helper()
	connectAt(t, a, qa, 100, b, qb, 0xfffff0, o)
}

// connectAt connects queue pairs, each of which sends from a given PSN on.
func connectAt(t *T, a verbs.Device, qa verbs.QP, psnA uint32, b verbs.Device, qb verbs.QP, psnB uint32, o verbs.ConnectOptions) {
	t.Helper()
	ea, err := verbs.LocalEndpoint(a, qa, psnA)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b, qb, psnB)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(qa, ea, eb, o))
	require.NoError(t, verbs.Connect(qb, eb, ea, o))
}

// handle returns an address handle from e to a peer's device.
func (e *end) handle(t *T, to verbs.Device) verbs.AH {
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
func connectPeers(t *T, a, b *end) verbs.PeerAH {
	t.Helper()
	toB, toA := a.peer(t, b), b.peer(t, a)
	require.NoError(t, toB.Connect(toA.Token()))
	require.NoError(t, toA.Connect(toB.Token()))
	return toB
}

// peer returns the handle of an RDMA peer of e's UD queue pair.
func (e *end) peer(t *T, other *end) verbs.PeerAH {
	attr := e.handle(t, other.dev).Attr()
	h, err := e.qp.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: attr, QPN: other.qp.Num(), Access: verbs.AccessRemote})
	require.NoError(t, err)
	return h
}

// post posts one signaled request.
func (e *end) post(t *T, wr verbs.SendWR) {
	t.Helper()
	wr.Flags |= verbs.SendSignaled
	_, err := e.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
}

// recv posts one receive of n bytes at offset off.
func (e *end) recv(t *T, id uint64, off, n int) {
	t.Helper()
	_, err := e.qp.PostRecv([]verbs.RecvWR{{WRID: id, SGList: []verbs.SGE{e.mr.SGE(off, n)}}})
	require.NoError(t, err)
}

// poll1 waits for one successful completion.
func (e *end) poll1(t *T) verbs.WC {
	t.Helper()
	wc := e.next(t)
	require.NoError(t, wc.Err())
	return wc
}

// next waits for one completion of any status.
func (e *end) next(t *T) verbs.WC {
	t.Helper()
	return nextOf(t, e.cq)
}

func nextOf(t *T, c verbs.CQ) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	ctx, cancel := context.WithTimeout(context.Background(), t.patience())
	defer cancel()
	n, err := c.PollWait(ctx, wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	return wc[0]
}

// fails waits for a completion with a status and with words of its text.
func (e *end) fails(t *T, status verbs.WCStatus, says string) {
	t.Helper()
	wc := e.next(t)
	require.Equal(t, t.status(status), wc.Status, wc.Err())
	t.explains(wc.Err(), says)
}

// event waits for an asynchronous event of a type and skips others.
func (e *end) event(t *T, typ verbs.EventType) verbs.AsyncEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), t.patience())
	defer cancel()
	for {
		ev, err := e.dev.AsyncEvent(ctx)
		require.NoError(t, err, "waiting for %v", typ)
		if ev.Type == typ {
			return ev
		}
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
