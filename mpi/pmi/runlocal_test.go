package pmi_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// Every rank sends its name to the next one.
func ExampleRunLocal() {
	err := pmi.RunLocal(2, time.Second, func(m pmi.Manager) error {
		ctx := context.Background()
		if err := errors.Join(m.Put(fmt.Sprint("name-", m.Rank()), fmt.Sprint("rank ", m.Rank())), m.Fence(ctx)); err != nil {
			return err
		}
		name, err := m.Get(ctx, fmt.Sprint("name-", (m.Rank()+1)%m.Size()))
		if m.Rank() == 0 {
			fmt.Println("next to me is", name)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// next to me is rank 1
	// <nil>
}

func TestRunLocal(t *testing.T) {
	var ranks atomic.Int64
	require.NoError(t, pmi.RunLocal(4, time.Minute, func(m pmi.Manager) error {
		ranks.Add(1 << m.Rank())
		return m.Fence(t.Context())
	}))
	require.EqualValues(t, 0b1111, ranks.Load())
}

// TestRunLocalFails checks that RunLocal returns although ranks do not end after another has
// failed.
func TestRunLocalFails(t *testing.T) {
	wrong := errors.New("two and two made five")
	over, left := make(chan struct{}), make(chan struct{})
	err := pmi.RunLocal(2, time.Millisecond, func(m pmi.Manager) error {
		if m.Rank() == 0 {
			return wrong
		}
		defer close(left)
		<-over
		return nil
	})
	require.ErrorIs(t, err, wrong)
	require.EqualError(t, err, "rank 0: two and two made five\nrank 1: still running 1ms after another rank failed")
	close(over)
	<-left
}

// TestRunLocalLeft ends the test in a rank.
func TestRunLocalLeft(t *testing.T) {
	err := pmi.RunLocal(1, time.Minute, func(pmi.Manager) error {
		runtime.Goexit()
		return nil
	})
	require.EqualError(t, err, "rank 0: f called runtime.Goexit")
}

// TestMisuse calls every exported function and method with arguments out of range.
func TestMisuse(t *testing.T) {
	s := &misuse.Surface{
		Dir:    ".",
		Funcs:  map[string]any{"RunLocal": pmi.RunLocal, "Open": pmi.Open},
		Except: map[string]string{"NewLocal": "panics for less than one rank, as its comment says"},
	}
	s.Check(t)
}
