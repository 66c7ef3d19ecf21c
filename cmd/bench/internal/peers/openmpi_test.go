package peers

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOpenMPI(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := NewOpenMPI(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	tests := []string{"latency", "put-bandwidth", "alltoall"}
	if !testing.Short() {
		tests = append(tests, "rate", "get", "barrier")
	}
	for _, test := range tests {
		v, err := o.Measure(ctx, 2, test, 64, 3)
		require.NoError(t, err)
		require.Positive(t, v)
	}
	_, err = o.Measure(ctx, 1, "nothing", 1, 1)
	require.Error(t, err)
}
