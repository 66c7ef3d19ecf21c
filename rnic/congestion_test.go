package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCongestionControl checks that a device on loopback has congestion control only if asked, that
// marks then pace a stream, and that all data arrives.
func TestCongestionControl(t *testing.T) {
	for _, mode := range []string{"", "auto", "dcqcn", "delay"} {
		a, b := pair(t, Options{Congestion: mode, Impair: "mark ecn every 3rd WRITE"})
		for i := range 40 {
			fill(a.mr.Bytes(), uint64(i))
			write(t, a, b, 60000)
			require.Equal(t, a.mr.Bytes()[:60000], b.mr.Bytes()[:60000])
		}
		sender, receiver := a.dev.Stats().Counters, b.dev.Stats().Counters
		require.Equal(t, mode == "auto" || mode == "dcqcn", hwCounter(t, a.qp, "rp_rate_reductions") > 0, mode)
		require.Equal(t, sender.PacingStalls, hwCounter(t, a.qp, "pacing_stalls"))
		require.Positive(t, receiver.CNPSent, "the receiver notifies in any mode")
		if mode == "" {
			require.Zero(t, sender.PacingStalls)
		}
		require.Zero(t, sender.Timeouts)
	}
}

// hwCounter returns a counter of a queue pair.
func hwCounter(t *testing.T, q verbs.QP, name string) uint64 {
	n, ok := q.(*queuePair).HWCounter(name)
	require.True(t, ok)
	return n
}

// TestCongestionOption checks the option of the device, of the environment and of a queue pair.
func TestCongestionOption(t *testing.T) {
	_, err := Open(Options{Congestion: "cubic"})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, `Options.Congestion: congestion control "cubic" is unknown`)
	e := newEnd(t, Options{})
	require.Equal(t, "off", e.qp.(*queuePair).rateMode.String(), "on loopback")
	q, err := e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, Congestion: "delay"})
	require.NoError(t, err)
	require.Equal(t, "delay", q.(*queuePair).rateMode.String())
	_, init := q.Query()
	require.Equal(t, "delay", init.Congestion)
	_, err = e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, Congestion: "none"})
	require.ErrorIs(t, err, verbs.ErrInvalid)

	t.Setenv(envCongestion, "dcqcn")
	require.Equal(t, "dcqcn", newEnd(t, Options{}).qp.(*queuePair).rateMode.String())
	require.Equal(t, "off", newEnd(t, Options{Congestion: "off"}).qp.(*queuePair).rateMode.String())
	t.Setenv(envCongestion, "fast")
	_, err = Open(Options{})
	require.ErrorContains(t, err, envCongestion)
}
