//go:build !unix

package measure

import (
	"errors"
	"time"
)

// processUsage returns an error: the system does not count context switches.
func processUsage() (processor time.Duration, switches int64, err error) {
	return 0, 0, errors.ErrUnsupported
}
