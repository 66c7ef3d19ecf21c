package rdm_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
)

// memoryInUse returns the memory in use that this module has allocated since profiling began,
// without the buffers of sockets, which grow with the traffic.
func memoryInUse() (n int64) {
	runtime.GC()
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 10_000)
	k, ok := runtime.MemProfile(records, false)
	if !ok {
		panic("more than 10000 places that allocate")
	}
	for _, r := range records[:k] {
		ours := false
		for frames, more := runtime.CallersFrames(r.Stack()), true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.Contains(f.Function, "internal/link.") {
				ours = false
				break
			}
			ours = ours || strings.Contains(f.Function, "softrnic/rdm.") || strings.Contains(f.Function, "softrnic/rnic.")
		}
		if ours {
			n += r.InUseBytes()
		}
	}
	return n
}

// openMany opens n small endpoints on some adapters.
func openMany(t testing.TB, n int) (list []*rdm.Endpoint) {
	var devs []*rnic.Device
	for range 4 {
		devs = append(devs, device(t, ""))
	}
	for i := range n {
		list = append(list, endpointOn(t, devs[i%len(devs)], rdm.Options{Receives: 8, Packets: 8, Ops: 4, Backlog: 10_000}))
	}
	return list
}

// TestManyPeers checks that a thousand peers that have sent messages and used memory of the hub,
// with atomics, use at most 2 KiB each, and do not slow each other down.
func TestManyPeers(t *testing.T) {
	const limit = 2 << 10
	n := 1000
	if testing.Short() {
		n = 200
	}
	ctx := guarded(t)
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()
	others := openMany(t, n)
	meet := func(hub *rdm.Endpoint, shared *rdm.Region, others []*rdm.Endpoint) {
		for _, e := range others {
			p, err := e.Dial(ctx, hub.Addr())
			require.NoError(t, err)
			var op rdm.Op
			require.NoError(t, p.FetchAdd(&op, shared.Remote(0), 1))
			require.NoError(t, op.Wait(ctx))
			require.NoError(t, p.Send(ctx, []byte("hello")))
			_, from, err := hub.Recv(ctx, make([]byte, 8))
			require.NoError(t, err)
			require.Equal(t, e.Addr(), from.Addr())
		}
	}
	var hubs [2]*rdm.Endpoint
	var shared [2]*rdm.Region
	for i := range hubs {
		hubs[i] = endpoint(t, "", rdm.Options{Receives: 128, Packets: 64})
		shared[i] = region(t, hubs[i], 64, everything)
	}
	const first = 100
	meet(hubs[0], shared[0], others)
	meet(hubs[1], shared[1], others[:first]) // now everything has grown except for new peers
	before := memoryInUse()
	meet(hubs[1], shared[1], others[first:])
	each := (memoryInUse() - before) / int64(2*(n-first)) // each has one more peer, and the hub all of them
	require.EqualValues(t, 2*n, shared[0].LoadUint64(0)+shared[1].LoadUint64(0))
	t.Logf("%d bytes a peer", each)
	require.LessOrEqual(t, each, int64(limit))
	runtime.KeepAlive(others)
}

// BenchmarkPeers measures a message and an addition of one peer, by the number of idle others.
func BenchmarkPeers(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(map[int]string{1: "1", 1000: "1000"}[n], func(b *testing.B) {
			ctx := context.Background()
			hub := endpoint(b, "", rdm.Options{Receives: 128, Packets: 64})
			shared := region(b, hub, 64, everything)
			others := openMany(b, n)
			var last *rdm.Peer
			for _, e := range others {
				last = dial(b, e, hub)
				var op rdm.Op
				require.NoError(b, last.FetchAdd(&op, shared.Remote(0), 1))
				require.NoError(b, op.Wait(ctx))
			}
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				var op rdm.Op
				if err := last.FetchAdd(&op, shared.Remote(0), 1); err != nil {
					b.Fatal(err)
				}
				if err := op.Wait(ctx); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "median-ns")
		})
	}
}
