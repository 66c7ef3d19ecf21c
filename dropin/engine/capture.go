package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"syscall"
)

// captureLock is the file of the first device's packets. Its lock ends with the process.
var captureLock *os.File

// capturePath returns the file for the packets of a device. The first device of a process has the name
// as it is, unless a running process has it or the file has packets of an earlier one. Others have
// the process and the device number in it.
func capturePath(path string, index int) string {
	if index == 0 {
		f, free := lockCapture(path)
		captureLock = f
		if free {
			return path
		}
	}
	return fmt.Sprintf("%s.%d.%d", path, os.Getpid(), index)
}

// lockCapture locks a file and reports whether this process may overwrite it.
func lockCapture(path string) (lock *os.File, free bool) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, true // a pipe
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, true // the error is that of the device
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || hasPackets(f) {
		f.Close()
		return nil, false
	}
	return f, true
}

// Types of pcapng blocks without packets.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockNames      = 4
	blockStatistics = 5
)

// hasPackets reports whether a file has more than the description of a capture without packets. A file
// that is no capture has.
func hasPackets(f io.Reader) bool {
	r := bufio.NewReader(f)
	if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return false // ended in its header
		}
		r = bufio.NewReader(z)
	}
	var order binary.ByteOrder
	for {
		header, err := r.Peek(12)
		if err != nil {
			return order == nil && len(header) > 0
		}
		if binary.LittleEndian.Uint32(header) == blockSection {
			order = binary.LittleEndian
			if binary.BigEndian.Uint32(header[8:]) == 0x1a2b3c4d {
				order = binary.BigEndian
			}
		}
		if order == nil {
			return true
		}
		switch order.Uint32(header) {
		case blockSection, blockInterface, blockNames, blockStatistics:
		default:
			return true
		}
		length := int(order.Uint32(header[4:]))
		if length < len(header) {
			return true
		}
		if _, err := r.Discard(length); err != nil {
			return false
		}
	}
}
