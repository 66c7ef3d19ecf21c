package rnic

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A pathCache caches the MTUs of paths for a second, for programs that connect
// many queue pairs to one adapter.
type pathCache struct {
	mu    sync.Mutex
	paths map[netip.AddrPort]pathEntry
}

type pathEntry struct {
	bytes int
	until reliability.Time
}

const (
	pathTTL        = 1000 * reliability.Millisecond
	maxCachedPaths = 256
)

var (
	_ adapter.PathFitter = (*Device)(nil)
	_ adapter.PathFitter = (*queuePair)(nil)
)

// FitPathMTU returns the largest MTU up to mtu whose packets fit the path to the
// adapter at av, 0 if none does, and an error with verbs.ErrLimit if that is not mtu.
// The MTU of a path is that of the route, or a smaller one from an ICMP message; if
// the system does not know it, FitPathMTU returns mtu.
func (d *Device) FitPathMTU(av verbs.AHAttr, mtu verbs.MTU) (verbs.MTU, error) {
	_, path, err := resolveAV(d, av, "")
	if err != nil || path.Dst.Addr().IsMulticast() {
		return mtu, nil
	}
	bytes := d.pathBytes(path.Dst)
	fits := mtuOfBytes(wire.PathMTU(bytes, !path.Dst.Addr().Unmap().Is4()))
	if bytes == 0 || mtu <= fits {
		return mtu, nil
	}
	advice := "less than the smallest MTU needs"
	if fits > 0 {
		advice = fmt.Sprintf("use MTU %v at both ends", fits)
	}
	return fits, fmt.Errorf("%w: path MTU %v to %v, which carries IP packets of %d bytes: %s",
		verbs.ErrLimit, mtu, av.DGID.Addr(), bytes, advice)
}

// FitPathMTU implements adapter.PathFitter.
func (q *queuePair) FitPathMTU(av verbs.AHAttr, mtu verbs.MTU) (verbs.MTU, error) {
	return q.dev.FitPathMTU(av, mtu)
}

// pathBytes returns the MTU of a path in bytes, or 0 if the link does not know
// it. If sending fails altogether, completions report that.
func (d *Device) pathBytes(dst netip.AddrPort) int {
	c, now := &d.paths, d.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.paths[dst]; ok && now < e.until {
		return e.bytes
	}
	bytes, err := link.PathMTU(d.shards[0].socket, dst)
	if err != nil {
		bytes = 0
	}
	if len(c.paths) >= maxCachedPaths || c.paths == nil {
		c.paths = make(map[netip.AddrPort]pathEntry)
	}
	c.paths[dst] = pathEntry{bytes, now + pathTTL}
	return bytes
}
