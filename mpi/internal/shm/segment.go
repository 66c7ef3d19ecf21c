package shm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrUnavailable says that shared memory is not available.
var ErrUnavailable = errors.New("shm: shared memory unavailable")

// A Segment is memory shared by processes.
type Segment struct {
	name string
	file *os.File // of the creator, until Unlink
	mem  []byte
}

// namePrefix is the prefix of all names. It changes with the layout of Board, so that
// other versions of this package cannot open a segment.
const namePrefix = "board2-"

// Create creates a segment of size zero bytes. The memory is allocated at once, so that
// a shortage is an error here and not a fault later. Other processes can open it until
// Unlink.
func Create(size int) (*Segment, error) {
	if !supported {
		return nil, ErrUnavailable
	}
	if size <= 0 {
		return nil, fmt.Errorf("%w: segment of %d bytes", ErrUnavailable, size)
	}
	f, name, err := newFile()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	s := &Segment{name: name, file: f}
	if _, err = io.CopyN(f, zeroReader{}, int64(size)); err != nil {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	} else {
		s.mem, err = mapFile(f, size)
	}
	if err != nil {
		return nil, errors.Join(err, s.Unlink())
	}
	return s, nil
}

// A zeroReader reads zeros.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Open opens a segment of size bytes that another process of the same user created.
func Open(name string, size int) (*Segment, error) {
	if !supported {
		return nil, ErrUnavailable
	}
	file, ours := strings.CutPrefix(name, namePrefix)
	if !ours {
		return nil, fmt.Errorf("%w: malformed segment name %q", ErrUnavailable, name)
	}
	f, err := openFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if size <= 0 || info.Size() != int64(size) || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: mode %v, size %d, want a regular file of %d bytes", ErrUnavailable, name, info.Mode(), info.Size(), size)
	}
	s := &Segment{name: file}
	if s.mem, err = mapFile(f, size); err != nil {
		return nil, err
	}
	return s, nil
}

// Name returns the name for Open.
func (s *Segment) Name() string {
	if s == nil {
		return ""
	}
	return namePrefix + s.name
}

// Bytes returns the memory, valid until Close.
func (s *Segment) Bytes() []byte {
	if s == nil {
		return nil
	}
	return s.mem
}

// Unlink removes the name, so that no process can open the segment any more. Only the
// creator calls it. Existing mappings stay valid.
func (s *Segment) Unlink() error {
	if s == nil {
		return os.ErrClosed
	}
	f := s.file
	s.file = nil
	if f == nil {
		return os.ErrClosed
	}
	return removeFile(f, s.name)
}

// Close unmaps the memory, which must not be used any more.
func (s *Segment) Close() error {
	if s == nil {
		return nil
	}
	mem := s.mem
	if s.mem = nil; mem == nil {
		return nil
	}
	return unmapFile(mem)
}
