package shm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrNone says that memory cannot be had in common here.
var ErrNone = errors.New("shm: no memory in common")

// Segment is memory that processes have in common.
type Segment struct {
	name string
	mem  []byte
}

// dir is where segments have their names: in memory where the system has a place
// for that, else among temporary files.
func dir() string {
	const memory = "/dev/shm" // shm_overview(7)
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return os.TempDir()
}

// prefix is that of all names. It changes with the layout of Board: ranks of other
// versions of this package cannot open it.
const prefix = "softrnic-board1-"

// Create makes a segment of so many bytes, which are zero. All of them are there: a
// file system that is full is an error now, and not the end of the process later.
func Create(size int) (*Segment, error) {
	if !supported {
		return nil, ErrNone
	}
	f, err := os.CreateTemp(dir(), prefix+"*") // for nobody else: it is made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer f.Close()
	s := &Segment{name: filepath.Base(f.Name())}
	if _, err = io.CopyN(f, zeros{}, int64(size)); err == nil {
		err = s.take(f, size)
	}
	if err != nil {
		return nil, errors.Join(err, s.Unlink())
	}
	return s, nil
}

// zeros is a reader of them.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Open is the segment of a name that another process has made, of so many bytes.
func Open(name string, size int) (*Segment, error) {
	if !supported || !strings.HasPrefix(name, prefix) || name != filepath.Base(name) {
		return nil, fmt.Errorf("%w: %q is no name of any", ErrNone, name)
	}
	f, err := os.OpenFile(filepath.Join(dir(), name), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() != int64(size) {
		err = fmt.Errorf("%w: %s has %d bytes, not %d", ErrNone, name, info.Size(), size)
	}
	s := &Segment{name: name}
	if err == nil {
		err = s.take(f, size)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// take maps the file.
func (s *Segment) take(f *os.File, size int) (err error) {
	if s.mem, err = mapFile(f, size); err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrNone, s.name, err)
	}
	return err
}

// Name is what Open wants to know.
func (s *Segment) Name() string { return s.name }

// Bytes is the memory, until Close.
func (s *Segment) Bytes() []byte { return s.mem }

// Unlink takes the name away. Those who have opened the segment keep it.
func (s *Segment) Unlink() error { return os.Remove(filepath.Join(dir(), s.name)) }

// Close gives the memory back, which nobody may use any more.
func (s *Segment) Close() error {
	mem := s.mem
	s.mem = nil
	return unmap(mem)
}
