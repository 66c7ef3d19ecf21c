//go:build !race

package racesync

// Release must be called before data becomes visible to others.
func Release() {}

// Acquire must be called after data of others was seen.
func Acquire() {}
