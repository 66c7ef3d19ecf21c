package cmtool_test

import (
	"context"
	"math"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
)

// TestCheck refuses by the name that the tool has for an option.
func TestCheck(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*cmtool.Options)
		option string
	}{
		{func(o *cmtool.Options) {}, ""},
		{func(o *cmtool.Options) { o.Port = 0 }, ""},
		{func(o *cmtool.Options) { o.Port = -1 }, "port"},
		{func(o *cmtool.Options) { o.Port, o.Server = 0, "localhost" }, "port"},
		{func(o *cmtool.Options) { o.Connections = 1<<16 + 1 }, "-c"},
		{func(o *cmtool.Options) { o.Count = -1 }, "-C"},
		{func(o *cmtool.Options) { o.Size, o.Count = 0, -1 }, ""},
		{func(o *cmtool.Options) { o.Device = nil }, "device"},
	} {
		o := cmtool.Defaults(1)
		o.Device = dev
		c.change(&o)
		err := o.Check("port")
		if c.option == "" {
			require.NoError(t, err)
			continue
		}
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, c.option, wrong.Option)
	}
}

// TestFits is exact, and does not overflow.
func TestFits(t *testing.T) {
	o := cmtool.Options{Connections: 2}
	require.NoError(t, o.Fits(cmtool.MaxMemory/2/64, 64))
	require.ErrorContains(t, o.Fits(cmtool.MaxMemory/2/64+1, 64), "-C: ")
	require.Error(t, o.Fits(math.MaxInt, math.MaxInt))
	require.NoError(t, o.Fits(math.MaxInt, 0))
}

// TestRunIsSilent with options that say nothing of where to write.
func TestRunIsSilent(t *testing.T) {
	o := cmtool.Options{Server: "there"}
	require.NoError(t, o.Run(toolstest.Context(t), nil, func(context.Context) error {
		o.Skipped(context.Canceled)
		o.Listening([]netip.AddrPort{})
		return nil
	}))
}
