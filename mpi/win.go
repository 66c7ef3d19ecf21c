package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
)

// Win is a window: memory of the ranks of a communicator that other ranks access by one-sided
// operations (MPI_Win). The target sees the results of operations, and the origin its stores,
// in the order of the synchronization calls: Fence; Post, Start, Complete and Wait; Lock and
// Unlock.
//
// Put, Get, Accumulate and the like start operations and do not wait. Their buffers belong to
// the window until a synchronization call, or Wait of their Request, completes them.
//
// # Atomicity
//
// Accumulate, GetAccumulate, FetchAndOp and CompareAndSwap on elements of one kind at one place
// are atomic with each other, for all origins. Single elements of Int64 and Uint64, aligned to
// 8 bytes, use the atomics of the adapter if it has the operation; else the target uses atomics
// of its processor. Both are atomic with each other and with package sync/atomic. The target
// combines elements of other kinds, and unaligned words, one call after the other. Put and Get
// are not atomic.
type Win struct {
	comm *Comm // duplicate of the communicator
	w    *onesided.Window
}

// WinCreate makes a window of memory of each rank of the communicator (MPI_Win_create). s may
// be empty, and differ in length and type between ranks. Displacements count elements of s. It
// may overlap other windows. Values with pointers are not allowed.
//
// The memory belongs to the window until Free: see Win.
func WinCreate[T any](c *Comm, s []T) (*Win, error) {
	mem, kind, err := datatype.Raw(s)
	w, err := c.newWindow(onesided.Memory{Bytes: mem, Kind: kind, Unit: sizeOf[T](), Err: err})
	if err != nil {
		return nil, c.fail("win-create", "", err)
	}
	return w, nil
}

// WinAllocate is WinCreate of new memory for n elements (MPI_Win_allocate).
func WinAllocate[T any](c *Comm, n int) (*Win, []T, error) {
	s, err := allocateElements[T](n)
	mem, kind, rawErr := datatype.Raw(s)
	w, err := c.newWindow(onesided.Memory{Bytes: mem, Kind: kind, Unit: sizeOf[T](), Err: cmp.Or(err, rawErr)})
	if err != nil {
		return nil, nil, c.fail("win-allocate", "", err)
	}
	return w, s, nil
}

// WinCreateDynamic makes a window without memory (MPI_Win_create_dynamic). Each rank attaches
// memory with WinAttach and detaches it with Win.Detach at any time. Displacements of
// operations are addresses in bytes, which WinAttach and Address return at the target; the
// target sends them to the origins. A dynamic window accepts elements of all kinds, and its
// Size is 0.
//
// An operation must be inside of one attached slice, else it fails with ErrRange, which names
// the memory attached nearby. The first operation on a slice waits for a lookup at the target.
func WinCreateDynamic(c *Comm) (*Win, error) {
	w, err := c.newWindow(onesided.Memory{Kind: datatype.Byte, Unit: 1, Dynamic: true})
	if err != nil {
		return nil, c.fail("win-create-dynamic", "", err)
	}
	return w, nil
}

// allocateElements returns memory for n elements, or an error if n is too large or negative.
func allocateElements[T any](n int) (s []T, err error) {
	defer func() {
		if recover() != nil { // make panics: n is out of range
			err = fmt.Errorf("%w: %d elements of %d bytes", ErrCount, n, sizeOf[T]())
		}
	}()
	return make([]T, n), nil
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// newWindow makes a window of a rank's memory, collectively.
func (c *Comm) newWindow(m onesided.Memory) (*Win, error) {
	if err := c.checkUsable(); err != nil {
		return nil, err
	}
	own, err := c.deriveComm("win-create", c.Name()+".win", comm.RanksBelow(c.base.Size))
	if err != nil {
		return nil, err
	}
	w, err := c.world.Windows.CreateWindow(&own.base, m, func(mine, theirs []byte) error { return c.Alltoall(Of(mine), Of(theirs)) })
	if err != nil {
		_ = own.Free()
		return nil, err
	}
	return &Win{own, w}, nil
}

// Free frees a window (MPI_Win_free). All ranks call it outside of epochs; it returns after all
// have called it. It detaches attached memory. If a rank is lost Free does not wait. A second
// Free returns ErrWin.
func (w *Win) Free() error {
	if w.isNull() {
		return w.fail("win-free", errNullWin)
	}
	freed, err := w.comm.world.Windows.FreeWindow(w.w)
	if freed {
		err = errors.Join(err, w.comm.Free())
	}
	return w.fail("win-free", err)
}

// Address returns the address of the first element of s, by which other ranks name it in
// dynamic windows (MPI_Get_address). Element i is at Address plus i times the element size. The
// address can be sent as a number and is valid at its rank only.
func Address[T any](s []T) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

// WinAttach attaches memory to a dynamic window and returns its Address (MPI_Win_attach). It
// does not communicate. The memory must not overlap other attached memory, else the error is
// ErrAttach, and must not contain pointers. It belongs to the window until Detach or Free: see
// Win. An empty slice is not attached, and its address is 0.
func WinAttach[T any](w *Win, s []T) (int, error) {
	mem, _, err := datatype.Raw(s)
	if err == nil {
		err = w.asWindow().AttachMemory(mem)
	}
	if err != nil || len(mem) == 0 {
		return 0, w.fail("win-attach", err)
	}
	return Address(s), nil
}

// Detach detaches the memory at an address that WinAttach has returned (MPI_Win_detach). When
// it returns, the operations of other ranks on it are complete, and their later ones fail with
// ErrRange: it waits for a reply of each rank that has used the memory, which does not depend
// on their programs. Then the memory belongs to the program and may be attached again. Address
// 0 is ignored.
func (w *Win) Detach(addr int) error {
	if err := w.asWindow().DetachMemory(addr); err != nil {
		return w.asComm().fail("detach", fmt.Sprintf("at %d", addr), err)
	}
	return nil
}

// Size returns the length of a rank's memory in bytes (MPI_WIN_SIZE), 0 for a dynamic window,
// Undefined for a rank out of range.
func (w *Win) Size(rank int) int { return w.asWindow().SizeOf(rank) }

// Unit returns the displacement unit of a rank in bytes (MPI_WIN_DISP_UNIT), Undefined for a
// rank out of range.
func (w *Win) Unit(rank int) int { return w.asWindow().UnitOf(rank) }

// Group returns the ranks of the window (MPI_Win_get_group), the null group for the null
// window.
func (w *Win) Group() *Group { return w.asComm().Group() }

// Name returns the name of the window in errors (MPI_Win_get_name), "null" for the null window.
func (w *Win) Name() string { return w.asComm().Name() }

// SetName sets the name of the window at this rank (MPI_Win_set_name).
func (w *Win) SetName(name string) { w.asComm().SetName(name) }

// asComm returns the window's own communicator, the null communicator for the null window.
func (w *Win) asComm() *Comm {
	if w == nil {
		return nil
	}
	return w.comm
}

// asWindow returns the state of the window, nil for the null window.
func (w *Win) asWindow() *onesided.Window {
	if w == nil {
		return nil
	}
	return w.w
}

// fail returns the *Error of a call, nil if err is nil.
func (w *Win) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return w.asComm().fail(op, "", err)
}

// failTarget is fail of a call on one rank, which a preposition precedes in the error.
func (w *Win) failTarget(op, preposition string, target int, err error) error {
	if err == nil {
		return nil
	}
	return w.asComm().fail(op, fmt.Sprint(preposition, " ", target), err)
}
