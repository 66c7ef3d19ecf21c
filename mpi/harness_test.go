package mpi_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func open() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }

// job runs f on n ranks in this process, each with an adapter of its own.
func job(t testing.TB, n int, o mpi.Options, f func(w *mpi.World) error) {
	t.Helper()
	var ranks sync.WaitGroup
	errs := make([]error, n)
	for i, m := range pmi.NewLocal(n) {
		ranks.Go(func() {
			o := o
			o.Manager = m
			w, err := mpi.Init(open, o)
			if err == nil {
				if err = f(w); err == nil {
					err = w.Finalize()
				} else {
					_ = m.Abort(1, err.Error())
				}
			}
			if err != nil {
				errs[i] = fmt.Errorf("rank %d: %w", i, err)
			}
		})
	}
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
}
