//go:build !linux

package udpraw

import "errors"

// openSocket has the portable socket only, which has no offload.
func openSocket(o socketOptions) (socket, error) {
	if o.offload {
		return nil, errors.New("udpraw: UDP_SEGMENT and UDP_GRO exist on Linux only")
	}
	return openNetSocket(o)
}
