package osu

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
)

// Creation is how windows are made.
type Creation uint8

// The ways.
const (
	Allocate Creation = iota // windows that bring their memory
	Create                   // windows of memory that is there
	Dynamic                  // windows that it is attached to
)

// creations are the names for -w, and in the output.
var creations = [...]struct{ name, title string }{
	Allocate: {"allocate", "MPI_Win_allocate"},
	Create:   {"create", "MPI_Win_create"},
	Dynamic:  {"dynamic", "MPI_Win_create_dynamic"},
}

// String is the name for -w.
func (c Creation) String() string {
	if int(c) < len(creations) {
		return creations[c].name
	}
	return fmt.Sprintf("Creation(%d)", uint8(c))
}

// ParseCreation reads a name for -w.
func ParseCreation(name string) (Creation, error) {
	for i, c := range creations {
		if c.name == name {
			return Creation(i), nil
		}
	}
	return 0, fmt.Errorf("%w: windows made by %q: want create, allocate or dynamic", ErrOptions, name)
}

// newWindow makes a window with so many bytes of memory here, which all ranks do
// together. There is what the other rank's displacements count from.
func (c Creation) newWindow(comm *mpi.Comm, room int) (win *mpi.Win, mine []byte, there int, err error) {
	if c == Allocate {
		win, mine, err = mpi.WinAllocate[byte](comm, room)
		return win, mine, 0, err
	}
	mine = alignedBytes(room)
	if c == Create {
		win, err = mpi.WinCreate(comm, mine)
		return win, mine, 0, err
	}
	if win, err = mpi.WinCreateDynamic(comm); err != nil {
		return nil, nil, 0, err
	}
	at, err := mpi.WinAttach(win, mine)
	if err != nil {
		return nil, nil, 0, err
	}
	all := make([]int, comm.Size())
	err = comm.Allgather(mpi.Of([]int{at}), mpi.Of(all))
	return win, mine, all[1-comm.Rank()], err
}
