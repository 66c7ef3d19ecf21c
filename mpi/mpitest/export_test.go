package mpitest

import (
	"testing"
	"time"
)

// SetGrace sets the time that the other ranks have when one has failed.
func SetGrace(t *testing.T, d time.Duration) {
	before := grace
	grace = d
	t.Cleanup(func() { grace = before })
}
