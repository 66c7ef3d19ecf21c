//go:build !linux

package rnic

import "time"

// napper sleeps for a short time.
type napper struct{}

func newNapper() *napper              { return &napper{} }
func (*napper) sleep(d time.Duration) { time.Sleep(d) }
func (*napper) close()                {}
