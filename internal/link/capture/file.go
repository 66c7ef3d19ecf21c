package capture

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// Size of a buffer. There are two: one is filled while the other is written.
const (
	bufferBytes   = 4 << 20
	bufferPackets = 1 << 15
)

// NewZstd returns a compressor for capture files whose names end in .zst.
// Package internal/debug sets it. It is nil in a program without that package,
// which then does not link the compressor.
var NewZstd func(w io.Writer) (io.WriteCloser, error)

// A File is a Recorder that writes pcapng in a goroutine of its own. Packets
// that arrive faster than it can write are dropped and counted. Taps may share
// a File: each is an interface in it.
type File struct {
	onError func(error)
	closers []io.Closer // in the order of closing
	file    *os.File    // of an uncompressed capture in a regular file, or nil

	mu      sync.Mutex
	filling *buffer
	closed  bool  // drops further packets
	err     error // write error, for Close

	recorded, dropped atomic.Uint64
	wake              chan struct{} // wakes the goroutine
	done              chan struct{} // closed when it has ended
}

// buffer holds packets and, in memory that never moves, their bytes.
type buffer struct {
	packets []Packet
	data    []byte
}

// Create opens a capture file, which the caller must Close. A name that ends in
// .gz or, if NewZstd is set, .zst compresses it; Wireshark reads those as well.
// A named pipe must have a reader.
//
// A write error ends the capture only. It is passed to onError, if that is not
// nil, once, from another goroutine, and returned by Close. The file is
// truncated to complete packets, unless it is compressed.
func Create(name string, onError func(error)) (*File, error) {
	flags := os.O_RDWR
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		flags = os.O_WRONLY // writing fails, instead of blocking, after the reader has closed the pipe
	}
	f, err := os.OpenFile(name, flags|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	switch {
	case strings.HasSuffix(name, ".zst"):
		if NewZstd == nil {
			f.Close()
			return nil, fmt.Errorf(`capture: %s: %w: no zstd in this program; add import _ "github.com/softrnic/softrnic/rnic/rnicdebug", or use .gz`, name, errors.ErrUnsupported)
		}
		z, err := NewZstd(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("capture: %s: %w", name, err)
		}
		return NewFile(z, onError, z, f), nil
	case strings.HasSuffix(name, ".gz"):
		z := gzip.NewWriter(f)
		return NewFile(z, onError, z, f), nil
	}
	file := NewFile(f, onError, f)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		file.file = f
	}
	return file, nil
}

// NewFile is Create for any writer. Close closes the closers one after the
// other.
func NewFile(w io.Writer, onError func(error), closers ...io.Closer) *File {
	f := &File{
		onError: onError,
		closers: closers,
		filling: newBuffer(),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go f.writeLoop(newPcapng(w))
	return f
}

func newBuffer() *buffer { return &buffer{data: make([]byte, 0, bufferBytes)} }

// Record implements Recorder.
func (f *File) Record(p *Packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.filling
	switch {
	case f.closed:
		return
	case len(b.data)+len(p.Data) > cap(b.data) || len(b.packets) == bufferPackets:
		f.dropped.Add(1)
		return
	}
	off := len(b.data)
	b.data = append(b.data, p.Data...)
	b.packets = append(b.packets, *p)
	b.packets[len(b.packets)-1].Data = b.data[off:]
	if len(b.packets) == 1 {
		f.wakeWriter()
	}
}

func (f *File) wakeWriter() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// writeLoop is the goroutine: it swaps buffers and writes the full one until
// the File is closed and everything is written.
func (f *File) writeLoop(out *pcapng) {
	defer close(f.done)
	full := newBuffer()
	for range f.wake {
		f.mu.Lock()
		full, f.filling = f.filling, full
		closed := f.closed
		f.mu.Unlock()
		err := f.writeBuffer(full, out)
		full.packets, full.data = full.packets[:0], full.data[:0]
		if err == nil && closed {
			err = out.finish(f.recorded.Load(), f.dropped.Load())
		}
		if err != nil {
			f.stopWithError(err)
		}
		if err != nil || closed {
			return
		}
	}
}

func (f *File) writeBuffer(b *buffer, out *pcapng) error {
	for i := range b.packets {
		if err := out.writePacket(&b.packets[i]); err != nil {
			return err
		}
		f.recorded.Add(1)
	}
	return out.flush()
}

// stopWithError ends the capture.
func (f *File) stopWithError(err error) {
	err = fmt.Errorf("capture: stopped after %d packets: %w", f.recorded.Load(), err)
	if f.file != nil {
		err = errors.Join(err, truncateToBlocks(f.file))
	}
	f.mu.Lock()
	f.closed, f.err = true, err
	f.mu.Unlock()
	if f.onError != nil {
		f.onError(err)
	}
}

// Recorded returns the number of packets written so far.
func (f *File) Recorded() uint64 { return f.recorded.Load() }

// Dropped returns the number of packets dropped because the writer was too
// slow.
func (f *File) Dropped() uint64 { return f.dropped.Load() }

// truncateToBlocks removes the incomplete block at the end of a pcapng file that this
// machine has written.
func truncateToBlocks(f *os.File) error {
	const headerLen, trailerLen = 8, 4 // type and length, and the length again
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var end int64
	for {
		var header [headerLen]byte
		if _, err := f.ReadAt(header[:], end); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(header[4:]))
		if n < headerLen+trailerLen || end+n > info.Size() {
			return f.Truncate(end)
		}
		end += n
	}
}

// Close writes the recorded packets, closes the file, and returns the first
// error of writing, flushing or closing. It is idempotent. Taps may still have
// the File: it drops further packets.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wakeWriter()
	<-f.done
	f.mu.Lock()
	closers, err := f.closers, f.err
	f.closers, f.err = nil, nil
	f.mu.Unlock()
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	return err
}
