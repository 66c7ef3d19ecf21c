package ud_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// crowd simulates all ranks but 0 on one queue pair. Each has an epoch of its own, by which
// datagrams are dispatched.
type crowd struct {
	t     testing.TB
	dev   *rnic.Device
	pd    verbs.PD
	cq    verbs.CQ
	qp    verbs.QP
	mr    verbs.MR
	at    netip.AddrPort
	ranks []*nack.Core // rank 1 is the first
	sent  []uint32     // messages sent, by rank
	hub   struct {
		ah        verbs.AH
		qpn, qkey uint32
		epoch     uint32
	}
}

const (
	crowdQKey     = 0x1234
	crowdReceives = 256
	crowdSize     = 40 + 4096
)

func newCrowd(t testing.TB, n int) *crowd {
	c := &crowd{t: t}
	var err error
	must := func(err error) { require.NoError(t, err) }
	c.dev, err = rnic.Open(rnic.Options{})
	must(err)
	t.Cleanup(func() { c.dev.Close() })
	c.pd, err = c.dev.AllocPD()
	must(err)
	c.cq, err = c.dev.CreateCQ(2 * crowdReceives)
	must(err)
	c.qp, err = c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: c.cq, RecvCQ: c.cq,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: crowdReceives, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 256}})
	must(err)
	must(c.qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: crowdQKey}, verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey))
	c.mr, err = c.pd.RegMR(make([]byte, crowdReceives*crowdSize), verbs.AccessLocalWrite)
	must(err)
	for i := range crowdReceives {
		c.receive(i)
	}
	must(c.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
	must(c.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN))
	gid, err := c.dev.QueryGID(1, 0)
	must(err)
	port, err := c.dev.QueryPort(1)
	must(err)
	c.at = netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort)
	c.sent = make([]uint32, n)
	mem := make([]byte, n*nack.MemorySize(2, 4096))
	for i := range n {
		c.ranks = append(c.ranks, nack.New(nack.Options{Self: uint32(i + 1), Peers: 1, Epoch: uint32(i + 1), MTU: 4096, Slots: 2, Memory: mem[i*nack.MemorySize(2, 4096):]}))
	}
	return c
}

func (c *crowd) receive(i int) {
	_, err := c.qp.PostRecv([]verbs.RecvWR{{WRID: uint64(i), SGList: []verbs.SGE{c.mr.SGE(i*crowdSize, crowdSize)}}})
	require.NoError(c.t, err)
}

// entry returns the published value of a rank of the crowd.
func (c *crowd) entry(key string) (string, error) {
	rank, err := strconv.Atoi(strings.TrimPrefix(key, "ud-"))
	return fmt.Sprintf("%v/%x/%x/%x/4096", c.at, c.qp.Num(), crowdQKey, rank), err
}

// connect connects the crowd to rank 0.
func (c *crowd) connect(address string) {
	f := strings.Split(address, "/")
	at := netip.MustParseAddrPort(f[0])
	var err error
	c.hub.ah, err = c.pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(at.Addr()), UDPPort: at.Port()})
	require.NoError(c.t, err)
	_, err = fmt.Sscanf(f[1]+" "+f[2]+" "+f[3], "%x %x %x", &c.hub.qpn, &c.hub.qkey, &c.hub.epoch)
	require.NoError(c.t, err)
	for _, r := range c.ranks {
		r.OpenPeer(1, 0, nack.Peer{Epoch: c.hub.epoch})
	}
}

// replyTo replies to n messages with one message each.
func (c *crowd) replyTo(ctx context.Context, n int) {
	wcs := make([]verbs.WC, 32)
	for n > 0 {
		k, err := c.cq.PollWait(ctx, wcs)
		require.NoError(c.t, err)
		for _, wc := range wcs[:k] {
			if !wc.Opcode.IsRecv() {
				continue
			}
			i := int(wc.WRID)
			var h nack.Header
			b := c.mr.Bytes()[i*crowdSize+40 : i*crowdSize+int(wc.ByteLen)]
			require.True(c.t, h.Parse(b))
			core := c.ranks[h.To-1]
			core.HandlePacket(1, 0, b, func(m []byte) {
				n--
				reply := make([]byte, envelope.Size+8)
				(&envelope.Header{Kind: envelope.Eager, Length: 8, Bytes: 8, Source: h.To, Seq: c.sent[h.To-1]}).MarshalTo(reply)
				c.sent[h.To-1]++
				require.NoError(c.t, core.Send(1, 0, reply, nil))
			})
			c.drain(core)
			c.receive(i)
		}
	}
}

