package rnic

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// gib transfers one message of 1 GiB.
func gib(t *testing.T, op verbs.WROpcode) {
	if testing.Short() {
		t.Skip("needs 2 GiB of memory")
	}
	const n = 1 << 30
	a, b := pair(t, Options{})
	a.mr, b.mr = a.reg(t, n, allAccess), b.reg(t, n, allAccess)
	from, to := a.mr.Bytes(), b.mr.Bytes()
	if op == verbs.WRRDMARead {
		from, to = to, from
	}
	fill(from, 1)
	a.post(t, verbs.SendWR{Opcode: op, SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	require.EqualValues(t, n, a.poll1(t).ByteLen)
	require.Equal(t, verbs.StateRTS, b.qp.State()) // and the engine of b is done
	require.True(t, bytes.Equal(from, to))
}

func TestGiBWrite(t *testing.T) { gib(t, verbs.WRRDMAWrite) }
func TestGiBRead(t *testing.T)  { gib(t, verbs.WRRDMARead) }

// TestMessageLimit checks that a message has at most 2^31 bytes, also as a list of shorter
// elements.
func TestMessageLimit(t *testing.T) {
	a, b := pair(t, Options{})
	half := verbs.SGE{Addr: a.mr.Addr(), Length: 1 << 30, LKey: a.mr.LKey()}
	for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRRDMAWrite, verbs.WRRDMARead} {
		_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: op, SGList: []verbs.SGE{half, half, a.mr.SGE(0, 1)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
		require.ErrorIs(t, err, verbs.ErrLimit)
		require.ErrorContains(t, err, fmt.Sprintf("message of %d bytes, limit %d", uint64(qp.MaxMessage+1), uint64(qp.MaxMessage)))
	}
	whole := a.mr.SGE(0, -1)
	_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{whole, whole, whole, whole}}})
	require.ErrorIs(t, err, verbs.ErrLimit, "the sum does not overflow")
}

// crowd is a device with many queue pairs, each connected to its neighbour.
type crowd struct {
	*end
	qps []verbs.QP
}

func newCrowd(t *testing.T, n int, o Options, co verbs.ConnectOptions) *crowd {
	c := &crowd{end: newEnd(t, o)}
	c.cq = c.newCQ(t, 4*n)
	local, err := verbs.LocalEndpoint(c.dev, c.qp, 7)
	require.NoError(t, err)
	for range n {
		c.qps = append(c.qps, c.newQP(t, verbs.RC))
	}
	for i, q := range c.qps {
		here, there := local, local
		here.QPN, there.QPN = q.Num(), c.qps[i^1].Num()
		require.NoError(t, verbs.Connect(q, here, there, co))
	}
	return c
}

// sendToNeighbours sends a message from every queue pair to its neighbour at once.
func (c *crowd) sendToNeighbours(t *testing.T) {
	for _, q := range c.qps {
		_, err := q.PostRecv(recv0)
		require.NoError(t, err)
		_, err = q.PostSend(empty)
		require.NoError(t, err)
	}
	got := make([]verbs.WC, 64)
	ctx := soon(t)
	for left := 2 * len(c.qps); left > 0; {
		n, err := c.cq.PollWait(ctx, got)
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, got[i].Err())
		}
		left -= n
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestTenThousandQPs measures the memory of a connected idle queue pair, before and after use, and
// has all of them send.
func TestTenThousandQPs(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	before := heapBytes()
	c := newCrowd(t, n, Options{}, verbs.ConnectOptions{AckTimeout: time.Second}) // long: all of them send at once
	fresh := int(heapBytes()-before) / n
	c.sendToNeighbours(t)
	used := int(heapBytes()-before) / n
	runtime.KeepAlive(c)
	t.Logf("an idle connected queue pair takes %d bytes, %d after a message each way", fresh, used)
	if n == 10_000 { // with few, the device itself dominates
		require.LessOrEqual(t, used, 4096)
	}

	numbers := map[uint32]bool{}
	for _, q := range c.qps {
		require.False(t, numbers[q.Num()])
		require.GreaterOrEqual(t, q.Num(), uint32(16))
		require.Less(t, q.Num(), uint32(0xffffff))
		numbers[q.Num()] = true
	}
	require.NoError(t, c.dev.Close())
}

// TestTimersOfManyQPs loses packets of many queue pairs at once. All of them recover by their
// timers.
func TestTimersOfManyQPs(t *testing.T) {
	c := newCrowd(t, 1000, Options{Impair: "loss 10% seed 5"}, verbs.ConnectOptions{AckTimeout: 500 * time.Millisecond}) // long, for a busy machine
	for range 3 {
		c.sendToNeighbours(t)
	}
	st := c.dev.Stats()
	require.NotZero(t, st.Counters.Timeouts+st.Counters.Probes)
	var wg sync.WaitGroup
	for _, q := range c.qps {
		wg.Go(func() { assert.NoError(t, q.Close()) })
	}
	wg.Wait()
	c.dev.shards[0].mu.Lock()
	defer c.dev.shards[0].mu.Unlock()
	require.Zero(t, c.dev.shards[0].timers.Len(), "destroyed queue pairs leave no timer behind")
	require.Zero(t, c.dev.nextDeadline())
}
