package link

import "sync/atomic"

// userCount counts the goroutines inside one kind of call, on a cache line of its
// own: reader and writer do not slow each other down.
type userCount struct {
	users atomic.Int32
	_     [60]byte
}

// closedBias is added to the users of a gate that was shut: negative means shut.
const closedBias = -1 << 30

// The ways into a link.
const (
	callWrite = iota
	callRead
	callWait
	callWake
	numCalls
)

// closeGuard lets Close wait until nobody uses the link any more. A file descriptor
// must not be closed under a running system call: its number could be given to
// another file at once, and the call would hit that.
type closeGuard struct {
	counts     [numCalls]userCount
	closed     atomic.Bool
	openCounts atomic.Int32  // gates that are not both shut and empty
	empty      chan struct{} // closed when busy reaches 0
	released   chan struct{} // closed when the link's resources are free
}

func (g *closeGuard) init() {
	g.openCounts.Store(numCalls)
	g.empty = make(chan struct{})
	g.released = make(chan struct{})
}

// enter reports whether the link is open; if so the caller must leave.
func (g *closeGuard) enter(way int) bool {
	users := &g.counts[way].users
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

// exit ends what enter began.
func (g *closeGuard) exit(way int) {
	if g.counts[way].users.Add(-1) == closedBias {
		g.countDrained()
	}
}

func (g *closeGuard) countDrained() {
	if g.openCounts.Add(-1) == 0 {
		close(g.empty)
	}
}

// close shuts the gates, calls interrupt, which must make blocked users
// return, waits until all have left, and calls release. Later calls wait for
// the first one.
func (g *closeGuard) close(interrupt, release func()) {
	if !g.closed.Swap(true) {
		for way := range numCalls {
			if g.counts[way].users.Add(closedBias) == closedBias {
				g.countDrained()
			}
		}
		interrupt()
		<-g.empty
		release()
		close(g.released)
	}
	<-g.released
}
