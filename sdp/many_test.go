package sdp_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestManyConnections opens thousands of connections between two devices, all idle except one in a
// hundred. Each end has a bounded share of the memory, and all still work afterwards.
func TestManyConnections(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  sdp.Options
		conns    int
		heap     uint64 // maximum bytes of an end
		resident uint64 // maximum bytes of it in use
	}{
		{"default", sdp.Options{}, 1000, 32 << 10, 96 << 10},
		{"small", sdp.Options{Buffers: 2, BufferBytes: 1 << 10, Queue: 4, Receives: 8}, 10_000, 24 << 10, 32 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			conns := c.conns
			if testing.Short() || racesync.Enabled {
				conns /= 20
			}
			e := newEnds(t, rnic.Options{}, c.options)
			heap, resident := memory(t)
			as, bs := e.dialMany(t, conns)
			h, r := memory(t)
			ends := uint64(2 * conns)
			h, r = (h-min(h, heap))/ends, (r-min(r, resident))/ends
			t.Logf("%d connections: an end has %d bytes, %d of them resident", conns, h, r)
			if !racesync.Enabled {
				rest := uint64(0) // fixed costs, which dominate between few
				if conns < c.conns {
					rest = 1 << 20 / ends
				}
				require.Less(t, h, c.heap+rest)
				require.Less(t, r, c.resident+rest)
			}

			for i := 0; i < conns; i += 100 { // some are active
				pingPong(t, as[i], bs[i], 1000)
			}
			var all sync.WaitGroup // and all are unchanged
			room := make(chan struct{}, 16)
			for i := range conns {
				room <- struct{}{}
				all.Go(func() {
					pingPong(t, as[i], bs[i], 1+i%100)
					<-room
				})
			}
			all.Wait()
		})
	}
}

// dialMany opens connections, many at a time.
func (e *ends) dialMany(t *testing.T, n int) (as, bs []*sdp.Conn) {
	t.Helper()
	as, bs = make([]*sdp.Conn, n), make([]*sdp.Conn, n)
	accepted := make(map[string]*sdp.Conn, n)
	done := make(chan error, 1)
	go func() {
		for range n {
			c, err := e.l.AcceptSDP()
			if err != nil {
				done <- err
				return
			}
			accepted[c.RemoteAddr().String()] = c
		}
		done <- nil
	}()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	var all sync.WaitGroup
	room := make(chan struct{}, 16)
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			var err error
			if as[i], err = e.a.DialAddr(ctx, e.addr(), sdp.Dialer{UDPPort: e.port}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	require.NoError(t, <-done)
	for i, a := range as {
		bs[i] = accepted[a.LocalAddr().String()]
		require.NotNil(t, bs[i], "%v", a.LocalAddr())
	}
	return as, bs
}

// pingPong sends n bytes there and back.
func pingPong(t *testing.T, a, b *sdp.Conn, n int) {
	p, q := make([]byte, n), make([]byte, n)
	for i := range p {
		p[i] = byte(i * n)
	}
	for _, c := range [][2]*sdp.Conn{{a, b}, {b, a}} {
		if _, err := c[0].Write(p); err != nil {
			t.Error(err)
			return
		}
		if _, err := io.ReadFull(c[1], q); err != nil || string(p) != string(q) {
			t.Errorf("%d bytes: %v", n, err)
			return
		}
	}
}

// memory returns the memory of the process: the heap, and the resident memory (0 where unknown).
func memory(t *testing.T) (heap, resident uint64) {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		resident, err = strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
		require.NoError(t, err)
	}
	return m.HeapAlloc + m.StackInuse, resident * uint64(os.Getpagesize())
}

// TestClosedConnectionsAreFreed checks that closed connections use no memory.
func TestClosedConnectionsAreFreed(t *testing.T) {
	const conns = 200
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	round := func() {
		a, b := e.pair(t)
		pingPong(t, a, b, 100)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
	round()
	require.NoError(t, e.a.Drain(ctx))
	require.NoError(t, e.b.Drain(ctx))
	before, _ := memory(t)
	for range conns {
		round()
	}
	require.NoError(t, e.a.Drain(ctx))
	require.NoError(t, e.b.Drain(ctx))
	// Goroutines may still be ending.
	require.Eventually(t, func() bool {
		after, _ := memory(t)
		each := (after - min(after, before)) / (2 * conns)
		t.Logf("an end that was leaves %d bytes", each)
		return each < 16<<10
	}, hang, 10*time.Millisecond)
}

// TestDialsOneAfterTheOther opens connections in sequence as fast as possible, with reused ports.
func TestDialsOneAfterTheOther(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{Buffers: 2, BufferBytes: 1 << 10, Queue: 4, Receives: 8})
	n := 2000
	if testing.Short() || racesync.Enabled {
		n = 200
	}
	start := time.Now()
	for i := range n {
		a, b := e.pair(t)
		_, err := fmt.Fprintf(a, "%d", i)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i), string(got))
		require.NoError(t, b.Close())
	}
	t.Logf("%.0f connections a second", float64(n)/time.Since(start).Seconds())
}
