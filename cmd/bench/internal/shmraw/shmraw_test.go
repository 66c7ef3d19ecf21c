//go:build linux

package shmraw_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/shmraw"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// TestSession measures each kind, with messages of a record and of many.
func TestSession(t *testing.T) {
	s, err := shmraw.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	var rounds []measure.Round
	for _, size := range []int{1, 8, 4096, 1 << 20} {
		rounds = append(rounds, s.RingLatencyRounds(size, 100), s.RingRounds(size, 5*time.Millisecond))
	}
	v, err := measure.Alternate(t.Context(), 2, append(rounds, s.FlagRounds(100))...)
	require.NoError(t, err)
	for _, figures := range v {
		require.Positive(t, figures[0])
	}
}

func ExampleOpen() {
	ctx := context.Background()
	s, err := shmraw.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	half, err := s.FlagRounds(1000)(ctx)
	fmt.Println(half > 0, err)
	// Output: true <nil>
}
