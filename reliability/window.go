package reliability

// A Window is a congestion window: the number of bytes that a queue pair may
// have in flight. It starts from the size of the peer's socket buffer if that
// is known, grows with acknowledged bytes, and shrinks on loss and on
// congestion notification. RoCE leaves congestion control to the adapter, so
// any peer is compatible with it.
type Window struct {
	size       int32 // bytes allowed in flight
	limit      int32 // upper bound of size
	floor      int32 // lower bound of size
	ackedBytes int32 // acknowledged bytes not yet credited to size
	reducedAt  Time  // time of the last decrease; at most one per round trip
}

// Sizes of the window, bytes.
const (
	// DefaultWindow is the initial window towards a peer with a receive buffer
	// of unknown size. It is well below Linux's default receive buffer of 208
	// KiB (net.core.rmem_default).
	DefaultWindow = 128 << 10
	// MaxWindow bounds every window. A larger one only evicts the processor's
	// cache.
	MaxWindow = 1 << 20
)

// Reset starts the window for packets of mtu bytes to a peer whose receive
// buffer holds peerBuffer bytes (0: unknown).
func (w *Window) Reset(mtu, peerBuffer int) {
	*w = Window{floor: int32(2 * mtu), size: DefaultWindow, limit: MaxWindow}
	if peerBuffer > 0 {
		// Linux doubles the requested socket buffer for its bookkeeping
		// (socket(7)). Large datagrams need little of it, so twice the
		// advertised size fits.
		w.limit = int32(min(max(2*peerBuffer, 2*mtu), MaxWindow))
		w.size = w.limit
	}
	w.floor = min(w.floor, w.size)
}

// ResetReads starts the window for read responses, which arrive in the local
// receive buffer, with at most limit bytes. A softrnic peer (known) starts with
// the full limit. The speed of other adapters is unknown: requesting more than
// one can send within the timeout would cause spurious retransmissions.
func (w *Window) ResetReads(mtu, limit int, known bool) {
	*w = Window{floor: int32(min(2*mtu, limit)), size: int32(limit), limit: int32(limit)}
	if !known {
		w.size = min(DefaultWindow, w.limit)
	}
}

// Size returns the number of bytes that may be in flight.
func (w *Window) Size() int { return int(w.size) }

// SetSize sets the number of bytes that may be in flight, at most the limit, for
// congestion control outside of this package.
func (w *Window) SetSize(n int) { w.size = int32(min(max(n, 1), int(w.limit))) }

// Allows reports whether n more bytes may follow inFlight bytes. One packet is
// always allowed.
func (w *Window) Allows(inFlight, n int) bool {
	return inFlight == 0 || inFlight+n <= int(w.size)
}

// OnAck grows the window by an eighth for each window of acknowledged bytes.
func (w *Window) OnAck(n int) {
	if w.size >= w.limit {
		return
	}
	w.ackedBytes += int32(n)
	if w.ackedBytes >= w.size/8 {
		w.size = min(w.size+w.ackedBytes/8, w.limit)
		w.ackedBytes = 0
	}
}

// OnLoss shrinks the window by three tenths, at most once per round trip of rtt
// nanoseconds.
func (w *Window) OnLoss(now Time, rtt int64) {
	if w.reducedAt != 0 && int64(now-w.reducedAt) < rtt {
		return
	}
	w.reducedAt = now
	w.ackedBytes = 0
	w.size = max(w.size*7/10, w.floor)
}

// OnTimeout shrinks the window to its minimum, because no response arrived at
// all.
func (w *Window) OnTimeout(now Time) {
	w.reducedAt = now
	w.ackedBytes = 0
	w.size = w.floor
}
