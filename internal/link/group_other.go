//go:build !linux

package link

import (
	"fmt"
	"runtime"
)

// OpenGroup opens n links on one address. Only Linux can steer packets among
// several.
func OpenGroup(o Options, n int) ([]Conn, error) {
	if n != 1 {
		return nil, fmt.Errorf("link: %d links on one address need Linux, this is %s", n, runtime.GOOS)
	}
	c, err := OpenUDP(o)
	return []Conn{c}, err
}
