//go:build !linux

package thread

// Prompt does nothing here.
func Prompt() {}
