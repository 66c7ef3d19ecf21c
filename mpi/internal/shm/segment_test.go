package shm_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// create creates a segment that is removed after the test.
func create(t testing.TB, size int) *shm.Segment {
	t.Helper()
	s, err := shm.Create(size)
	if runtime.GOOS == "windows" {
		require.ErrorIs(t, err, shm.ErrUnavailable)
		t.Skip("Windows has none")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSegment(t *testing.T) {
	const size = 3 * 4096 // not a multiple of the page size on every system
	a := create(t, size)
	require.Equal(t, make([]byte, size), a.Bytes())
	b, err := shm.Open(a.Name(), size)
	require.NoError(t, err)
	a.Bytes()[5], b.Bytes()[size-1] = 1, 2
	require.EqualValues(t, 1, b.Bytes()[5])
	require.EqualValues(t, 2, a.Bytes()[size-1])

	_, err = shm.Open(a.Name(), size+1)
	require.ErrorIs(t, err, shm.ErrUnavailable)
	require.ErrorContains(t, err, "want a regular file of 12289 bytes")
	require.NoError(t, a.Unlink())
	_, err = shm.Open(a.Name(), size)
	require.ErrorIs(t, err, shm.ErrUnavailable)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, a.Unlink(), os.ErrClosed)
	a.Bytes()[6] = 3
	require.EqualValues(t, 3, b.Bytes()[6], "existing mappings remain")
	require.NoError(t, b.Close())
	require.Nil(t, b.Bytes())
}

// TestSegmentNames checks that only names of segments of this package are accepted.
func TestSegmentNames(t *testing.T) {
	a := create(t, 64)
	defer func() { require.NoError(t, a.Unlink()) }()
	for _, name := range []string{"", ".", "passwd", "board1-", "board1-../etc/passwd", "board1-1-1-1", "board1-1--1", "board1-+1-1",
		filepath.Join("..", a.Name()), a.Name() + "/..", a.Name() + "x"} {
		_, err := shm.Open(name, 64)
		require.ErrorIs(t, err, shm.ErrUnavailable, name)
	}
}

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