func (c *crowd) drain(core *nack.Core) {
	var out [4]nack.Packet
	for i := range out[:core.Drain(1, out[:])] {
		c.post(out[i].Bytes)
		core.ReleaseSlot(out[i].Slot)
	}
}

func (c *crowd) post(b []byte) {
	_, err := c.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline | verbs.SendSignaled, InlineData: b, AH: c.hub.ah, RemoteQPN: c.hub.qpn, RemoteQKey: c.hub.qkey}})
	require.NoError(c.t, err)
}

// request is a request that an engine can wait for.
type request struct{ protocol.Request }

func (r *request) Ready() bool { return r.Done }

// hub starts rank 0 of a job with a crowd.
func hub(t *testing.T, c *crowd) *engine.Engine {
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	b := &book{size: len(c.ranks) + 1, entry: c.entry}
	e, err := engine.New(0, b.size, func(h fabric.Host) (fabric.Fabric, error) {
		return ud.New(dev, h, b, ud.Options{Receives: 128, Packets: 64})
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close(context.Background()))
		require.NoError(t, dev.Close())
	})
	c.connect(b.mine())
	return e
}

// exchangeMessages has rank 0 and some ranks of the crowd exchange a message in each direction.
func (c *crowd) exchangeMessages(ctx context.Context, e *engine.Engine, ranks ...int) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.replyTo(ctx, len(ranks))
	}()
	body, got := make([]byte, 100), make([]byte, 8)
	for _, rank := range ranks {
		out := &request{protocol.Request{Dest: rank, Buf: body}}
		in := &request{protocol.Request{Envelope: match.Envelope{Source: int32(rank)}, Buf: got}}
		require.NoError(c.t, e.Receive(&in.Request))
		require.NoError(c.t, e.Send(&out.Request))
		for _, r := range []*request{out, in} {
			require.NoError(c.t, e.Wait(ctx, r))
			require.NoError(c.t, r.Err)
		}
	}
	<-over
}

func (c *crowd) allRanks() (ranks []int) {
	for i := range c.ranks {
		ranks = append(ranks, i+1)
	}
	return ranks
}

// stats returns the counters of an engine's fabric.
func stats(e *engine.Engine) (s fabric.Stats) {
	e.Do(func(*protocol.Core) { s = e.Fabric().Stats() })
	return s
}

