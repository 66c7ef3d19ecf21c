//go:build !linux

package cpus

// Cores is empty: Go has no portable way to keep a thread on a processor.
func Cores() [][]int { return nil }

// On calls f.
func On(_ []int, f func() error) error { return f() }

// Stay does nothing.
func Stay(int) error { return nil }
