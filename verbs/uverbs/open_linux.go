package uverbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// Devices returns the names of the kernel's RDMA devices with a node for verbs, sorted
// (ibv_get_device_list(3)). Not all of them have a provider in this package.
func Devices() ([]string, error) {
	names, _, err := kernelSystem.listDevices()
	if err != nil {
		return nil, &verbs.OpError{Op: "list devices", Err: err}
	}
	return names, nil
}

// Open opens a device of the kernel (ibv_open_device(3)). Without such a device the error is
// fs.ErrNotExist, without permission fs.ErrPermission, and verbs.ErrUnsupported for a device
// without a provider or with another version of the ABI. The process needs no privileges other than
// access to /dev/infiniband/uverbs0; it must open the device after it has changed its user.
func Open(o Options) (verbs.Device, error) {
	d, err := kernelSystem.openDevice(o)
	if err != nil {
		var done *verbs.OpError
		if errors.As(err, &done) {
			return nil, err
		}
		return nil, &verbs.OpError{Op: "open device", Object: o.Name, Err: err}
	}
	return d, nil
}

// openDevice opens the device of o, or the first one with a provider.
func (s system) openDevice(o Options) (*device, error) {
	names, nodes, err := s.listDevices()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: the kernel has no RDMA device; load rdma_rxe and ib_uverbs, and create one with \"rdma link add rxe0 type rxe netdev eth0\"", fs.ErrNotExist)
	}
	if err := s.checkABI(); err != nil {
		return nil, err
	}
	if o.Name != "" {
		if nodes[o.Name] == "" {
			return nil, fmt.Errorf("%w: the kernel has no RDMA device %s, but %s", fs.ErrNotExist, o.Name, strings.Join(names, ", "))
		}
		return s.openNode(o.Name, nodes[o.Name], o)
	}
	var failures []error
	for _, name := range names {
		d, err := s.openNode(name, nodes[name], o)
		if err == nil {
			return d, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", name, err))
	}
	return nil, errors.Join(failures...)
}

// openNode opens a device by its node.
func (s system) openNode(name, node string, o Options) (*device, error) {
	path := filepath.Join(s.nodes, node)
	file, err := openCommandFile(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("open %s: %w; grant the user read and write access to the file", path, err)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return nil, fmt.Errorf("open %s: %w; another network namespace may have the device", path, err)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	version, err := s.providerABI(node)
	if err == nil {
		d := newDevice(name, file, s)
		if err = d.start(version, o.Addr); err == nil {
			return d, nil
		}
		err = errors.Join(err, d.Close())
	} else {
		err = errors.Join(err, file.Close())
	}
	return nil, err
}

// newDevice returns a device without its event goroutines.
func newDevice(name string, file *commandFile, s system) *device {
	return &device{name: name, file: file, system: s, begin: time.Now(), closed: make(chan struct{}),
		objects: make(map[uint64]object), regions: make(map[*memoryRegion]struct{}),
		pairs: make(map[uint32]*queuePair), eventQueued: make(chan struct{}, 1)}
}

// openEvents returns the file of a descriptor that the kernel has created for events. Reads of it
// wait in Go's network poller.
func openEvents(fd uint32, name string) (*os.File, error) {
	if err := unix.SetNonblock(int(fd), true); err != nil {
		return nil, errors.Join(err, unix.Close(int(fd)))
	}
	return os.NewFile(uintptr(fd), name), nil
}
