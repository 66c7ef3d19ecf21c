package mpi

import (
	"errors"

	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Errors of windows. They come wrapped in an *Error.
var (
	ErrWin    = errors.New("no such window")                               // MPI_ERR_WIN
	ErrEpoch  = errors.New("the epoch that the window is in forbids that") // MPI_ERR_RMA_SYNC
	ErrRange  = rma.ErrRange                                               // MPI_ERR_RMA_RANGE
	ErrAttach = errors.New("the memory cannot be attached, or detached")   // MPI_ERR_RMA_ATTACH
)
