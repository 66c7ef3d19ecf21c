package sdp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestOptions checks that invalid options are refused and named.
func TestOptions(t *testing.T) {
	dev := device(t, rnic.Options{})
	for cause, o := range map[string]sdp.Options{
		"flow control Control(9)":     {FlowControl: 9},
		"-1 buffers: 1 to 16384":      {Buffers: -1},
		"buffers of 7 bytes":          {BufferBytes: 7},
		"a window of -3 bytes":        {Window: -3},
		"OfferTime -1s: negative":     {OfferTime: -time.Second},
		"MaxBufferBytes -1: negative": {MaxBufferBytes: -1},
		"Linger -1ns: negative":       {Linger: -1},
		"2 sends and 256 receives":    {Queue: 2},
	} {
		_, err := sdp.New(dev, o)
		require.ErrorContains(t, err, cause)
		require.Equal(t, err, o.Validate())
	}
	require.NoError(t, sdp.Options{}.Validate())
}
