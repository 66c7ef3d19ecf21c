//go:build !linux

package udpraw

import "errors"

// openSocket opens the portable socket, which has no offload.
func openSocket(o socketOptions) (socket, error) {
	if o.offload {
		return nil, errors.New("udpraw: UDP_SEGMENT and UDP_GRO: Linux only")
	}
	return openNetSocket(o)
}
