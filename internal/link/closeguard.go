package link

import "sync/atomic"

// A userCount counts the goroutines inside one kind of call, on its own cache
// line, so that reader and writer do not share one.
type userCount struct {
	users atomic.Int32
	_     [60]byte
}

// closedBias is added to the count on close: a negative count means closed.
const closedBias = -1 << 30

// The kinds of calls into a link.
const (
	callWrite = iota
	callRead
	callWait
	callWake
	numCalls
)

// A closeGuard lets Close wait until no call into the link is in progress. A
// file descriptor must not be closed during a system call: its number could be
// reused at once, and the call would act on another file.
type closeGuard struct {
	counts     [numCalls]userCount
	closed     atomic.Bool
	openCounts atomic.Int32  // counts that are not both closed and zero
	empty      chan struct{} // closed when openCounts reaches 0
	released   chan struct{} // closed when the link's resources are free
}

func (g *closeGuard) init() {
	g.openCounts.Store(numCalls)
	g.empty = make(chan struct{})
	g.released = make(chan struct{})
}

// enter reports whether the link is open; if so the caller must call exit.
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

// exit undoes enter.
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

// close rejects further calls, calls interrupt, which must make blocked calls
// return, waits until all calls have returned, and calls release. Later calls
// wait for the first one.
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
