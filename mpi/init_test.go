package mpi_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestInitWithoutDevice: a function that is nil, or returns no device, is an error at every
// rank, also where the device is a nil pointer in an interface. A rank that needs no device
// starts without one.
func TestInitWithoutDevice(t *testing.T) {
	broken := errors.New("no adapter")
	for name, c := range map[string]struct {
		open mpi.Open
		want error
	}{
		"nil function":          {nil, verbs.ErrInvalid},
		"nil device":            {func() (verbs.Device, error) { return nil, nil }, verbs.ErrInvalid},
		"nil pointer":           {func() (verbs.Device, error) { return (*rnic.Device)(nil), nil }, verbs.ErrInvalid},
		"error":                 {func() (verbs.Device, error) { return nil, broken }, broken},
		"error and nil pointer": {func() (verbs.Device, error) { return (*rnic.Device)(nil), broken }, broken},
	} {
		t.Run(name, func(t *testing.T) {
			for _, net := range []mpi.Net{mpi.RDMA, mpi.UD, mpi.Hybrid} {
				err := pmi.RunLocal(2, grace, func(m pmi.Manager) error {
					_, err := mpi.Init(c.open, mpi.Options{Manager: m, Net: net})
					return err
				})
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, "mpi: init at rank ")
			}
		})
	}
	w, err := mpi.Init(nil, mpi.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	require.NoError(t, w.Finalize())
}
