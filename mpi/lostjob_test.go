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

// hasty sets the timeout of connections to two seconds without an acknowledgement.
var hasty = verbs.ConnectOptions{AckTimeout: verbs.AckTimeout(14)}

// loseLast runs a job of n ranks whose last rank fails after all have run begin. The others run the
// function that begin returns concurrently, or after gone is closed. No rank exits before all are
// done.
func loseLast(n int, o mpi.Options, begin func(w mpi.World) (then func(gone <-chan struct{}) error, err error)) (errs error) {
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
				if w.Comm != nil {
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
			return errors.Join(errs, errors.New("a rank waits forever"))
		}
	}
	return errs
}
