package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/faulttest"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

var boomOp = mpi.OpFunc("boom", true, func(_, _ []int64) { panic(faulttest.ErrPanic) })

// programFaults are faults of functions of the program, and the error or panic of the call.
var programFaults = map[string]struct {
	call func(c *mpi.Comm) error
	want error
}{
	"an operation panics": {func(c *mpi.Comm) error {
		return c.Allreduce(mpi.Of([]int64{1}), mpi.Of([]int64{0}), boomOp)
	}, faulttest.ErrPanic},
	"an operation panics at one rank": {func(c *mpi.Comm) error {
		op := mpi.OpFunc("boom at 0", true, func(_, inout []int64) {
			if inout[0]++; c.Rank() == 0 {
				panic(faulttest.ErrPanic)
			}
		})
		err := faulttest.Recover(func() error { return c.Allreduce(mpi.Of([]int64{1}), mpi.Of([]int64{0}), op) })
		if c.Rank() > 0 && err == nil {
			err = faulttest.ErrPanic
		}
		return err
	}, faulttest.ErrPanic},
	"an operation ends its goroutine": {func(c *mpi.Comm) error {
		op := mpi.OpFunc("exit", true, func(_, _ []int64) { runtime.Goexit() })
		r, err := c.Iallreduce(mpi.Of([]int64{1}), mpi.Of([]int64{0}), op)
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}, mpi.ErrOp},
	"an operation of a persistent call ends its goroutine": {func(c *mpi.Comm) error {
		op := mpi.OpFunc("exit", true, func(_, _ []int64) { runtime.Goexit() })
		r, err := c.AllreduceInit(mpi.Of([]int64{1}), mpi.Of([]int64{0}), op)
		if err == nil {
			err = r.Start()
		}
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return errors.Join(err, r.Free())
	}, mpi.ErrOp},
	"an error handler panics": {func(c *mpi.Comm) error {
		c.SetErrorHandler(func(*mpi.Error) { panic(faulttest.ErrPanic) })
		defer c.SetErrorHandler(nil)
		return c.Send(mpi.Of([]int64{1}), c.Size(), 0)
	}, faulttest.ErrPanic},
	"a context panics": {func(c *mpi.Comm) error {
		r, err := c.Irecv(mpi.Of([]int64{0}), 1-c.Rank(), 7)
		if err != nil {
			return err
		}
		err = faulttest.Recover(func() error { _, err := r.WaitContext(faulttest.Context{Context: context.Background()}); return err })
		if entered := c.Barrier(); entered != nil { // the message must not arrive before the wait
			return entered
		}
		if sent := c.Send(mpi.Of([]int64{1}), 1-c.Rank(), 7); sent != nil {
			return sent
		}
		if _, waited := r.Wait(); waited != nil {
			return waited
		}
		return err
	}, faulttest.ErrPanic},
	"a context ends in a wait": {func(c *mpi.Comm) error {
		r, err := c.Irecv(mpi.Of([]int64{0}), 1-c.Rank(), 7)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		_, err = r.WaitContext(ctx)
		if !r.Cancel() {
			return errors.New("the receive has matched")
		}
		return err
	}, context.Canceled},
	"the end of an attribute panics": {func(c *mpi.Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		mpi.NewAttr(nil, func(*mpi.Comm, int) { panic(faulttest.ErrPanic) }).Set(d, 1)
		err = faulttest.Recover(d.Free)
		if second := d.Free(); !errors.Is(second, mpi.ErrFreed) {
			return fmt.Errorf("second Free: %w", second)
		}
		return err
	}, faulttest.ErrPanic},
}

// TestProgramFaults checks that a fault in a function of the program reaches the call that it
// belongs to, and that the rank can communicate afterwards.
func TestProgramFaults(t *testing.T) {
	for name, fault := range programFaults {
		for _, o := range []mpi.Options{{}, {NoShared: true}} {
			t.Run(fmt.Sprintf("%s,shared=%v", name, !o.NoShared), func(t *testing.T) {
				require.NoError(t, mpitest.RunOptions(2, o, func(w mpi.World) error {
					if err := faulttest.Recover(func() error { return fault.call(w.Comm) }); !errors.Is(err, fault.want) {
						return fmt.Errorf("rank %d: %v, want %w", w.Rank(), err, fault.want)
					}
					if err := w.Barrier(); err != nil {
						return err
					}
					sum := []int64{0}
					if err := w.Allreduce(mpi.Of([]int64{1}), mpi.Of(sum), mpi.Sum); err != nil {
						return err
					}
					if sum[0] != 2 {
						return fmt.Errorf("sum %d", sum[0])
					}
					return nil
				}))
			})
		}
	}
}
