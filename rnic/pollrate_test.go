package rnic

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
)

// A rhythm is the activity of a target's program while its peer reads from its memory.
type rhythm struct {
	name string
	rare bool                           // it polls so rarely that the service handles all packets
	run  func(e *end, over func() bool) // until over
}

// pollEvery polls in bursts with a pause in between.
func pollEvery(looks int, pause time.Duration) func(*end, func() bool) {
	return func(e *end, over func() bool) {
		for !over() {
			pollTimes(e, looks)
			time.Sleep(pause)
		}
	}
}

func pollTimes(e *end, n int) {
	var wc [1]verbs.WC
	for range n {
		if _, err := e.cq.Poll(wc[:]); err != nil {
			panic(err)
		}
	}
}

// pollBusily polls at intervals without sleeping in between.
func pollBusily(gap time.Duration) func(*end, func() bool) {
	return func(e *end, over func() bool) {
		for !over() {
			pollTimes(e, 1)
			for began := time.Now(); time.Since(began) < gap; {
				runtime.Gosched()
			}
		}
	}
}

var rhythms = []rhythm{
	{"never", true, func(*end, func() bool) {}},
	{"always", false, pollBusily(0)},
	{"10us", false, pollBusily(10 * time.Microsecond)},
	{"100us", true, pollBusily(100 * time.Microsecond)},
	{"1ms", true, pollEvery(1, time.Millisecond)},
	{"10ms", true, pollEvery(1, 10*time.Millisecond)},
	{"100ms", true, pollEvery(1, 100*time.Millisecond)},
	{"4_looks_each_ms", true, pollEvery(4, time.Millisecond)},
	{"500_looks_each_ms", false, pollEvery(500, time.Millisecond)},
	{"20000_looks_each_10ms", false, pollEvery(20000, 10*time.Millisecond)},
	{"PollWait", false, func(e *end, over func() bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			for !over() {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		_, _ = e.cq.PollWait(ctx, make([]verbs.WC, 1))
	}},
	{"PollWait_of_0.1ms_each_ms", false, func(e *end, over func() bool) {
		for !over() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
			_, _ = e.cq.PollWait(ctx, make([]verbs.WC, 1))
			cancel()
			time.Sleep(time.Millisecond)
		}
	}},
}

// A readCounter is a link that counts its reads.
type readCounter struct {
	link.Conn
	token           *token
	served, packets atomic.Uint64 // packets that the service has read, and all
	others          atomic.Uint64 // reads of others
}

// countReads counts the reads of the socket of s from now on.
func countReads(s *shard) *readCounter {
	c := &readCounter{token: &s.token}
	s.replaceConn(func(conn link.Conn) link.Conn { c.Conn = conn; return c })
	return c
}

// ReadBatch implements link.Conn.
func (c *readCounter) ReadBatch(r *link.Datagrams) (int, error) {
	n, err := c.Conn.ReadBatch(r)
	packets := uint64(0)
	for i := range n {
		packets += uint64(r.Msgs()[i].Count())
	}
	if c.token.isServing() {
		c.served.Add(packets)
	} else {
		c.others.Add(1)
	}
	c.packets.Add(packets)
	return n, err
}

// readBeside reads n times from b, whose program has the rhythm, and returns the durations, and how
// many packets reached b and how many of them its service read.
func readBeside(t testing.TB, r rhythm, n int) (took []time.Duration, packets, served uint64) {
	a, b := pair(t, Options{})
	s := b.dev.shards[0]
	reads := countReads(s)
	awaitService(s)
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(b, over.Load)
	}()
	wc := make([]verbs.WC, 1)
	for range n {
		began := time.Now()
		_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
		require.NoError(t, err)
		for k := 0; k == 0; {
			k, err = a.cq.Poll(wc)
			require.NoError(t, err)
		}
		require.Equal(t, verbs.WCSuccess, wc[0].Status)
		took = append(took, time.Since(began))
	}
	packets = reads.packets.Load()
	served = reads.served.Load()
	over.Store(true)
	<-ended
	return took, packets, served
}

func awaitService(s *shard) {
	for !s.token.isServing() {
		runtime.Gosched()
	}
}

// TestPacketsDoNotWaitForPolls checks that packets to a program that polls at any intervals are
// read by the service and do not wait for the program's next poll.
func TestPacketsDoNotWaitForPolls(t *testing.T) {
	for _, r := range rhythms {
		t.Run(r.name, func(t *testing.T) {
			_, packets, served := readBeside(t, r, 30)
			require.GreaterOrEqual(t, packets, uint64(30))
			if r.rare {
				require.GreaterOrEqual(t, served+1, packets, "a poll may find the token free")
			}
		})
	}
}

// TestServiceStaysBesideRarePolls checks that neither the service nor a leader leaves the socket
// for an occasional poll.
func TestServiceStaysBesideRarePolls(t *testing.T) {
	e := newEnd(t, Options{})
	s := e.dev.shards[0]
	reads := countReads(s)
	awaitService(s)
	for range 30 {
		pollTimes(e, claimPolls-1)
		time.Sleep(2 * claimWindow)
	}
	require.True(t, s.token.isServing())
	require.Zero(t, reads.others.Load())

	for s.token.isServing() { // a frequent poller gets the socket
		pollTimes(e, 1)
	}
	pollTimes(e, 20_000) // and the service returns although occasional polls continue
	for !s.token.isServing() {
		pollTimes(e, 1)
		time.Sleep(300 * time.Microsecond)
	}

	other := e.newCQ(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = other.PollWait(ctx, make([]verbs.WC, 1))
	}()
	for s.leader.Load() != other.(*completionQueue) || !s.token.isAsleep() {
		runtime.Gosched()
	}
	for range 30 {
		pollTimes(e, claimPolls-1)
		time.Sleep(2 * claimWindow)
	}
	require.Equal(t, other, verbs.CQ(s.leader.Load()), "a waiter keeps the socket beside rare looks")
	cancel()
	<-ended
}

// BenchmarkReadBesideProgram reads 8 bytes from a target whose program has a rhythm.
func BenchmarkReadBesideProgram(b *testing.B) {
	hog := rhythm{"all_processors_computing", false, func(_ *end, over func() bool) {
		var sum atomic.Int64
		for range runtime.GOMAXPROCS(0) - 1 {
			go func() {
				for !over() {
					sum.Add(1)
				}
			}()
		}
		for !over() {
			sum.Add(1)
		}
	}}
	for _, r := range append(slices.Clone(rhythms), hog) {
		b.Run(r.name, func(b *testing.B) {
			took, packets, served := readBeside(b, r, max(b.N, 10))
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
			b.ReportMetric(100*float64(served)/float64(max(packets, 1)), "%service")
		})
	}
}
