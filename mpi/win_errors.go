package mpi

import (
	"errors"

	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Errors of windows. They come wrapped in an *Error.
var (
	ErrWin    = errors.New("invalid window")            // MPI_ERR_WIN
	ErrEpoch  = errors.New("wrong RMA synchronization") // MPI_ERR_RMA_SYNC
	ErrRange  = rma.ErrRange                            // MPI_ERR_RMA_RANGE
	ErrAttach = errors.New("invalid attach or detach")  // MPI_ERR_RMA_ATTACH
)
