package ud_test

import (
	"context"
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

// job runs f on n ranks in this process, each with a device of its own, with impairments. f gets
// the device as well.
func job(t testing.TB, n int, impair func(rank int) string, o mpi.Options, f func(w mpi.World, dev *rnic.Device) error) {
	t.Helper()
	o.Net = mpi.UD
	var ranks sync.WaitGroup
	errs := make([]error, n)
	for i, m := range pmi.NewLocal(n) {
		ranks.Go(func() {
			o := o
			o.Manager = m
			errs[i] = func() error {
				var dev *rnic.Device
				w, err := mpi.Init(func() (_ verbs.Device, err error) {
					dev, err = rnic.Open(rnic.Options{Impair: impair(i)})
					return dev, err
				}, o)
				if err != nil {
					return err
				}
				if err := f(w, dev); err == errLeave {
					return dev.Close()
				} else if err != nil {
					_ = m.Abort(1, err.Error())
					return fmt.Errorf("rank %d: %w", i, err)
				}
				return w.Finalize()
			}()
		})
	}
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
}

// errLeave is returned by f if not all ranks can finalize.
var errLeave = errors.New("leave")

func nothing(int) string { return "" }

// equal is require.Equal for goroutines of ranks: it returns an error, which ends the job.
func equal[T comparable](what string, want, got T) error {
	if want != got {
		return fmt.Errorf("%s: %v, not %v", what, got, want)
	}
	return nil
}

// book is a key-value store with the entries of one rank, and simulated entries of the others.
type book struct {
	rank, size int
	mu         sync.Mutex
	own        map[string]string
	entry      func(key string) (string, error)
}

func (b *book) Rank() int     { return b.rank }
func (b *book) Size() int     { return b.size }
func (b *book) JobID() string { return "job" }
func (b *book) Put(key, value string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own == nil {
		b.own = map[string]string{}
	}
	b.own[key] = value
	return nil
}
func (b *book) Get(_ context.Context, key string) (string, error) { return b.entry(key) }
func (b *book) Fence(context.Context) error                       { return nil }

func (b *book) mine() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own[fmt.Sprintf("ud-%d", b.rank)]
}
