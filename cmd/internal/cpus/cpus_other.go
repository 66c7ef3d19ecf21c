//go:build !linux

package cpus

// Cores returns the processors that this process may use, by core. It is empty where they are not
// known.
func Cores() [][]int { return nil }

// RunOn calls f in a thread that runs on the processors of a set, which processes started by f
// inherit. Without a set it only calls f. It returns f's error, or the error of binding, in which
// case f is not called. A thread that cannot be unbound ends with its goroutine.
func RunOn(_ []int, f func() error) error { return f() }

// PinCPU binds every thread of this process to one processor; new threads inherit it. GOMAXPROCS
// keeps its value: once set, it no longer follows the number of permitted processors.
func PinCPU(int) error { return nil }
