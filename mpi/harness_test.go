package mpi_test

import (
	"errors"
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/wiretest"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func open() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }

// impaired opens devices with impairments, and returns their faults so far.
func impaired(spec string) (open func() (verbs.Device, error), faults func() rnic.FaultCounters) {
	var mu sync.Mutex
	var devs []*rnic.Device
	open = func() (verbs.Device, error) {
		d, err := rnic.Open(rnic.Options{Impair: spec})
		mu.Lock()
		defer mu.Unlock()
		devs = append(devs, d)
		return d, err
	}
	return open, func() (sum rnic.FaultCounters) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range devs {
			counters.Add(&sum, d.Inspect().Faults.Counters)
		}
		return sum
	}
}

// job runs f on n ranks in this process, each with a device of its own.
func job(t testing.TB, n int, o mpi.Options, f func(w mpi.World) error) {
	t.Helper()
	jobOn(t, open, n, o, f)
}

// grace bounds the time of the other ranks after one has failed, because they may wait for it
// forever.
const grace = 5 * time.Second

// jobOn is job with devices of the function open.
func jobOn(t testing.TB, open func() (verbs.Device, error), n int, o mpi.Options, f func(w mpi.World) error) {
	t.Helper()
	require.NoError(t, pmi.RunLocal(n, grace, func(m pmi.Manager) error {
		err := errors.New("a test of it has failed")
		defer func() {
			if err != nil {
				_ = m.Abort(1, err.Error())
			}
		}()
		o := o
		o.Manager = m
		err = rank(open, o, f)
		return err
	}))
}

// eachRank calls f once for each of n ranks of a job, in separate goroutines, with the options of
// the rank, and returns when all calls have returned. Unlike job it allows errors.
func eachRank(n int, o mpi.Options, f func(rank int, o mpi.Options)) {
	var all sync.WaitGroup
	for i, m := range pmi.NewLocal(n) {
		o := o
		o.Manager = m
		all.Go(func() { f(i, o) })
	}
	all.Wait()
}

func rank(open func() (verbs.Device, error), o mpi.Options, f func(w mpi.World) error) error {
	w, err := mpi.Init(open, o)
	if err == nil {
		err = f(w)
	}
	if err == nil {
		err = w.Finalize()
	}
	return err
}

// TestMain reduces the number of programs that rapid draws, unless the command line sets it. The
// program also runs as the ranks that tests start.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(playRank(role))
	}
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	wiretest.SkipExceptions("mpi")
	os.Exit(m.Run())
}
