//go:build !linux

package tcp

// newPoller returns no poller: goroutines read and write.
func newPoller() (poller, error) { return nil, nil }
