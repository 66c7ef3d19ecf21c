package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// cmMu guards all objects of the connection manager: channels, ids, groups and ports. Methods and
// functions below need it unless they say otherwise. It is held for short control operations only.
var cmMu sync.Mutex

// A cmChannel is an open /dev/infiniband/rdma_cm: the kernel's side of an rdma_event_channel.
type cmChannel struct {
	fd     int      // the program's descriptor
	inode  uint64   // of the program's socket
	socket *os.File // the engine's end of the pair
	ids    map[uint32]*cmID
	events []*cmEvent
	tokens int // bytes sent for events, at most maxTokens
}

// maxTokens bounds the bytes in a channel's socket, whose buffer holds more in its default size.
// Further events get theirs when events are read.
const maxTokens = 128

// cmChannels are the open channels by the program's descriptor.
var cmChannels = map[int]*cmChannel{}

// A cmEvent is an event that the program has not read yet.
type cmEvent struct {
	id      *cmID    // counts the event
	group   *cmGroup // of multicast events
	request *cmID    // of CM_CONNECT_REQUEST: the new id
	resp    C.struct_rdma_ucm_event_resp
}

// go_cm_open opens a channel and returns its descriptor, or a negative errno.
//
//export go_cm_open
func go_cm_open(flags C.int) C.int {
	defer reportPanic()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -errnoOf(err)
	}
	fd := pair[0]
	if flags&syscall.O_CLOEXEC == 0 {
		syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0)
	}
	err = syscall.SetNonblock(pair[1], true)
	if err == nil && flags&syscall.O_NONBLOCK != 0 {
		err = syscall.SetNonblock(fd, true)
	}
	inode, ok := inodeOf(fd)
	if err != nil || !ok {
		syscall.Close(pair[0])
		syscall.Close(pair[1])
		return -C.EMFILE
	}
	ch := &cmChannel{fd: fd, inode: inode, socket: os.NewFile(uintptr(pair[1]), "rdma_cm"), ids: make(map[uint32]*cmID)}
	cmMu.Lock()
	cmChannels[fd] = ch
	cmMu.Unlock()
	go ch.awaitClose()
	return C.int(fd)
}

// inodeOf returns the inode of a socket, which tells whether a descriptor still is the one that
// go_cm_open returned.
func inodeOf(fd int) (inode uint64, ok bool) {
	var s syscall.Stat_t
	if syscall.Fstat(fd, &s) != nil || s.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return 0, false
	}
	return s.Ino, true
}

// channelOf returns the channel of a descriptor, or nil.
func channelOf(fd int) *cmChannel {
	if ch := cmChannels[fd]; ch != nil && ch.isOpen() {
		return ch
	}
	return nil
}

// isOpen reports whether the program's descriptor still is the channel's.
func (ch *cmChannel) isOpen() bool {
	inode, ok := inodeOf(ch.fd)
	return ok && inode == ch.inode
}

// go_cm_find_channel returns the handle of a channel, or 0 if the descriptor is none.
//
//export go_cm_find_channel
func go_cm_find_channel(fd C.int) C.uint64_t {
	defer reportPanic()
	cmMu.Lock()
	defer cmMu.Unlock()
	if ch := channelOf(int(fd)); ch != nil {
		return C.uint64_t(ch.inode)
	}
	return 0
}

// findChannel returns the channel of a handle, or nil if it is closed.
func findChannel(handle C.uint64_t) *cmChannel {
	for _, ch := range cmChannels {
		if ch.inode == uint64(handle) {
			return ch
		}
	}
	return nil
}

// awaitClose destroys the ids of a channel when the last descriptor of it is closed, as the kernel
// does. It acquires cmMu.
func (ch *cmChannel) awaitClose() {
	defer reportPanic()
	var b [1]byte
	for {
		if n, err := ch.socket.Read(b[:]); err != nil || n == 0 {
			break
		}
	}
	cmMu.Lock()
	defer cmMu.Unlock()
	if cmChannels[ch.fd] == ch {
		delete(cmChannels, ch.fd)
	}
	for _, id := range ch.ids {
		id.destroy()
	}
	ch.socket.Close()
}

// queue appends an event and makes the descriptor readable.
func (ch *cmChannel) queue(e *cmEvent) {
	ch.events = append(ch.events, e)
	ch.sendToken()
}

func (ch *cmChannel) sendToken() {
	if ch.tokens == maxTokens {
		return
	}
	raw, err := ch.socket.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // a closed channel needs no token
		if syscall.Sendto(int(fd), []byte{0}, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, nil) == nil {
			ch.tokens++
		}
	})
}

// go_cm_event stores the oldest event of a channel, for which the caller has taken a token. It
// returns EAGAIN if there is none.
//
//export go_cm_event
func go_cm_event(channel C.uint64_t, response unsafe.Pointer, size C.uint) (errno C.int) {
	defer endCall(&errno, debug.SetPanicOnFault(true))
	cmMu.Lock()
	defer cmMu.Unlock()
	ch := findChannel(channel)
	if ch == nil {
		return C.EBADF
	}
	ch.tokens--
	if len(ch.events) == 0 {
		return C.EAGAIN
	}
	if !isProgramRange(uintptr(response), uint64(size)) {
		ch.sendToken() // the event remains
		return C.EFAULT
	}
	e := ch.events[0]
	ch.events = ch.events[1:]
	if len(ch.events) > ch.tokens {
		ch.sendToken()
	}
	e.id.reported++
	switch {
	case e.group != nil:
		e.group.reported++
	case e.request != nil:
		e.id.pending--
	}
	n := min(int(size), int(unsafe.Sizeof(e.resp)))
	copy(unsafe.Slice((*byte)(response), n), unsafe.Slice((*byte)(unsafe.Pointer(&e.resp)), n))
	return 0
}

// dropEvents removes the events of an id or, if group is not nil, those of the group, and returns
// the ids of requests among them.
func (ch *cmChannel) dropEvents(id *cmID, group *cmGroup) (requests []*cmID) {
	ch.events = slices.DeleteFunc(ch.events, func(e *cmEvent) bool {
		if e.id != id || group != nil && e.group != group {
			return false
		}
		if e.request != nil {
			requests = append(requests, e.request)
		}
		return true
	})
	ch.dropTokens()
	return requests
}

// dropTokens reads the tokens of dropped events, so that the descriptor is not readable without an
// event. A reader that was faster finds no event and waits again.
func (ch *cmChannel) dropTokens() {
	var b [1]byte
	for ch.tokens > len(ch.events) && ch.isOpen() {
		if n, _, err := syscall.Recvfrom(ch.fd, b[:], syscall.MSG_DONTWAIT); err != nil || n != 1 {
			return
		}
		ch.tokens--
	}
}
