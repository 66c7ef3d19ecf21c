package mpitest

import (
	"testing"
	"time"
)

// SetGrace sets the time that others have when a rank has failed, for a test.
func SetGrace(t *testing.T, d time.Duration) {
	before := grace
	grace = d
	t.Cleanup(func() { grace = before })
}
