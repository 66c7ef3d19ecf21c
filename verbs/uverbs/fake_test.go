//go:build linux

package uverbs

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// A fakeKernel answers commands in the place of a kernel, as rxe of Linux 6.1 does.
type fakeKernel struct {
	t        *testing.T
	commands [][]byte // as written
	errno    map[uint32]syscall.Errno
	short    bool // accept a byte less
	vendor   uint32
	async    *os.File            // end at which the test writes events
	channels []*os.File          // the same of completion channels
	queues   map[uint64]*ring    // by offset
	handles  map[uint32][]uint64 // userHandle of the objects that were created, by command
	states   map[uint32]uint8    // of queue pairs
	offset   uint64
}

func newFakeKernel(t *testing.T) *fakeKernel {
	return &fakeKernel{t: t, errno: map[uint32]syscall.Errno{}, vendor: rxeVendor, queues: map[uint64]*ring{}, handles: map[uint32][]uint64{}, states: map[uint32]uint8{}}
}

// file returns a command file whose system calls reach the fake.
func (k *fakeKernel) file() *commandFile {
	return &commandFile{fd: 1000, write: k.write, mmap: k.mmap, munmap: func([]byte) error { return nil }, close: func(int) error { return nil }}
}

// openDevice opens a device of the fake.
func (k *fakeKernel) openDevice() (*device, error) {
	d := newDevice("rxe0", k.file(), fakeSystem(k.t))
	if err := d.start(rxeABIVersion, netip.Addr{}); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open is openDevice for tests in which it succeeds.
func (k *fakeKernel) open() *device {
	k.t.Helper()
	d, err := k.openDevice()
	require.NoError(k.t, err)
	k.t.Cleanup(func() { require.NoError(k.t, d.Close()) })
	return d
}

// fakeSystem returns the files of a device rxe0 with a link-local and an IPv4 address.
func fakeSystem(t *testing.T) system {
	s := system{class: t.TempDir(), nodes: t.TempDir()}
	for name, text := range map[string]string{
		"infiniband_verbs/abi_version":                "6",
		"infiniband_verbs/uverbs0/ibdev":              "rxe0",
		"infiniband_verbs/uverbs0/abi_version":        "2",
		"infiniband/rxe0/ports/1/gids/0":              "fe80:0000:0000:0000:0000:0000:0000:0001",
		"infiniband/rxe0/ports/1/gids/1":              "0000:0000:0000:0000:0000:ffff:c000:0202",
		"infiniband/rxe0/ports/1/gids/2":              "0000:0000:0000:0000:0000:0000:0000:0000",
		"infiniband/rxe0/ports/1/gid_attrs/types/0":   "RoCE v2",
		"infiniband/rxe0/ports/1/gid_attrs/types/1":   "RoCE v2",
		"infiniband_verbs/uverbs1/ibdev":              "mlx5_0",
		"infiniband_verbs/uverbs1/abi_version":        "1",
		"infiniband/mlx5_0/ports/1/gids/0":            "fe80:0000:0000:0000:0000:0000:0000:0002",
		"infiniband/mlx5_0/ports/1/gid_attrs/types/0": "IB/RoCE v1",
	} {
		writeFile(t, s, name, text)
	}
	return s
}

func writeFile(t *testing.T, s system, name, text string) {
	path := filepath.Join(s.class, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
}

// write is write(2) of a command.
func (k *fakeKernel) write(fd int, b []byte) (int, error) {
	require.Equal(k.t, 1000, fd)
	k.commands = append(k.commands, append([]byte(nil), b...))
	h := *(*commandHeader)(unsafe.Pointer(&b[0]))
	require.Len(k.t, b, 4*int(h.inWords))
	if errno := k.errno[h.command]; errno != 0 {
		return 0, errno
	}
	if k.short {
		return len(b) - 1, nil
	}
	body := b[8:]
	if h.outWords > 0 {
		body = b[16:]
	}
	if answer := k.answer(h.command, body); answer != nil {
		require.Len(k.t, answer, 4*int(h.outWords), "response to command %d", h.command)
		address := *(*unsafe.Pointer)(unsafe.Pointer(&b[8]))
		copy(unsafe.Slice((*byte)(address), len(answer)), answer)
	}
	return len(b), nil
}

// answer returns the response to a command, or nil.
func (k *fakeKernel) answer(command uint32, body []byte) []byte {
	switch command {
	case cmdGetContext:
		return bytesOf(&getContextResponse{asyncFD: k.pipe(&k.async)})
	case cmdQueryDevice:
		return bytesOf(&queryDeviceResponse{vendorID: k.vendor, maxQPWR: 1 << 14, maxSGE: 32, maxCQE: 1 << 15, maxQPReads: 128, maxQPInitReads: 128, maxSRQWR: 1 << 14, maxSRQSGE: 27, ports: 1})
	case cmdQueryPort:
		return bytesOf(&queryPortResponse{gids: 3, activeMTU: uint8(verbs.MTU1024), maxMTU: uint8(verbs.MTU4096), linkLayer: 2, state: uint8(verbs.PortActive)})
	case cmdCreateChannel:
		var w *os.File
		fd := k.pipe(&w)
		k.channels = append(k.channels, w)
		return bytesOf(&createChannelResponse{fd: fd})
	case cmdCreateCQ:
		c := (*createCQ)(unsafe.Pointer(&body[0]))
		k.handles[command] = append(k.handles[command], c.userHandle)
		return bytesOf(&createCQResponse{handle: 7, depth: c.depth, queue: k.newQueue(64, c.depth)})
	case cmdResizeCQ:
		return bytesOf(&resizeCQResponse{depth: 64, queue: k.newQueue(64, 64)})
	case cmdCreateSRQ:
		return bytesOf(&createSRQResponse{handle: 8, maxWR: 16, maxSGE: 2, queue: k.newQueue(128, 16), queueNumber: 3})
	case cmdCreateQP:
		c := (*createQP)(unsafe.Pointer(&body[0]))
		k.handles[command] = append(k.handles[command], c.userHandle)
		return bytesOf(&createQPResponse{handle: 9, number: 0x11, maxSendWR: c.maxSendWR, maxRecvWR: c.maxRecvWR, maxSendSGE: 4, maxRecvSGE: 4, maxInline: 64,
			recv: k.newQueue(128, c.maxRecvWR), send: k.newQueue(512, c.maxSendWR)})
	case cmdModifyQP:
		c := (*modifyQP)(unsafe.Pointer(&body[0]))
		k.states[c.handle] = c.state
		return nil
	case cmdQueryQP:
		c := (*queryQP)(unsafe.Pointer(&body[0]))
		return bytesOf(&queryQPResponse{state: k.states[c.handle]})
	case cmdRegMR:
		return bytesOf(&registerMRResponse{handle: 5, lkey: 0x1200, rkey: 0x1201})
	case cmdCreateAH:
		return bytesOf(&createAHResponse{handle: 6, number: 1})
	case cmdAllocMW:
		return bytesOf(&allocMWResponse{handle: 4, rkey: 0x3400})
	}
	return nil // zeros, or no response
}

// pipe returns a descriptor for events, and the end at which the test writes them.
func (k *fakeKernel) pipe(w **os.File) uint32 {
	var fds [2]int
	require.NoError(k.t, syscall.Pipe2(fds[:], syscall.O_CLOEXEC))
	*w = os.NewFile(uintptr(fds[1]), "events")
	k.t.Cleanup(func() { (*w).Close() })
	return uint32(fds[0])
}

// newQueue creates a queue for at least n elements.
func (k *fakeKernel) newQueue(size, n uint32) queueInfo {
	elements := uint32(1)
	for elements < n+1 {
		elements *= 2
	}
	memory := make([]byte, ringElements+elements*size)
	*(*uint32)(unsafe.Pointer(&memory[ringMask])) = elements - 1
	for s := size; s > 1; s /= 2 {
		*(*uint32)(unsafe.Pointer(&memory[ringShift]))++
	}
	r, err := newRing(memory)
	require.NoError(k.t, err)
	k.offset += 4096
	k.queues[k.offset] = r
	return queueInfo{offset: k.offset, size: uint32(len(memory))}
}

func (k *fakeKernel) mmap(_ int, offset int64, length, _, _ int) ([]byte, error) {
	r := k.queues[uint64(offset)]
	require.NotNil(k.t, r, "queue at offset %d", offset)
	require.Len(k.t, r.memory, length)
	return r.memory, nil
}

// last returns the header, the body and the number of the last command.
func (k *fakeKernel) last() []byte { return k.commands[len(k.commands)-1] }

// complete produces a completion in a queue.
func (k *fakeKernel) complete(c verbs.CQ, e completionElement) {
	r := c.(*completionQueue).ring
	at := r.producer.Load()
	*(*completionElement)(r.elementAt(at)) = e
	r.producer.Store((at + 1) & r.mask)
}
