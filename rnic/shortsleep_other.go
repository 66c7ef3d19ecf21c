//go:build !linux

package rnic

import "time"

// A shortSleeper sleeps for a short time.
type shortSleeper struct{}

func newShortSleeper() *shortSleeper        { return &shortSleeper{} }
func (*shortSleeper) sleep(d time.Duration) { time.Sleep(d) }
func (*shortSleeper) close()                {}