// stateFailed returns the reason why a rank is lost, nil if it is not.
func stateFailed(e *engine.Engine, rank int) (why error) {
	e.Do(func(c *protocol.Core) { why = c.PeerError(rank) })
	return why
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryPerRank checks that a thousand ranks that rank 0 has exchanged messages with need
// at most 2 KiB each there, and share a queue pair, its receives and an address handle.
func TestMemoryPerRank(t *testing.T) {
	const n, limit = 1000, 2 << 10
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCrowd(t, n)
	e := hub(t, c)
	c.exchangeMessages(ctx, e, c.allRanks()...) // all buffers at both ends have grown, except those for each rank
	before := heap()
	require.EqualValues(t, 1, stats(e).AddressHandles)
	more := newCrowd(t, n)
	fixed := heap() - before // of a crowd without messages
	e2 := hub(t, more)
	more.exchangeMessages(ctx, e2, 1)
	one := heap() - before - fixed
	more.exchangeMessages(ctx, e2, more.allRanks()...)
	all := heap() - before - fixed
	t.Logf("%d KiB with 1 rank, %d KiB with %d: %d bytes a rank at both ends together", one>>10, all>>10, n, (all-one)/n)
	require.LessOrEqual(t, (all-one)/n, int64(limit))
	runtime.KeepAlive(more)
}

// TestForeignDatagrams checks that datagrams from other senders than ranks, with a false source, or with
// malformed packets, are dropped and counted, without further effect.
func TestForeignDatagrams(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCrowd(t, 3)
	e := hub(t, c)
	good := func(from uint32) []byte {
		b := make([]byte, nack.FeedbackSize)
		return b[:(&nack.Header{Kind: nack.Ack, From: from, Epoch: from, To: c.hub.epoch}).Put(b)]
	}
	liar := newCrowd(t, 1)
	liar.hub, liar.hub.ah = c.hub, nil
	var err error
	liar.hub.ah, err = liar.pd.CreateAH(c.hub.ah.Attr())
	require.NoError(t, err)
	c.exchangeMessages(ctx, e, c.allRanks()...)
	liar.post(good(1)) // the right Q_Key from another queue pair (almost surely with another number)
	c.post(good(0))    // rank 0 itself
	c.post(good(4))    // a rank that does not exist
	c.post([]byte("x"))
	c.post(make([]byte, 40)) // of rank 0
	c.post(append([]byte{0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 60)...))
	liar.hub.qkey++
	liar.post(good(1)) // which the device drops
	c.exchangeMessages(ctx, e, c.allRanks()...)
	s := stats(e)
	strangers := uint64(5)
	if liar.qp.Num() == c.qp.Num() {
		strangers-- // with equal numbers they cannot be distinguished
	}
	require.Equal(t, []uint64{strangers, 1}, []uint64{s.UnknownSenders, s.Drops["malformed"]})
	for rank := 1; rank <= 3; rank++ {
		require.NoError(t, stateFailed(e, rank))
	}
}

// TestBadRanks checks that a rank that sends a malformed packet, or has restarted, is disconnected.
func TestBadRanks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCrowd(t, 3)
	e := hub(t, c)
	c.exchangeMessages(ctx, e, c.allRanks()...)
	wrong := make([]byte, envelope.Size)
	(&envelope.Header{Kind: envelope.Eager, Source: 3}).MarshalTo(wrong) // the source of another rank
	require.NoError(t, c.ranks[0].Send(1, 0, wrong, nil))
	c.drain(c.ranks[0])
	b := make([]byte, nack.FeedbackSize)
	c.post(b[:(&nack.Header{Kind: nack.Hello, From: 2, Epoch: 9}).Put(b)])
	c.exchangeMessages(ctx, e, 3)
	require.ErrorIs(t, stateFailed(e, 1), envelope.ErrMalformed)
	require.ErrorContains(t, stateFailed(e, 2), "peer restarted")
	require.NoError(t, stateFailed(e, 3))
}

// TestConnectAll checks that the entries of all ranks can be read at the start, and that an invalid
// entry is an error that names the rank.
func TestConnectAll(t *testing.T) {
	c := newCrowd(t, 3)
	e := hub(t, c)
	require.NoError(t, e.Fabric().ConnectAll(context.Background()))
	c.exchangeMessages(context.Background(), e, c.allRanks()...)

	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	defer dev.Close()
	b := &book{size: 2, entry: func(string) (string, error) { return "nowhere", nil }}
	e, err = engine.New(0, 2, func(h fabric.Host) (fabric.Fabric, error) { return ud.New(dev, h, b, ud.Options{}) })
	require.NoError(t, err)
	require.ErrorContains(t, e.Fabric().ConnectAll(context.Background()), `rank 1: malformed rank address "nowhere"`)
	out := &request{protocol.Request{Dest: 1, Buf: make([]byte, 10)}}
	require.NoError(t, e.Send(&out.Request))
	require.NoError(t, e.Wait(context.Background(), out))
	require.ErrorIs(t, out.Err, protocol.ErrLost)
	require.ErrorContains(t, out.Err, "address lookup")
	require.NoError(t, e.Close(context.Background()))
}
