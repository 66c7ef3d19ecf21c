//go:build !unix

package shm

import (
	"errors"
	"os"
)

const supported = false

func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }
func unmapFile([]byte) error                { return nil }
