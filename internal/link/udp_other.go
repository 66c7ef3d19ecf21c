//go:build !linux

package link

// openFast opens the best link of this system: the portable one.
func openFast(o Options) (Conn, error) { return openPortable(o) }
