package rnic

import (
	"net/netip"
	"sync"

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
	_ verbs.PathProber = (*Device)(nil)
	_ verbs.PathProber = (*queuePair)(nil)
)

// PathMTU implements verbs.PathProber.
func (d *Device) PathMTU(av verbs.AHAttr) (verbs.MTU, int) {
	_, path, err := resolveAV(d, av, "")
	if err != nil || path.Dst.Addr().IsMulticast() {
		return 0, 0
	}
	bytes := d.pathBytes(path.Dst)
	if bytes == 0 {
		return 0, 0
	}
	return mtuOfBytes(wire.PathMTU(bytes, !path.Dst.Addr().Unmap().Is4())), bytes
}

// PathMTU implements verbs.PathProber.
func (q *queuePair) PathMTU(av verbs.AHAttr) (verbs.MTU, int) { return q.dev.PathMTU(av) }

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
