package sim_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// end is a device with one RC queue pair and 64 KiB of memory.
type end struct {
	dev *sim.Device
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
	wcs []verbs.WC

	trace *sim.Trace // for completions, if set
}

const regionSize = 64 << 10

func newEnd(t testing.TB, s *sim.Sim, o sim.DeviceOptions) *end {
	e := &end{}
	var err error
	e.dev, err = s.AddDevice(o)
	require.NoError(t, err)
	t.Cleanup(func() { e.dev.Close() })
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.dev.CreateCQ(4096)
	require.NoError(t, err)
	e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 2048, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4}})
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, regionSize), verbs.AccessLocalWrite|verbs.AccessRemote|verbs.AccessZeroBased)
	require.NoError(t, err)
	e.dev.App = func() {
		var wc [16]verbs.WC
		for {
			n, err := e.cq.Poll(wc[:])
			require.NoError(t, err)
			if n == 0 {
				return
			}
			e.wcs = append(e.wcs, wc[:n]...)
			for i := range n {
				if e.trace != nil {
					e.trace.NoteCompletion(e.dev, wc[i])
				}
			}
		}
	}
	return e
}

// connectPair returns two connected ends.
func connectPair(t testing.TB, s *sim.Sim, a, b sim.DeviceOptions) (*end, *end) {
	ea, eb := newEnd(t, s, a), newEnd(t, s, b)
	require.NoError(t, s.Connect(sim.Endpoint{Device: ea.dev, QP: ea.qp}, sim.Endpoint{Device: eb.dev, QP: eb.qp}))
	return ea, eb
}

// write posts an RDMA write of n bytes from a to b.
func (e *end) write(t testing.TB, id uint64, to *end, n int) {
	_, err := e.qp.PostSend([]verbs.SendWR{{WRID: id, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{e.mr.SGE(0, n)}, RemoteAddr: to.mr.Addr(), RKey: to.mr.RKey()}})
	require.NoError(t, err)
}

// fill writes a pattern to the memory of e.
func (e *end) fill() {
	for i := range e.mr.Bytes() {
		e.mr.Bytes()[i] = byte(i * 7)
	}
}

// lossy runs with all kinds of faults and returns the trace.
func lossy(t *testing.T, seed uint64) string {
	s := sim.New(seed)
	trace := s.Record()
	const bad = "loss 5% delay 20us 10us reorder 10% duplicate 3% corrupt 2%"
	a, b := connectPair(t, s, sim.DeviceOptions{Name: "a", Impair: bad}, sim.DeviceOptions{Name: "b", Impair: bad})
	a.trace, b.trace = trace, trace
	a.fill()
	for i := range uint64(10) {
		a.write(t, i, b, regionSize)
		b.write(t, i, a, 0)
	}
	require.True(t, s.Run(nil))
	require.Len(t, a.wcs, 10)
	require.Len(t, b.wcs, 10)
	require.True(t, bytes.Equal(a.mr.Bytes(), b.mr.Bytes()))
	for _, e := range []*end{a, b} {
		require.NotZero(t, e.dev.Stats().Counters.Retransmitted)
		require.NotZero(t, e.dev.Stats().Drops["bad_icrc"])
		require.Equal(t, e.dev.Sent.Packets, e.dev.Stats().Counters.SentPkts)
	}
	return trace.String()
}

func TestOneSeedIsOneRun(t *testing.T) {
	first := lossy(t, 1)
	require.True(t, first == lossy(t, 1), "the same seed, another trace")
	require.False(t, first == lossy(t, 2), "another seed, the same trace")
}

// TestRecordingChangesNothing compares runs with and without a trace by their counters and their
// end time.
func TestRecordingChangesNothing(t *testing.T) {
	run := func(record bool) (any, any, time.Duration) {
		s := sim.New(3)
		if record {
			s.Record()
		}
		a, b := connectPair(t, s, sim.DeviceOptions{Impair: "loss 5%"}, sim.DeviceOptions{Impair: "loss 5%"})
		for i := range uint64(10) {
			a.write(t, i, b, regionSize)
		}
		require.True(t, s.Run(nil))
		return a.dev.Stats().Counters, b.dev.Stats().Counters, s.Now()
	}
	a1, b1, t1 := run(false)
	a2, b2, t2 := run(true)
	require.Equal(t, a1, a2)
	require.Equal(t, b1, b2)
	require.Equal(t, t1, t2)
}

func TestTrace(t *testing.T) {
	s := sim.New(1)
	trace := s.Record()
	a, b := newEnd(t, s, sim.DeviceOptions{Name: "a"}), newEnd(t, s, sim.DeviceOptions{Name: "b", OneByOne: true})
	require.NoError(t, s.Connect(sim.Endpoint{Device: a.dev, QP: a.qp, PSN: 100}, sim.Endpoint{Device: b.dev, QP: b.qp, PSN: 500, HideRecvBuffer: true}))
	trace.NameQP(a.dev, a.qp.Num(), "a")
	trace.NameQP(b.dev, b.qp.Num(), "b")
	trace.NameKey(b.dev, b.mr.RKey(), "m")
	a.trace = trace
	for _, step := range []struct{ impair, want string }{
		{"", "" +
			"     0.000 ms  a > b    RC_WRITE_FIRST          psn 100  at 0 len 5000 key m  4096 bytes\n" +
			"     0.000 ms  a > b    RC_WRITE_LAST           psn 101  904 bytes  ackreq\n" +
			"     0.001 ms  b > a    RC_ACKNOWLEDGE          psn 101  ACK with 0 credits, msn 1\n" +
			"     0.002 ms  a        wc 7 on a: RDMA_WRITE, 5000 bytes\n"},
		{"drop WRITE_FIRST; delay 5us 1st WRITE_LAST", "" +
			"     0.050 ms  a > b    RC_WRITE_FIRST          psn 102  at 0 len 5000 key m  4096 bytes  LOST\n" +
			"     0.050 ms  a > b    RC_WRITE_LAST           psn 103  904 bytes  ackreq  SENT at 0.055 ms  (out_of_sequence)\n" +
			"     0.056 ms  b > a    RC_ACKNOWLEDGE          psn 102  NAK PSN sequence error, msn 1\n" +
			"     0.057 ms  a > b    RC_WRITE_FIRST          psn 102  at 0 len 5000 key m  4096 bytes  LOST\n"},
	} {
		from := trace.Len()
		require.NoError(t, a.dev.SetImpair(step.impair))
		a.write(t, 7, b, 5000)
		s.RunFor(50 * time.Microsecond)
		require.Contains(t, trace.Text(from, 0), step.want)
	}
}

func TestRunFor(t *testing.T) {
	s := sim.New(1)
	a, b := connectPair(t, s, sim.DeviceOptions{Impair: "drop WRITE"}, sim.DeviceOptions{})
	var called []time.Duration
	b.dev.ScheduleAt(10*time.Microsecond, func() { called = append(called, s.Now()) })
	a.write(t, 1, b, 100)
	s.RunFor(time.Millisecond)
	require.Equal(t, time.Millisecond, s.Now())
	require.Equal(t, []time.Duration{10 * time.Microsecond}, called)
	require.Empty(t, a.wcs)
	require.False(t, s.Run(func() bool { return len(b.wcs) > 0 }), "nothing can come of it")
	require.Len(t, a.wcs, 1)
	require.Equal(t, verbs.WCRetryExcErr, a.wcs[0].Status)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
