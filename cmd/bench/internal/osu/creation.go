package osu

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/spelling"
	"github.com/softrnic/softrnic/mpi"
)

// A Creation is the way in which windows are created.
type Creation uint8

// The ways of creation.
const (
	Allocate Creation = iota // windows that allocate their memory
	Create                   // windows of existing memory
	Dynamic                  // windows to which memory is attached
)

// creations has the names for -w and in the output.
var creations = [...]struct{ name, title string }{
	Allocate: {"allocate", "MPI_Win_allocate"},
	Create:   {"create", "MPI_Win_create"},
	Dynamic:  {"dynamic", "MPI_Win_create_dynamic"},
}

// String returns the name for -w.
func (c Creation) String() string {
	if int(c) < len(creations) {
		return creations[c].name
	}
	return fmt.Sprintf("Creation(%d)", uint8(c))
}

// ParseCreation parses a name for -w.
func ParseCreation(name string) (Creation, error) {
	var names []string
	for i, c := range creations {
		if c.name == name {
			return Creation(i), nil
		}
		names = append(names, c.name)
	}
	return 0, fmt.Errorf("%w: window creation %q: want create, allocate or dynamic%s", ErrOptions, name, spelling.Hint(name, names...))
}

// newWindow creates a window with size bytes of local memory. It is collective. peerOffset is
// the base of displacements at the peer.
func (c Creation) newWindow(comm *mpi.Comm, size int) (win *mpi.Win, mine []byte, peerOffset int, err error) {
	if c == Allocate {
		win, mine, err = mpi.WinAllocate[byte](comm, size)
		return win, mine, 0, err
	}
	mine = alignedBytes(size)
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
