package mpi_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// hasty has a rank that is gone missed after two seconds.
var hasty = verbs.ConnectOptions{Timeout: 14}

// loseLast runs a job of n ranks whose last one goes when all have done begin: who is
// still in a call with it would hear of it there. The others do what begin has
// returned, meanwhile or, when gone is closed, afterwards. None of them goes before all
// are through.
func loseLast(n int, o mpi.Options, begin func(w *mpi.World) (then func(gone <-chan struct{}) error, err error)) (errs error) {
	var ready, told sync.WaitGroup
	ready.Add(n)
	told.Add(n - 1)
	gone := make(chan struct{})
	ends := make(chan error, n)
	for i, m := range pmi.NewLocal(n) {
		go func() {
			o := o
			o.Manager, o.RDMA.Connect = m, hasty
			var then func(<-chan struct{}) error
			w, err := mpi.Init(open, o)
			if err == nil {
				defer w.Vanish()
				then, err = begin(w)
			}
			ready.Done()
			if i == n-1 {
				ready.Wait()
				if w != nil {
					w.Vanish()
				}
				close(gone)
			} else {
				if err == nil {
					err = then(gone)
				}
				told.Done()
				told.Wait()
			}
			if err != nil {
				err = fmt.Errorf("rank %d: %w", i, err)
			}
			ends <- err
		}()
	}
	over := time.After(time.Minute)
	for range n {
		select {
		case err := <-ends:
			errs = errors.Join(errs, err)
		case <-over:
			return errors.Join(errs, errors.New("somebody waits for ever"))
		}
	}
	return errs
}
