package ud_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

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
	require.NoError(t, pmi.RunLocal(n, 5*time.Second, func(m pmi.Manager) error {
		o := o
		o.Manager = m
		var dev *rnic.Device
		w, err := mpi.Init(func() (_ verbs.Device, err error) {
			dev, err = rnic.Open(rnic.Options{Impair: impair(m.Rank())})
			return dev, err
		}, o)
		if err == nil {
			err = f(w, dev)
		}
		switch err {
		case nil:
			return w.Finalize()
		case errLeave:
			return dev.Close()
		}
		return err
	}))
}

// errLeave is returned by f if not all ranks can finalize.
var errLeave = errors.New("leave")

func nothing(int) string { return "" }

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
