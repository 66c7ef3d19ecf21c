package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A table has the slots, services and connections of an address, in memory that the processes share.
//
//	0  version                  64  state of each slot, a byte
//	4  slot taken last         128  services: ID, 8 bytes; slot + 1, a byte, 0 for none
//
// It is changed with a record lock held, which the system releases if the process ends in the
// middle. Each change leaves a table that is valid, so that the next change repairs the rest.
type table struct {
	fd  int
	mu  sync.Mutex // the record lock does not exclude goroutines
	mem []byte
}

// Layout of the table.
const (
	versionOffset  = 0
	lastSlotOffset = 4
	slotsOffset    = 64
	servicesOffset = 128
	serviceBytes   = 16
	maxServices    = 1016
)

// States of a slot.
const (
	slotUsed    = 1 << 0
	slotManager = 1 << 1 // has a connection manager
)

// newTable returns an empty table.
func newTable() (*table, error) {
	fd, err := unix.MemfdCreate("softrnic", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL) // vm.memfd_noexec may require it
	if err == unix.EINVAL {                                                        // before Linux 6.3
		fd, err = unix.MemfdCreate("softrnic", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	if err := unix.Ftruncate(fd, tableBytes); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("ftruncate", err)
	}
	t, err := mapFile(fd)
	if err != nil {
		return nil, err
	}
	binary.NativeEndian.PutUint32(t.mem[versionOffset:], protocolVersion)
	return t, nil
}

// mapTable returns the table in a file that another process has made.
func mapTable(fd int) (*table, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size != tableBytes {
		unix.Close(fd)
		return nil, fmt.Errorf("%w: table of %d bytes, want %d", ErrVersion, st.Size, tableBytes)
	}
	t, err := mapFile(fd)
	if err != nil {
		return nil, err
	}
	if v := binary.NativeEndian.Uint32(t.mem[versionOffset:]); v != protocolVersion {
		t.close()
		return nil, fmt.Errorf("%w: table of version %d, want %d", ErrVersion, v, protocolVersion)
	}
	return t, nil
}

func mapFile(fd int) (*table, error) {
	mem, err := unix.Mmap(fd, 0, tableBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("mmap", err)
	}
	return &table{fd: fd, mem: mem}, nil
}

func (t *table) close() {
	_ = unix.Munmap(t.mem) // mapped once
	unix.Close(t.fd)
}

// lockTimeout bounds the wait for a process that is stopped in the middle of a change.
const lockTimeout = 5 * time.Second

// lock locks the table against other processes and goroutines.
func (t *table) lock() error {
	t.mu.Lock()
	deadline := time.Now().Add(lockTimeout)
	for delay := 50 * time.Microsecond; ; delay = min(2*delay, 10*time.Millisecond) {
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		err := unix.FcntlFlock(uintptr(t.fd), unix.F_SETLK, &lock)
		switch {
		case err == nil:
			return nil
		case err != unix.EAGAIN && err != unix.EACCES && err != unix.EINTR:
			t.mu.Unlock()
			return os.NewSyscallError("fcntl F_SETLK", err)
		case time.Now().After(deadline):
			t.mu.Unlock()
			lock.Type = unix.F_WRLCK
			_ = unix.FcntlFlock(uintptr(t.fd), unix.F_GETLK, &lock) // 0 if it fails
			return fmt.Errorf("table of slots: locked for %v by process %d: %w", lockTimeout, lock.Pid, os.ErrDeadlineExceeded)
		}
		time.Sleep(delay)
	}
}

func (t *table) unlock() {
	lock := unix.Flock_t{Type: unix.F_UNLCK}
	_ = unix.FcntlFlock(uintptr(t.fd), unix.F_SETLK, &lock) // cannot fail for a lock that is held
	t.mu.Unlock()
}

// nextSlot returns the slot after the one that the last call returned, in any process.
func (t *table) nextSlot() int {
	slot := (int(t.mem[lastSlotOffset]) + 1) % Slots
	t.mem[lastSlotOffset] = byte(slot)
	return slot
}

func (t *table) markUsed(slot int) { t.mem[slotsOffset+slot] = slotUsed }

func (t *table) isUsed(slot int) bool { return t.mem[slotsOffset+slot]&slotUsed != 0 }

// usedSlots returns the slots in use.
func (t *table) usedSlots() (list []int) {
	for slot := range Slots {
		if t.isUsed(slot) {
			list = append(list, slot)
		}
	}
	return list
}

// clearSlot makes a slot unused, and removes its services and connections.
func (t *table) clearSlot(slot int) {
	t.mem[slotsOffset+slot] = 0
	t.clearConns(slot)
	for i := range maxServices {
		if _, owner, used := t.service(i); used && owner == slot {
			t.entry(i)[8] = 0
		}
	}
}

func (t *table) setManager(slot int, on bool) {
	t.mem[slotsOffset+slot] &^= slotManager
	if on {
		t.mem[slotsOffset+slot] |= slotManager
	}
}

func (t *table) hasManager(slot int) bool { return t.mem[slotsOffset+slot]&slotManager != 0 }

// managerSlot returns the first slot with a connection manager, or 0 if there is none.
func (t *table) managerSlot() int {
	for slot := range Slots {
		if t.hasManager(slot) {
			return slot
		}
	}
	return 0
}

// entry returns the bytes of a service.
func (t *table) entry(i int) []byte { return t.mem[servicesOffset+i*serviceBytes:][:serviceBytes] }

// service returns a service and its slot. used is false for a free entry.
func (t *table) service(i int) (id uint64, slot int, used bool) {
	e := t.entry(i)
	return binary.NativeEndian.Uint64(e), int(e[8]-1) % Slots, e[8] != 0
}

// findService returns the slot that has registered a service.
func (t *table) findService(service uint64) (slot int, found bool) {
	for i := range maxServices {
		if id, slot, used := t.service(i); used && id == service {
			return slot, true
		}
	}
	return 0, false
}

// addService registers a service that no slot has.
func (t *table) addService(service uint64, slot int) error {
	if service>>32 != 0 {
		return fmt.Errorf("service 0x%x: want an ID of 32 bits: %w", service, os.ErrInvalid)
	}
	for i := range maxServices {
		if e := t.entry(i); e[8] == 0 {
			binary.NativeEndian.PutUint64(e, service)
			e[8] = byte(slot + 1)
			return nil
		}
	}
	return fmt.Errorf("%w: the processes of the address have %d", ErrServices, maxServices)
}

// removeService removes a service of a slot.
func (t *table) removeService(service uint64, slot int) {
	for i := range maxServices {
		if id, owner, used := t.service(i); used && owner == slot && id == service {
			t.entry(i)[8] = 0
		}
	}
}

// services returns the services of each slot.
func (t *table) services() (list [Slots][]uint32) {
	for i := range maxServices {
		if id, slot, used := t.service(i); used {
			list[slot] = append(list[slot], uint32(id))
		}
	}
	return list
}
