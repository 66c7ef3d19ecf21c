//go:build !linux

package cpus

// Cores is empty: Go has no portable way to keep a thread on a processor.
func Cores() [][]int { return nil }

// RunOn calls f.
func RunOn(_ []int, f func() error) error { return f() }

// PinCPU does nothing.
func PinCPU(int) error { return nil }
