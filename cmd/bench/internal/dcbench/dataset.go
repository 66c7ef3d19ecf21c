package dcbench

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/datacutter"
)

// An App is one of the applications.
type App string

// The applications.
const (
	Microscope App = "microscope"
	Isosurface App = "isosurface"
)

// A program is an application: its filters in order, and the number of filter groups.
type program struct {
	groups  int
	filters []string

	// generate writes a data set of about n bytes.
	generate func(w io.Writer, n int64, unitSize int) error

	// reference computes the image without filters.
	reference func(file io.ReaderAt, size int64) (*image.NRGBA, error)

	// prepare returns the part of a run that one process executes.
	prepare func(file io.ReaderAt, size int64, unitSize int, l datacutter.Layout) (appInstance, error)
}

// An appInstance is one process's part of a run. The process with the last filters has the
// image.
type appInstance interface {
	Job() datacutter.Job
	Picture() (*image.NRGBA, error)
}

var programs = map[App]program{Microscope: microscopeProgram, Isosurface: isosurfaceProgram}

// A DataSet is a file for an application, and the reference image of its content.
type DataSet struct {
	app      App
	path     string
	unitSize int
	picture  imageInfo
}

// ErrNoRoom is wrapped by errors of data sets for which the machine has too little memory or disk.
var ErrNoRoom = errors.New("dcbench: too little room on this machine")

// memoryFactor is the memory that generating a data set takes, in its size: the file, a slide before it is
// packed, and its pixels for the reference image.
const memoryFactor = 4

// checkRoom returns an ErrNoRoom if generating n bytes takes more than the available memory, as
// far as the system reports it.
func checkRoom(n, available int64) error {
	if need := memoryFactor * n; available > 0 && need > available {
		return fmt.Errorf("%w: needs %d MiB of memory, %d MiB are available", ErrNoRoom, need>>20, available>>20)
	}
	return nil
}

// NewDataSet generates a data set of about n bytes as a file in dir. The application processes
// it in units of up to unitSize bytes. The content is the same on every machine. It returns an
// ErrNoRoom if the machine has too little memory or disk for it.
func NewDataSet(dir string, app App, n int64, unitSize int) (*DataSet, error) {
	p, ok := programs[app]
	if !ok {
		return nil, fmt.Errorf("dcbench: unknown application %q; known applications: %s, %s", app, Microscope, Isosurface)
	}
	if err := checkRoom(n, env.AvailableMemory()); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, string(app)+"-*")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	d := &DataSet{app: app, path: file.Name(), unitSize: unitSize}
	w := bufio.NewWriterSize(file, 1<<20)
	err = p.generate(w, n, unitSize)
	if err == nil {
		err = w.Flush()
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	want, err := p.reference(file, size)
	if err != nil {
		return nil, err
	}
	d.picture = imageInfoOf(want)
	debug.FreeOSMemory() // for the runs
	return d, nil
}

// Remove deletes the file.
func (d *DataSet) Remove() error { return os.Remove(d.path) }

// TempDir creates a directory for data sets, in memory if possible. The caller must remove it.
func TempDir() (string, error) {
	const memory = "/dev/shm"
	if runtime.GOOS == "linux" {
		if dir, err := os.MkdirTemp(memory, "dcbench-*"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "dcbench-*")
}

// An imageInfo identifies an image by its size and a checksum.
type imageInfo struct {
	Width, Height int
	SHA256        string // SHA-256 of its pixels
}

func imageInfoOf(p *image.NRGBA) imageInfo {
	sum := sha256.Sum256(p.Pix)
	return imageInfo{p.Rect.Dx(), p.Rect.Dy(), hex.EncodeToString(sum[:])}
}

func (p imageInfo) String() string {
	return fmt.Sprintf("an image of %d by %d pixels with SHA-256 %.16s", p.Width, p.Height, p.SHA256)
}
