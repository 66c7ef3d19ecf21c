package sdp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// TestOptions checks that invalid options are refused and named.
func TestOptions(t *testing.T) {
	dev := device(t, rnic.Options{})
	for cause, o := range map[string]sdp.Options{
		"Options.FlowControl: FlowControl(9) is none of nic, rdma and credit": {FlowControl: 9},
		"Options.Buffers: -1 out of range [1, 16384]":                         {Buffers: -1},
		"Options.BufferBytes: 7 out of range [64, 16777216]":                  {BufferBytes: 7},
		"Options.Window: -3 out of range [1, 1048576], half of all buffers":   {Window: -3},
		"Options.OfferTime: -1s is negative":                                  {OfferTime: -time.Second},
		"Options.MaxBufferBytes: -1 is negative":                              {MaxBufferBytes: -1},
		"Options.Linger: -1ns is negative":                                    {Linger: -1},
		"Options.Queue: 2 out of range [4, 32768]":                            {Queue: 2},
		"Options.Receives: 32769 out of range [8, 32768]":                     {Receives: 1<<15 + 1},
	} {
		_, err := sdp.New(dev, o)
		require.ErrorContains(t, err, cause)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}

	m, err := cm.New(device(t, rnic.Options{}), cm.Options{})
	require.NoError(t, err)
	defer m.Close()
	_, err = sdp.New(dev, sdp.Options{Manager: m})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "sdp: verbs: invalid argument: Options.Manager: manager of the device at "+m.Addr().String())
}
