package adapter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// device knows that its paths carry the MTU carries, or none if it is 0.
type device struct {
	verbs.Device
	carries verbs.MTU
}

func (d device) FitPathMTU(_ verbs.AHAttr, mtu verbs.MTU) (verbs.MTU, error) {
	if mtu <= d.carries {
		return mtu, nil
	}
	return d.carries, verbs.ErrLimit
}

func TestPathMTU(t *testing.T) {
	for name, c := range map[string]struct {
		dev  verbs.Device
		fits verbs.MTU
		err  error
	}{
		"unknown":   {struct{ verbs.Device }{}, verbs.MTU4096, nil},
		"nil":       {nil, verbs.MTU4096, nil},
		"large":     {device{carries: verbs.MTU4096}, verbs.MTU4096, nil},
		"small":     {device{carries: verbs.MTU1024}, verbs.MTU1024, verbs.ErrLimit},
		"too small": {device{}, verbs.MTU4096, verbs.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.fits, FitPathMTU(c.dev, verbs.AHAttr{}, verbs.MTU4096))
			require.ErrorIs(t, CheckPathMTU(c.dev, verbs.AHAttr{}, verbs.MTU4096), c.err)
		})
	}
}

func TestCheckDevice(t *testing.T) {
	require.NoError(t, CheckDevice(&device{}))
	require.NoError(t, CheckDevice(device{}))
	require.ErrorIs(t, CheckDevice(nil), verbs.ErrInvalid)
	require.EqualError(t, CheckDevice((*device)(nil)), "nil device: verbs: invalid argument")
}
