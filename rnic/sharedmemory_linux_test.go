package rnic

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// needSharedMemory skips a test where the environment forbids shared memory.
func needSharedMemory(t *testing.T) {
	t.Helper()
	if env := os.Getenv(EnvLink); strings.Contains(env, "noshm") || strings.Contains(env, "portable") {
		t.Skip(EnvLink + "=" + env)
	}
}

// TestSharedMemory passes the packets of many connections between two devices through shared memory, in
// one ring for each direction, unless an option forbids it. The data arrives also with shards.
func TestSharedMemory(t *testing.T) {
	needSharedMemory(t)
	for _, o := range []Options{{}, {Shards: 3}, {NoSharedMemory: true}} {
		a, b := newEnd(t, o), newEnd(t, o)
		for i := range 30 {
			if i > 0 {
				a.qp, b.qp = a.newQP(t, verbs.RC), b.newQP(t, verbs.RC)
			}
			connect(t, a.dev, a.qp, b.dev, b.qp)
			a.mr.Bytes()[99999] = byte(i + 1)
			write(t, a, b, 100000)
			require.Equal(t, byte(i+1), b.mr.Bytes()[99999])
		}
		s := a.dev.Inspect()
		want := "shm"
		if o.NoSharedMemory {
			want = "udp"
			require.Zero(t, s.Link.SharedSentPackets)
		} else {
			require.Equal(t, s.Link.SentPackets, s.Link.SharedSentPackets)
			require.Equal(t, s.Link.SentBytes, s.Link.SharedSentBytes)
			require.Zero(t, s.Link.SharedLost)
		}
		for _, q := range s.QPs {
			require.Equal(t, want, q.Link)
		}
	}
}

// TestSharedMemoryFaults damages packets in shared memory: their ICRC reveals each damage, as through a
// socket, at the sender's and at the receiver's end. A capture has the packets with their ICRC.
func TestSharedMemoryFaults(t *testing.T) {
	needSharedMemory(t)
	for _, faults := range [][2]string{{"corrupt 5% seed 3", ""}, {"", "corrupt in 5%"}} {
		a, b := pair(t, Options{})
		require.NoError(t, a.dev.SetImpair(faults[0]))
		require.NoError(t, b.dev.SetImpair(faults[1]))
		path := filepath.Join(t.TempDir(), "capture.pcapng")
		require.NoError(t, b.dev.StartCapture(path))
		for i := range a.mr.Bytes()[:1<<20] {
			a.mr.Bytes()[i] = byte(i * 7 >> 3)
		}
		write(t, a, b, 1<<20)
		require.True(t, bytes.Equal(a.mr.Bytes()[:1<<20], b.mr.Bytes()[:1<<20]))
		require.NoError(t, b.dev.StopCapture())
		require.Positive(t, b.dev.drops.n[wire.DropBadICRC].Load())
		require.Positive(t, b.dev.Inspect().Link.SharedReceivedPackets)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Greater(t, len(text), 1<<20)
	}
}

// mappedRings returns the number of mappings of rings in this process, and the bytes of memory behind them.
func mappedRings(t *testing.T) (count, resident int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inRing := false
	for line := range strings.Lines(string(text)) {
		switch name, value, _ := strings.Cut(line, ":"); {
		case strings.Contains(line, "memfd:softrnic-shm"):
			inRing = true
			count++
		case name == "Rss" && inRing:
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			require.NoError(t, err)
			resident += kilobytes << 10
			inRing = false
		}
	}
	return count, resident
}

// TestConnectionsShareRing writes through 10,000 connections between two devices: they have one ring for each direction,
// and no descriptor of their own.
func TestConnectionsShareRing(t *testing.T) {
	needSharedMemory(t)
	const connections = 10_000
	rings, before := mappedRings(t) // of tests before, until a garbage collection
	a, b := pair(t, Options{})
	write(t, a, b, 8)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	small := verbs.QPInitAttr{Type: verbs.RC, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}
	qps := []verbs.QP{a.qp}
	for range connections - 1 {
		qa, qb := a.newQPWith(t, small), b.newQPWith(t, small)
		connect(t, a.dev, qa, b.dev, qb)
		qps = append(qps, qa)
	}
	fill(a.mr.Bytes()[:8*connections], 1)
	for first := 0; first < connections; first += 500 { // at most as many as the queue holds
		for i := first; i < first+500; i++ {
			a.qp = qps[i]
			a.post(t, verbs.SendWR{
				Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(8*i, 8)}, RemoteAddr: b.mr.Addr() + uint64(8*i), RKey: b.mr.RKey(),
			})
		}
		for range 500 {
			a.poll1(t)
		}
	}
	require.True(t, bytes.Equal(a.mr.Bytes()[:8*connections], b.mr.Bytes()[:8*connections]))
	s := a.dev.Inspect()
	require.Zero(t, s.Link.SharedLost)
	require.Equal(t, s.Link.SentPackets, s.Link.SharedSentPackets)
	later, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.LessOrEqual(t, len(later), len(files)+1) // a test before may close some
	count, resident := mappedRings(t)
	require.LessOrEqual(t, count, rings+4, "two rings, at both ends")
	require.LessOrEqual(t, resident, before+4<<20)
}
