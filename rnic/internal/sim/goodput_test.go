package sim_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// measureGoodput transfers messages of 64 KiB over a path of 40 Gbit/s and 40 us, sixteen at a
// time, and returns the virtual time.
func measureGoodput(t *testing.T, op verbs.WROpcode, loss string) time.Duration {
	const messages, ahead = 500, 16
	s := sim.New(1)
	o := sim.DeviceOptions{
		Impair: "loss " + loss,
		Link:   memory.Options{Rate: 40e9, Queue: 4 << 20, Delay: 20 * time.Microsecond},
	}
	a, b := connectPair(t, s, o, o)
	from, to := a, b
	if op == verbs.WRRDMARead {
		from, to = b, a
	}
	from.fill()
	posted := 0
	take := a.dev.App
	a.dev.App = func() {
		take()
		for posted < min(messages, len(a.wcs)+ahead) {
			_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: op, Flags: verbs.SendSignaled,
				SGList: []verbs.SGE{a.mr.SGE(0, regionSize)}, RKey: b.mr.RKey()}})
			require.NoError(t, err)
			posted++
		}
	}
	require.True(t, s.Run(func() bool { return len(a.wcs) == messages }))
	for _, wc := range a.wcs {
		require.Equal(t, verbs.WCSuccess, wc.Status)
	}
	require.True(t, bytes.Equal(from.mr.Bytes(), to.mr.Bytes()))
	return s.Now()
}

// TestGoodputUnderLoss compares with the time on a perfect network.
func TestGoodputUnderLoss(t *testing.T) {
	for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
		perfect := measureGoodput(t, op, "0%")
		require.Greater(t, 500*regionSize*8/perfect.Seconds(), 0.9*40e9, "%v fills the path", op)
		for loss, least := range map[string]float64{"0.1%": 0.6, "1%": 0.15, "5%": 0.01} {
			ratio := float64(perfect) / float64(measureGoodput(t, op, loss))
			t.Logf("%v at %s loss: %.2f", op, loss, ratio)
			require.Greater(t, ratio, least, "%v at %s loss", op, loss)
		}
	}
}
