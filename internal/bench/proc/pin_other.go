//go:build !linux

package proc

// pinOrder is empty: Go has no portable way to keep a thread on a CPU.
func pinOrder() []int { return nil }

func pin(int) error { return nil }
