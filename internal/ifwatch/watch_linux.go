package ifwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Watcher watches an address in the network namespace of the goroutine that
// called Watch.
type Watcher struct {
	socket *os.File
	done   chan struct{}

	table    *table
	last     State
	onChange func(State)

	seq   uint32 // of the last request
	phase phase
}

// A phase is the dump in progress.
type phase uint8

const (
	idle phase = iota
	dumpLinks
	dumpAddrs
)

// rtnetlinkGroups are the multicast groups of NETLINK_ROUTE that a Watcher
// joins.
const rtnetlinkGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR

// Watch calls changed, on a goroutine of its own, whenever the state of ip
// differs from the state before, initially current. Index is the number of the
// interface that has it now. Watch itself makes three system calls; the
// goroutine detects changes between current and the call.
func Watch(ip netip.Addr, index int, current State, changed func(State)) (*Watcher, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("ifwatch: %w", os.NewSyscallError("socket", err))
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: rtnetlinkGroups}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ifwatch: %w", os.NewSyscallError("bind", err))
	}
	w := &Watcher{socket: os.NewFile(uintptr(fd), "rtnetlink"), done: make(chan struct{}),
		table: newTable(ip, index), last: current, onChange: changed}
	w.requestDump(dumpLinks)
	go w.run()
	return w, nil
}

// Close ends the watch. When it returns, changed is not called any more.
func (w *Watcher) Close() error {
	err := w.socket.Close()
	<-w.done
	return err
}

// requestDump requests a dump; its replies end with NLMSG_DONE.
func (w *Watcher) requestDump(p phase) {
	w.phase = p
	w.seq++
	kind := uint16(unix.RTM_GETLINK)
	if p == dumpAddrs {
		kind = unix.RTM_GETADDR
		w.table.startAddrDump()
	}
	const length = unix.SizeofNlMsghdr + unix.SizeofIfInfomsg // ifaddrmsg is shorter
	b := make([]byte, length)
	binary.NativeEndian.PutUint32(b[0:], length)
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(b[8:], w.seq)
	if _, err := w.socket.Write(b); err != nil {
		w.phase = idle // multicast messages still arrive
	}
}

// run reads until the socket is closed.
func (w *Watcher) run() {
	defer close(w.done)
	buf := make([]byte, 32<<10) // as large as the kernel's parts of a dump
	for {
		n, err := w.socket.Read(buf)
		switch {
		case err == nil:
			w.handleMessages(buf[:n])
		case errors.Is(err, unix.ENOBUFS): // messages were lost
			w.requestDump(dumpLinks)
		case errors.Is(err, unix.EINTR):
		default:
			return
		}
	}
}

// handleMessages applies the messages of one read.
func (w *Watcher) handleMessages(b []byte) {
	list, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return
	}
	for i := range list {
		m := &list[i]
		switch {
		case m.Header.Type == unix.NLMSG_DONE && m.Header.Seq == w.seq:
			w.finishDump()
		case m.Header.Type == unix.NLMSG_ERROR && m.Header.Seq == w.seq:
			w.phase = idle
		default:
			w.table.apply(m)
		}
	}
	if w.phase != idle {
		return // an incomplete dump has no state
	}
	if s := w.table.state(w.last); s != w.last {
		w.last = s
		w.onChange(s)
	}
}

// finishDump requests the next dump, if any.
func (w *Watcher) finishDump() {
	if w.phase == dumpLinks {
		w.requestDump(dumpAddrs)
		return
	}
	w.phase = idle
	w.table.endAddrDump()
}
