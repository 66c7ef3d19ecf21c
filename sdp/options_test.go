package sdp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestOptions that cannot be are refused, and told of.
func TestOptions(t *testing.T) {
	dev := device(t, rnic.Options{})
	for cause, o := range map[string]sdp.Options{
		"flow control Design(9)":   {FlowControl: 9},
		"-1 buffers: 1 to 16384":   {Buffers: -1},
		"buffers of 7 bytes":       {BufferBytes: 7},
		"a window of -3 bytes":     {Window: -3},
		"an offer time of -1s":     {OfferTime: -time.Second},
		"buffers of -1 bytes":      {MaxBufferBytes: -1},
		"a linger of -1ns":         {Linger: -1},
		"2 sends and 256 receives": {Queue: 2},
	} {
		_, err := sdp.New(dev, nil, o)
		require.ErrorContains(t, err, cause)
		require.Equal(t, err, o.Validate())
	}
	require.NoError(t, sdp.Options{}.Validate())
}
