package acp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestInitWithoutDevice checks Init with a nil Open function, and with one that returns no device or a typed
// nil.
func TestInitWithoutDevice(t *testing.T) {
	broken := errors.New("no adapter")
	for name, c := range map[string]struct {
		open acp.Open
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
