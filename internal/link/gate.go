package link

import "sync/atomic"

// gate counts the goroutines inside one kind of call, on a cache line of its
// own: reader and writer do not slow each other down.
type gate struct {
	users atomic.Int32
	_     [60]byte
}

// shutBias is added to the users of a gate that was shut: negative means shut.
const shutBias = -1 << 30

// The ways into a link.
const (
	writing = iota
	reading
	waiting
	waking
	ways
)

// gates lets Close wait until nobody uses the link any more. A file descriptor
// must not be closed under a running system call: its number could be given to
// another file at once, and the call would hit that.
type gates struct {
	gate     [ways]gate
	closed   atomic.Bool
	busy     atomic.Int32  // gates that are not both shut and empty
	empty    chan struct{} // closed when busy reaches 0
	released chan struct{} // closed when the link's resources are free
}

func (g *gates) init() {
	g.busy.Store(ways)
	g.empty = make(chan struct{})
	g.released = make(chan struct{})
}

// enter reports whether the link is open; if so the caller must leave.
func (g *gates) enter(way int) bool {
	users := &g.gate[way].users
	for {
		n := users.Load()
		if n < 0 {
			return false
		}
		if users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends what enter began.
func (g *gates) leave(way int) {
	if g.gate[way].users.Add(-1) == shutBias {
		g.lastOut()
	}
}

func (g *gates) lastOut() {
	if g.busy.Add(-1) == 0 {
		close(g.empty)
	}
}

// close shuts the gates, calls interrupt, which must make blocked users
// return, waits until all have left, and calls release. Later calls wait for
// the first one.
func (g *gates) close(interrupt, release func()) {
	if !g.closed.Swap(true) {
		for way := range ways {
			if g.gate[way].users.Add(shutBias) == shutBias {
				g.lastOut()
			}
		}
		interrupt()
		<-g.empty
		release()
		close(g.released)
	}
	<-g.released
}
