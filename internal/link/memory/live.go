package memory

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/wire"
)

// Live is an in-memory network in real time, for ordinary adapters of one
// process: datagrams arrive as they are sent, and Wait blocks. It may be used
// by many goroutines.
type Live struct {
	start time.Time
	pool  pool

	mu    sync.RWMutex
	ports portTable
}

// NewLive returns an empty network.
func NewLive() *Live {
	return &Live{start: time.Now(), ports: make(portTable)}
}

// Now returns the nanoseconds since the network was created.
func (l *Live) Now() int64 { return int64(time.Since(l.start)) }

// Attach opens a link at the given address; port 0 takes a free one. The
// options that need a simulated clock are refused: link/impair delays in real
// time.
func (l *Live) Attach(addr netip.AddrPort, o Options) (*Conn, error) {
	if o.needsVirtualClock() {
		return nil, fmt.Errorf("memory: %v: Delay, Rate and Queue need the simulated clock of a Network; on a Live network wrap the link in link/impair", addr)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ports.attach(l, &l.pool, addr, o)
}

// transmit implements fabric.
func (l *Live) transmit(from *Conn, path *wire.Path, buf []byte, seg int) {
	l.mu.RLock()
	to := l.ports[path.Dst]
	l.mu.RUnlock()
	if to == nil {
		from.countUnreachable((len(buf) + seg - 1) / seg)
		return
	}
	to.splitArrivals(from.addr, path, buf, seg, func(d *datagram) {
		if !to.enqueue(d) {
			from.countUnreachable(d.packetCount())
			l.pool.put(d)
		}
	})
}

// detach implements fabric.
func (l *Live) detach(addr netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ports, addr)
}

// blocks implements fabric.
func (l *Live) blocks() bool { return true }
