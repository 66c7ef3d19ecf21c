package broker

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// SlotBits is the number of top bits of a queue pair number or communication ID that are the
// slot.
const SlotBits = 6

// Slots is the number of slots.
const Slots = 1 << SlotBits

const (
	qpnShift = 24 - SlotBits // position of the slot in a queue pair number
	idShift  = 32 - SlotBits // position of the slot in a communication ID
)

// QPNRange returns the first queue pair number of a slot, and the number of them.
func QPNRange(slot int) (first, count uint32) { return uint32(slot) << qpnShift, 1 << qpnShift }

// QPNSlot returns the slot of a queue pair number.
func QPNSlot(qpn uint32) int { return int(qpn & wire.QPNMask >> qpnShift) }

// Causes of an Error.
var (
	ErrForeign  = errors.New("broker: the address belongs to another user") // Is os.ErrPermission
	ErrFull     = errors.New("broker: all slots are in use")
	ErrVersion  = errors.New("broker: the address belongs to processes with another version of this library")
	ErrServices = errors.New("broker: too many services")
	ErrClosed   = errors.New("broker: closed")
)

// An Error is the error of an operation on a shared address.
type Error struct {
	Addr   netip.AddrPort
	Op     string // "join", "register service", ...
	Detail string // values, or ""
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("shared address %v: %s: %v", e.Addr, e.Op, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
