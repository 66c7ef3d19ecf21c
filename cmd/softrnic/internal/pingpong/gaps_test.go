package pingpong_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
)

// TestTimes checks the report of the times between received messages, of all kinds of queue pairs.
func TestTimes(t *testing.T) {
	for _, k := range kinds {
		o := pingpong.Defaults(k)
		o.Iters, o.Times = 50, true
		if k == pingpong.UD {
			o.Size = 1000
		}
		server, client := runBoth(t, o, o)
		for _, side := range []outcome{server, client} {
			require.NoError(t, side.err)
			g := side.result.Gaps
			require.NotNil(t, g)
			require.True(t, 0 <= g.Min && g.Min <= g.Average && g.Average <= g.Max, "%v: %+v", k, g)
			require.True(t, bytes.Contains([]byte(side.out), []byte("Max receive completion clock cycles = ")), side.out)
		}
	}
}
