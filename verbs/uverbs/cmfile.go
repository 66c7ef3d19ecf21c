//go:build linux

package uverbs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// A cmFile is an open /dev/infiniband/rdma_cm with the identifiers that were created in it.
type cmFile struct {
	file    *os.File
	conn    syscall.RawConn
	reading sync.WaitGroup // goroutine that reads events

	mu      sync.Mutex
	nextUID uint64
	ids     map[uint64]*cmEndpoint // by the handle that events carry; nil if closed
}

// openConnectionManager opens the kernel's connection manager.
func (s system) openConnectionManager() (*cmFile, error) {
	path := filepath.Join(s.nodes, "rdma_cm")
	version, err := readNumber(filepath.Join(s.class, "misc", "rdma_cm", "abi_version"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w; load the kernel's module rdma_ucm", path, err)
	case err != nil:
		return nil, err
	case version != cmABIVersion:
		return nil, fmt.Errorf("%w: ABI version %d of rdma_ucm: want %d; this kernel needs another version of this program", verbs.ErrUnsupported, version, cmABIVersion)
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; grant the user read and write access to the file", err)
		}
		return nil, err
	}
	f := &cmFile{file: file, ids: make(map[uint64]*cmEndpoint)}
	if f.conn, err = file.SyscallConn(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.reading.Go(f.readEvents)
	return f, nil
}

// A cmExchange has the memory of a command and of its response, on the heap (see exchange).
type cmExchange struct{ command, response [512]byte }

var cmExchanges = sync.Pool{New: func() any { return new(cmExchange) }}

// executeCM executes a command. address is the field of the body for the address of the response, nil
// if there is none.
func executeCM[B, R any](f *cmFile, command uint32, body *B, address *uint64, response *R) error {
	var err error
	if e := f.conn.Control(func(fd uintptr) { err = writeCM(fd, command, body, address, response) }); e != nil {
		return verbs.ErrClosed
	}
	return err
}

func writeCM[B, R any](fd uintptr, command uint32, body *B, address *uint64, response *R) error {
	x := cmExchanges.Get().(*cmExchange)
	defer cmExchanges.Put(x)
	answer := x.response[:unsafe.Sizeof(*response)]
	if address != nil {
		clear(answer)
		*address = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))
	}
	h := cmHeader{command: command, in: uint16(unsafe.Sizeof(*body)), out: uint16(len(answer))}
	b := append(append(x.command[:0], bytesOf(&h)...), bytesOf(body)...)
	for {
		_, err := syscall.Write(int(fd), b)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && address != nil {
			copy(bytesOf(response), answer)
		}
		return err
	}
}

// readEvents passes events to their identifiers until the file is closed.
func (f *cmFile) readEvents() {
	for {
		var e cmEvent
		var err error
		closed := f.conn.Read(func(fd uintptr) bool {
			var body cmGetEvent
			err = writeCM(fd, cmCmdGetEvent, &body, &body.response, &e)
			return err != syscall.EAGAIN
		})
		if closed != nil || err != nil {
			return
		}
		f.mu.Lock()
		ep := f.ids[e.uid]
		f.mu.Unlock()
		if ep != nil {
			ep.deliver(&e)
		}
	}
}

// addEndpoint registers an identifier and sets its handle.
func (f *cmFile) addEndpoint(ep *cmEndpoint) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		return verbs.ErrClosed
	}
	f.nextUID++
	ep.uid = f.nextUID
	f.ids[ep.uid] = ep
	return nil
}

// close closes the file, with which the kernel destroys all identifiers.
func (f *cmFile) close() error {
	f.mu.Lock()
	ids := f.ids
	f.ids = nil
	f.mu.Unlock()
	err := f.file.Close()
	f.reading.Wait()
	for _, ep := range ids {
		ep.deliver(nil)
	}
	return err
}

// A cmEndpoint is an identifier of the kernel's connection manager (rdma_cm_id).
type cmEndpoint struct {
	f   *cmFile
	uid uint64
	id  uint32

	mu     sync.Mutex
	queue  []cmEvent
	handle func(e *cmEvent) // receives events in place of the queue; e is nil when the file is closed
	closed bool             // the file is closed
	wake   chan struct{}    // capacity 1: queue or closed has changed
}

