package udpraw

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// Every way of moving packets moves whole ones and accounts for all.
func TestBandwidth(t *testing.T) {
	options := map[string]BandwidthOptions{
		"packets":  {Payload: 1024, Window: 8},
		"datagram": {Payload: 1024, Window: 8, Credits: CreditsByDatagram},
		"tiny":     {Payload: 1, Window: 8},
	}
	if HasOffload() {
		options["offload"] = BandwidthOptions{Payload: 4096, Offload: true, RecvBuffer: 1 << 20}
		options["offload datagram"] = BandwidthOptions{Payload: 4096, Offload: true, Window: 30, Credits: CreditsByDatagram}
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := OpenBandwidth(t.Context(), o)
			require.NoError(t, err)
			defer b.Close()
			require.Positive(t, b.Options().Batch)
			require.GreaterOrEqual(t, b.Options().Window, b.Options().Batch)
			for range 2 {
				f, err := b.Round(t.Context(), 5*time.Millisecond)
				require.NoError(t, err)
				require.Positive(t, f.Packets)
				require.EqualValues(t, f.Packets*int64(o.Payload), f.Bytes)
				require.Zero(t, (f.Packets+f.Lost)%int64(b.Options().Batch), "what was sent arrived or is lost: %+v", f)
				require.Positive(t, f.Elapsed)
				require.Positive(t, f.MBps())
			}
		})
	}
}

// A window far beyond the socket buffer loses packets: that is seen, and the
// session goes on.
func TestBandwidthCountsLoss(t *testing.T) {
	if !HasOffload() {
		t.Skip("without offload the sink keeps up; Linux has it")
	}
	b, err := OpenBandwidth(t.Context(), BandwidthOptions{Payload: 4096, Offload: true, RecvBuffer: 4096, Window: 1 << 12})
	require.NoError(t, err)
	defer b.Close()
	lossy := 0 // rounds; a sink that the scheduler favours may keep up in one
	for range 200 {
		f, err := b.Round(t.Context(), 5*time.Millisecond)
		require.NoError(t, err)
		require.Zero(t, (f.Packets+f.Lost)%int64(b.Options().Batch))
		if f.Lost > 0 {
			lossy++
		}
		if lossy == 2 {
			return
		}
	}
	t.Fatalf("losses in %d rounds of 200", lossy)
}

func TestPingPong(t *testing.T) {
	for _, m := range Modes() {
		p, err := OpenPingPong(t.Context(), m, 24)
		require.NoError(t, err)
		defer p.Close()
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, p.LatencyRounds(50, all))
		require.NoError(t, err)
		require.Positive(t, v[0][1])
		require.EqualValues(t, 100, all.Stats().N)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []BandwidthOptions{{}, {Payload: -1}, {Payload: maxDatagram}} {
		_, err := OpenBandwidth(t.Context(), o)
		require.ErrorContains(t, err, "udpraw: payload of")
	}
	_, err := OpenPingPong(t.Context(), "dance", 24)
	require.ErrorContains(t, err, `unknown ping-pong mode "dance"`)
	_, err = OpenPingPong(t.Context(), Netpoll, 0)
	require.ErrorContains(t, err, "udpraw: ping of")
}

func TestCorruptPacketIsSeen(t *testing.T) {
	m := newWorkingMemory()
	payload := m.nextChunk(100)
	p := make([]byte, 100+overhead)
	dst := make([]byte, 100)
	buildPacket(p, payload, 1<<40+5)
	require.NoError(t, verifyPacket(p, dst))
	require.Equal(t, payload, dst)
	for i := range p {
		p[i] ^= 0x10
		require.ErrorIs(t, verifyPacket(p, dst), errCorrupt, "byte %d", i)
		p[i] ^= 0x10
	}
}

func TestMemoryStartsOver(t *testing.T) {
	m := newWorkingMemory()
	first := &m.nextChunk(workingSet - 10)[0]
	require.Same(t, first, &m.nextChunk(11)[0])
}

// fakeSocket replays datagrams.
type fakeSocket struct {
	socket
	in  [][]byte
	out [][]byte
}

func (f *fakeSocket) tryReceive(b []byte) (int, error) {
	if len(f.in) == 0 {
		return 0, errors.New("nothing left")
	}
	n := copy(b, f.in[0])
	f.in = f.in[1:]
	return n, nil
}

func (f *fakeSocket) sendSegments(b []byte, _ int) error {
	f.out = append(f.out, append([]byte(nil), b...))
	return nil
}

// Credits are cumulative: junk is ignored, and of merged ones the last counts.
func TestDatagramCredits(t *testing.T) {
	sinkSide := &fakeSocket{}
	w := &datagramCredits{s: sinkSide}
	require.NoError(t, w.writeCredit(credit{5, 0}))
	require.NoError(t, w.writeCredit(credit{9, 1}))
	merged := append(append([]byte(nil), sinkSide.out[0]...), sinkSide.out[1]...)

	r := &datagramCredits{s: &fakeSocket{in: [][]byte{sinkSide.out[0], {1, 2, 3}, {}, merged}}}
	for _, want := range []credit{{5, 0}, {5, 0}, {5, 0}, {9, 1}} {
		c, err := r.readCredit()
		require.NoError(t, err)
		require.Equal(t, want, c)
	}
	_, err := r.readCredit()
	require.Error(t, err)
}

// The portable socket serves every system, so it is tested on this one too.
func TestNetSocket(t *testing.T) {
	a, err := openNetSocket(socketOptions{buffer: 1 << 16})
	require.NoError(t, err)
	defer a.close()
	b, err := openNetSocket(socketOptions{})
	require.NoError(t, err)
	defer b.close()
	a.setPeer(b.localAddr())
	require.NoError(t, a.sendSegments([]byte("abcde"), 2))
	buf := make([]byte, 10)
	for _, want := range []string{"ab", "cd", "e"} {
		n, err := b.receiveBlocking(buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf[:n]))
	}
	n, err := b.tryReceive(buf)
	require.NoError(t, err)
	require.Zero(t, n)
}
