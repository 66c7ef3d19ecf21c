package congestion

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{Off, Auto, DCQCN, Delay} {
		got, err := ParseMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := ParseMode("delya")
	require.EqualError(t, err, `congestion control "delya" is unknown; did you mean "delay"?; want off, auto, dcqcn or delay`)
}
