package acp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestInitWithoutDevice checks Init with a nil Open function, and with one that returns no device or a typed
// nil.
func TestInitWithoutDevice(t *testing.T) {
	broken := errors.New("no adapter")
	for name, c := range map[string]struct {
		open func() (verbs.Device, error)
		want error
	}{
		"nil function":          {nil, acp.ErrOptions},
		"nil device":            {func() (verbs.Device, error) { return nil, nil }, verbs.ErrInvalid},
		"nil pointer":           {func() (verbs.Device, error) { return (*rnic.Device)(nil), nil }, verbs.ErrInvalid},
		"error":                 {func() (verbs.Device, error) { return nil, broken }, broken},
		"error and nil pointer": {func() (verbs.Device, error) { return (*rnic.Device)(nil), broken }, broken},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ranks := range []int{1, 2} {
				err := pmi.RunLocal(ranks, 5*time.Second, func(m pmi.Manager) error {
					_, err := acp.Init(c.open, acp.Options{Manager: m})
					return err
				})
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, ": init job of ")
			}
		})
	}
}

// TestOptionsOutOfRange checks that Init names the field that is out of range, the value and the range.
func TestOptionsOutOfRange(t *testing.T) {
	for want, o := range map[string]acp.Options{
		"Options.Starter: 5, want a multiple of 8 in [0, 2^30]":     {Starter: 5},
		"Options.ProbeDelay: -1ns is negative":                      {ProbeDelay: -1},
		"Options.Net: 9 out of range [0, 1]":                        {Net: 9},
		"Options.Connect: verbs: invalid argument: ConnectOptions.": {Connect: verbs.ConnectOptions{Retries: 9}},
		"Options.RDM: rdm: open: verbs: invalid argument: Options.Packets: -1 out of range [0, 1048576]": {Net: acp.UD,
			RDM: rdm.Options{Packets: -1}},
		"cm: open manager: verbs: invalid argument: Options.Receives: -1 out of range [0, 32768]": {CM: cm.Options{Receives: -1}},
	} {
		o.Manager = pmi.NewLocal(1)[0]
		_, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, o)
		require.ErrorContains(t, err, want)
	}
}

// A limitedDevice is a device with other attributes.
type limitedDevice struct {
	verbs.Device
	limit func(*verbs.DeviceAttr)
}

func (d limitedDevice) QueryDevice() verbs.DeviceAttr {
	attr := d.Device.QueryDevice()
	d.limit(&attr)
	return attr
}

// TestDeviceLimits checks that Init refuses a device whose atomics or writes a processor could not
// observe in order.
func TestDeviceLimits(t *testing.T) {
	for want, limit := range map[string]func(*verbs.DeviceAttr){
		"AtomicGlob":    func(a *verbs.DeviceAttr) { a.AtomicCap = verbs.AtomicHCA },
		"OrderedWrites": func(a *verbs.DeviceAttr) { a.OrderedWrites = false },
	} {
		open := func() (verbs.Device, error) {
			dev, err := rnic.Open(rnic.Options{})
			return limitedDevice{dev, limit}, err
		}
		_, err := acp.Init(open, acp.Options{Manager: pmi.NewLocal(1)[0]})
		require.ErrorIs(t, err, verbs.ErrUnsupported)
		require.ErrorContains(t, err, want)
	}
}

// TestFinalizeContext checks that Finalize ends with its context while another rank does not call it, and
// that Close after it does nothing.
func TestFinalizeContext(t *testing.T) {
	finalized := make(chan struct{})
	err := pmi.RunLocal(2, 5*time.Second, func(m pmi.Manager) error {
		p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: m})
		if err != nil {
			return err
		}
		if p.Rank() == 1 {
			<-finalized
			return p.Close()
		}
		defer close(finalized)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := p.Finalize(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("finalize: %w", err)
		}
		return p.Close()
	})
	require.NoError(t, err)
}
