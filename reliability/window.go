package reliability

// Window decides how many bytes a queue pair keeps in flight. It starts from
// what the peer's socket buffer holds, when that is known, grows with
// acknowledged bytes and shrinks on loss and on congestion notification. RoCE
// leaves this to the adapter; a peer sees only when packets come.
type Window struct {
	size       int  // bytes allowed in flight
	limit      int  // upper bound of size
	floor      int  // lower bound of size
	ackedBytes int  // acknowledged bytes not yet turned into growth
	reducedAt  Time // the last decrease; one a round trip
}

// Sizes of the window, bytes.
const (
	// DefaultWindow is what is sent towards a peer whose buffer is unknown,
	// until acknowledgements show that more is possible: well below Linux's
	// default receive buffer of 208 KiB.
	DefaultWindow = 128 << 10
	// MaxWindow bounds every window: beyond it a faster machine gains nothing
	// and the processor's cache loses.
	MaxWindow = 1 << 20
)

// Reset starts the window for packets of mtu bytes towards a peer whose
// receive buffer holds peerBuffer bytes (0: unknown).
func (w *Window) Reset(mtu, peerBuffer int) {
	*w = Window{floor: 2 * mtu, size: DefaultWindow, limit: MaxWindow}
	if peerBuffer > 0 {
		// A socket gets twice the buffer that is asked for, to allow for the
		// system's bookkeeping (socket(7)). Large datagrams need little of
		// that, so what is announced fits twice.
		w.limit = min(max(2*peerBuffer, w.floor), MaxWindow)
		w.size = w.limit
	}
	w.floor = min(w.floor, w.size)
}

// ResetReads starts the window for what comes back of READs, up to limit bytes:
// the buffer it arrives in is our own. An adapter like ours (known) is asked for
// all of that at once. Of others nobody knows how fast they are, and asking a
// slow one for more than it can send within the timeout only makes it send
// everything twice.
func (w *Window) ResetReads(mtu, limit int, known bool) {
	*w = Window{floor: min(2*mtu, limit), size: limit, limit: limit}
	if !known {
		w.size = min(DefaultWindow, limit)
	}
}

// Size is the number of bytes that may be in flight now.
func (w *Window) Size() int { return w.size }

// Allows reports whether n more bytes may follow inFlight bytes. One packet
// is always allowed.
func (w *Window) Allows(inFlight, n int) bool {
	return inFlight == 0 || inFlight+n <= w.size
}

// OnAck grows the window by an eighth for each window of acknowledged bytes.
func (w *Window) OnAck(n int) {
	if w.size >= w.limit {
		return
	}
	w.ackedBytes += n
	if w.ackedBytes >= w.size/8 {
		w.size = min(w.size+w.ackedBytes/8, w.limit)
		w.ackedBytes = 0
	}
}

// OnLoss shrinks the window by three tenths, at most once a round trip of rtt
// nanoseconds.
func (w *Window) OnLoss(now Time, rtt int64) {
	if w.reducedAt != 0 && int64(now-w.reducedAt) < rtt {
		return
	}
	w.reducedAt = now
	w.ackedBytes = 0
	w.size = max(w.size*7/10, w.floor)
}

// OnTimeout shrinks the window to its floor: nothing came back at all.
func (w *Window) OnTimeout(now Time) {
	w.reducedAt = now
	w.ackedBytes = 0
	w.size = w.floor
}
