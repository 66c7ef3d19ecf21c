//go:build interop && !linux

package interop

import (
	"runtime"
	"testing"
)

func TestLab(t *testing.T) {
	t.Skip("no lab: the guest's cable is Linux's tap, this is " + runtime.GOOS)
}
