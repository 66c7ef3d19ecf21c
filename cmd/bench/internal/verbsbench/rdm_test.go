package verbsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/rdm"
)

// Every way of reliable datagrams goes to and fro, and flows; the workers check what
// they read.
func TestRDM(t *testing.T) {
	p := openTestPair(t, Config{})
	for _, o := range []RDMOptions{
		{Op: RDMRead, Size: 64}, {Op: RDMRead, Size: 8000, Poll: true}, {Op: RDMRead, Size: 4000, Native: true},
		{Op: RDMWrite, Size: 64, Poll: true}, {Op: RDMWrite, Size: 8000, Native: true},
		{Op: RDMSend, Size: 10_000},
	} {
		s, err := p.OpenRDM(t.Context(), o)
		require.NoError(t, err, "%+v", o)
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, s.LatencyRounds(20, all), s.BandwidthRounds(5*time.Millisecond))
		require.NoError(t, err, "%+v", o)
		require.Positive(t, v[0][1], "%+v", o)
		require.Positive(t, v[1][1], "%+v", o)
		require.EqualValues(t, 40, all.Stats().N)
		require.NoError(t, s.Close(t.Context()))
	}
	_, err := p.OpenRDM(t.Context(), RDMOptions{Op: RDMWrite, Size: 12, Service: rdm.ServeCalls})
	require.Error(t, err)
}
