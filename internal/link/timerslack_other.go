//go:build !linux

package link

// LowerTimerSlack does nothing: only Linux has a timer slack per thread.
func LowerTimerSlack() error { return nil }
