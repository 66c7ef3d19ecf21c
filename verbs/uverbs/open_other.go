//go:build !linux

package uverbs

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/softrnic/softrnic/verbs"
)

// Open opens a device of the Linux kernel. On other systems it returns errors.ErrUnsupported.
func Open(o Options) (verbs.Device, error) {
	return nil, &verbs.OpError{Op: "open device", Object: o.Name, Err: fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOOS)}
}

// Devices returns the names of the kernel's RDMA devices, none on systems other than Linux.
func Devices() ([]string, error) { return nil, nil }
