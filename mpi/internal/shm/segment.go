package shm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrUnavailable says that memory cannot be had in common here.
var ErrUnavailable = errors.New("shm: no memory in common")

// Segment is memory that processes have in common.
type Segment struct {
	name string
	file *os.File // of who has made it, until Unlink
	mem  []byte
}

// namePrefix is that of all names. It changes with the layout of Board: ranks of other
// versions of this package cannot open it.
const namePrefix = "board1-"

// Create makes a segment of so many bytes, which are zero. All of them are there: a
// lack of memory is an error now, and not the end of the process later. Others can open
// it until Unlink.
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

// zeroReader is a reader of them.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Open is the segment of a name that another process of the same user has made, of so
// many bytes.
func Open(name string, size int) (*Segment, error) {
	if !supported {
		return nil, ErrUnavailable
	}
	file, ours := strings.CutPrefix(name, namePrefix)
	if !ours {
		return nil, fmt.Errorf("%w: %q is no name of any", ErrUnavailable, name)
	}
	f, err := openFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer f.Close()
	if info, err := f.Stat(); size <= 0 || err != nil || info.Size() != int64(size) || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a file of %d bytes: %w", ErrUnavailable, name, size, err)
	}
	s := &Segment{name: file}
	if s.mem, err = mapFile(f, size); err != nil {
		return nil, err
	}
	return s, nil
}

// Name is what Open wants to know.
func (s *Segment) Name() string {
	if s == nil {
		return ""
	}
	return namePrefix + s.name
}

// Bytes is the memory, until Close.
func (s *Segment) Bytes() []byte {
	if s == nil {
		return nil
	}
	return s.mem
}

// Unlink is for who has made the segment: nobody opens it any more. Those who have it
// keep it.
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

// Close gives the memory back, which nobody may use any more.
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
