//go:build linux

package uverbs

import (
	"fmt"
	"io"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// A commandFile is an open /dev/infiniband/uverbs0. Each write(2) is a command, and the kernel
// stores the response at an address in it. Tests replace the system calls.
type commandFile struct {
	mu     sync.RWMutex // held for writing by Close
	fd     int          // -1 if closed
	write  func(fd int, command []byte) (int, error)
	mmap   func(fd int, offset int64, length, prot, flags int) ([]byte, error)
	munmap func(b []byte) error
	close  func(fd int) error
}

// openCommandFile opens a device node.
func openCommandFile(path string) (*commandFile, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &commandFile{fd: fd, write: syscall.Write, mmap: unix.Mmap, munmap: unix.Munmap, close: unix.Close}, nil
}

// maxCommand bounds the bytes of a command, and of a response.
const maxCommand = 256

// An exchange has the memory of a command and of its response. The kernel stores the response at an
// address, so that it must not be on a stack, which Go moves.
type exchange struct{ command, response [maxCommand]byte }

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// none is the body or the response of a command without one.
type none struct{}

// execute executes a command. Body and response are structures of the ABI, or none.
func execute[B, R any](f *commandFile, command uint32, body *B, response *R) error {
	x := exchanges.Get().(*exchange)
	defer exchanges.Put(x)
	answer := x.response[:unsafe.Sizeof(*response)]
	clear(answer)
	if err := f.sendCommand(encodeCommand(x.command[:0], command, bytesOf(body), answer)); err != nil {
		return err
	}
	copy(bytesOf(response), answer)
	return nil
}

// encodeCommand appends a command to b. The response must be on the heap and be kept alive.
func encodeCommand(b []byte, command uint32, body, response []byte) []byte {
	h := commandHeader{command: command, outWords: uint16(len(response) / 4)}
	length := int(unsafe.Sizeof(h)) + len(body)
	if len(response) > 0 {
		length += 8
	}
	h.inWords = uint16(length / 4)
	b = append(b, bytesOf(&h)...)
	if len(response) > 0 {
		address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(response))))
		b = append(b, bytesOf(&address)...)
	}
	return append(b, body...)
}

// sendCommand writes an encoded command.
func (f *commandFile) sendCommand(command []byte) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for {
		if f.fd < 0 {
			return verbs.ErrClosed
		}
		n, err := f.write(f.fd, command)
		switch {
		case err == syscall.EINTR: // before the command was executed
			continue
		case err != nil:
			return err
		case n != len(command):
			return fmt.Errorf("command of %d bytes, of which the kernel took %d: %w", len(command), n, io.ErrShortWrite)
		}
		return nil
	}
}

// bytesOf returns the memory of a structure of the ABI, which has no implicit padding.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// Close closes the file when no command is in progress. The kernel destroys its objects when their
// queues are unmapped, too.
func (f *commandFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := f.fd
	f.fd = -1
	return f.close(fd)
}

// mapQueue maps a queue that the kernel has created.
func (f *commandFile) mapQueue(q queueInfo) (*ring, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return nil, verbs.ErrClosed
	}
	memory, err := f.mmap(f.fd, int64(q.offset), int(q.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map queue of %d bytes at offset %#x: %w", q.size, q.offset, err)
	}
	r, err := newRing(memory)
	if err != nil {
		return nil, fmt.Errorf("%w (unmap: %v)", err, f.munmap(memory))
	}
	return r, nil
}

// unmapQueue undoes mapQueue. The ring must not be used again; it may be nil.
func (f *commandFile) unmapQueue(r *ring) error {
	if r == nil {
		return nil
	}
	return f.munmap(r.memory)
}
