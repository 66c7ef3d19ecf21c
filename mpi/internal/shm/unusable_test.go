package shm_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// TestUnusable calls every exported function and method with nil, zero and closed segments and
// with arguments out of range: each returns, and with an error where it has one.
func TestUnusable(t *testing.T) {
	segment := func() *shm.Segment {
		s, err := shm.Create(4096)
		require.NoError(t, err)
		return s
	}
	s := &misuse.Surface{
		Dir:   ".",
		Funcs: map[string]any{"Open": shm.Open, "BoardSize": shm.BoardSize},
		Types: map[string][]misuse.Receiver{
			"Segment": {{Name: "closed", Make: func() any {
				s := segment()
				require.NoError(t, s.Unlink())
				require.NoError(t, s.Close())
				return s
			}}},
		},
		Values: []any{"board1-/etc/passwd", "board1-"},
		Except: map[string]string{
			"Create":   "takes memory of any size that is there: sizes below 1 are tried by themselves",
			"NewBoard": "panics as a slice of memory that is too short does: package mpi makes both by one BoardSize",
			"Board":    "comes of NewBoard alone, and panics as an index of a slice does for ranks that are not there",
		},
		Errors: []error{shm.ErrUnavailable, os.ErrClosed},
		Quiet:  map[string]string{"Segment.Close": "may be called again"},
	}
	if _, err := shm.Create(4096); err != nil {
		t.Skip("no shared memory: ", err)
	}
	s.Check(t)
	for _, size := range []int{0, -1, math.MinInt} {
		_, err := shm.Create(size)
		require.ErrorIs(t, err, shm.ErrUnavailable)
	}
}
