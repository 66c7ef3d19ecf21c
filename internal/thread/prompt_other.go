//go:build !linux

package thread

// Prompt does nothing here, and so does what it returns.
func Prompt() (undo func() bool) { return func() bool { return true } }