// newEndpoint creates an identifier in the kernel.
func (f *cmFile) newEndpoint(space uint16, kind verbs.QPType) (*cmEndpoint, error) {
	ep := &cmEndpoint{f: f, wake: make(chan struct{}, 1)}
	if err := f.addEndpoint(ep); err != nil {
		return nil, err
	}
	body := cmCreateID{uid: ep.uid, space: space, kind: uint8(kind)}
	var r cmID
	if err := executeCM(f, cmCmdCreateID, &body, &body.response, &r); err != nil {
		ep.forget()
		return nil, err
	}
	ep.id = r.id
	return ep, nil
}

// forget removes the identifier from the file.
func (ep *cmEndpoint) forget() {
	ep.f.mu.Lock()
	defer ep.f.mu.Unlock()
	delete(ep.f.ids, ep.uid)
}

// destroy destroys the identifier.
func (ep *cmEndpoint) destroy() {
	ep.forget()
	body := cmDestroyID{id: ep.id}
	_ = executeCM(ep.f, cmCmdDestroyID, &body, &body.response, new(cmDestroyIDResponse)) // fails if the file is closed
}

// deliver queues an event, or nil when the file is closed, or passes it to the handler.
func (ep *cmEndpoint) deliver(e *cmEvent) {
	ep.mu.Lock()
	handle := ep.handle
	switch {
	case e == nil:
		ep.closed = true
	case handle == nil:
		ep.queue = append(ep.queue, *e)
	}
	ep.mu.Unlock()
	if handle != nil {
		handle(e)
	}
	select {
	case ep.wake <- struct{}{}:
	default:
	}
}

// setHandler makes handle receive the queued and all later events.
func (ep *cmEndpoint) setHandler(handle func(e *cmEvent)) {
	ep.mu.Lock()
	queue, closed := ep.queue, ep.closed
	ep.queue, ep.handle = nil, handle
	ep.mu.Unlock()
	for i := range queue {
		handle(&queue[i])
	}
	if closed {
		handle(nil)
	}
}

// next waits for an event.
func (ep *cmEndpoint) next(ctx context.Context) (e cmEvent, err error) {
	for {
		ep.mu.Lock()
		if len(ep.queue) > 0 {
			e, ep.queue = ep.queue[0], ep.queue[1:]
			ep.mu.Unlock()
			return e, nil
		}
		closed := ep.closed
		ep.mu.Unlock()
		if closed {
			return e, verbs.ErrClosed
		}
		select {
		case <-ep.wake:
		case <-ctx.Done():
			return e, ctx.Err()
		}
	}
}

// bind binds the identifier to an address.
func (ep *cmEndpoint) bind(addr netip.AddrPort) error {
	body := cmBind{id: ep.id}
	body.size = body.addr.encode(addr)
	return executeCM(ep.f, cmCmdBind, &body, nil, &none{})
}

// addresses returns the local and the remote address.
func (ep *cmEndpoint) addresses() (local, remote netip.AddrPort, err error) {
	body := cmQuery{id: ep.id, option: cmQueryAddr}
	var r cmQueryAddrResponse
	err = executeCM(ep.f, cmCmdQuery, &body, &body.response, &r)
	return r.source.decode(), r.destination.decode(), err
}

// encode stores an address as a struct sockaddr_in or sockaddr_in6, and returns its length.
func (a *cmAddr) encode(addr netip.AddrPort) uint16 {
	binary.BigEndian.PutUint16(a[2:], addr.Port())
	if ip := addr.Addr().Unmap(); ip.Is4() {
		binary.NativeEndian.PutUint16(a[:], unix.AF_INET)
		copy(a[4:], ip.AsSlice())
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(a[:], unix.AF_INET6)
	copy(a[8:], addr.Addr().AsSlice())
	return unix.SizeofSockaddrInet6
}

// decode undoes encode.
func (a *cmAddr) decode() netip.AddrPort {
	port := binary.BigEndian.Uint16(a[2:])
	switch binary.NativeEndian.Uint16(a[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), port)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a[8:24])), port)
	}
	return netip.AddrPort{}
}
