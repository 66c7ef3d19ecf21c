package pt2pt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// longSelf is a number of int64 of which a message to the own rank is not copied: its send waits.
const longSelf = 4096

// newSelf returns a communicator of a rank alone.
func newSelf(t *testing.T, check bool) *Comm {
	e, err := engine.New(0, 1, nil)
	require.NoError(t, err)
	base := &comm.Comm{Usable: func() error { return nil }, Fail: failCall}
	base.Init(e, comm.SelfID, "self", nil, 0, 1)
	return NewJob(check).NewComm(base)
}

func failCall(op, args string, err error) error { return fmt.Errorf("%s %s: %w", op, args, err) }
