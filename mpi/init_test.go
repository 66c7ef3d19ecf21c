package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestInitWithoutDevice checks that Init fails at every rank if Options.Open is nil or returns no
// device, which may be a nil pointer in an interface. A rank that needs no device starts without
// one.
func TestInitWithoutDevice(t *testing.T) {
	broken := errors.New("no adapter")
	for name, c := range map[string]struct {
		open func() (verbs.Device, error)
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
				require.ErrorContains(t, err, ": init job of 2 ranks: ")
			}
		})
	}
	w, err := mpi.Init(nil, mpi.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	require.NoError(t, w.Finalize())
}

// TestInitOfOneRankFails checks that a rank whose Init fails does not delay the others at the first
// fence, and is lost to the others with the reason. Without the first rank of a node, which
// publishes the number of processors, no rank starts.
func TestInitOfOneRankFails(t *testing.T) {
	broken := errors.New("no adapter")
	for fabric, o := range finalizeFabrics {
		for _, fails := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, rank %d", fabric, fails), func(t *testing.T) {
				t.Parallel() // the first probe is sent after half a second
				eachRank(3, o, func(i int, o mpi.Options) {
					opens, want := open, mpi.ErrLost
					switch {
					case i == fails && o.Net == mpi.TCP:
						o.RCLimit, want = -1, nil
					case i == fails:
						opens, want = func() (verbs.Device, error) { return nil, broken }, broken
					case fails == 0:
						want = pmi.ErrNotFound
					}
					began := time.Now()
					w, err := mpi.Init(opens, o)
					if err == nil {
						err = errors.Join(w.Barrier(), w.Finalize())
					}
					if took := time.Since(began); took > rankTimeout || err == nil || want != nil && !errors.Is(err, want) {
						t.Errorf("rank %d after %v: %v", i, took, err)
					}
					if i != fails && !strings.Contains(err.Error(), "not started: ") {
						t.Errorf("rank %d: %v", i, err)
					}
				})
			})
		}
	}
}
