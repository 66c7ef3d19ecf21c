package tcp

// A sendQueue has bytes that are not written yet.
type sendQueue struct {
	b    []byte
	head int // offset of the first byte that is not written
}

// pendingBytes returns the bytes in the queue, valid until the next call of a method.
func (q *sendQueue) pendingBytes() []byte { return q.b[q.head:] }

// appendBytes adds bytes.
func (q *sendQueue) appendBytes(b []byte) {
	if q.head > 0 && len(q.b)+len(b) > cap(q.b) {
		q.b, q.head = q.b[:copy(q.b, q.pendingBytes())], 0
	}
	q.b = append(q.b, b...)
}

// removeFirst removes the first n bytes.
func (q *sendQueue) removeFirst(n int) {
	if q.head += n; q.head == len(q.b) {
		q.b, q.head = q.b[:0], 0
	}
}

// swapMemory removes and returns all bytes. The queue uses the memory of spare from then on.
func (q *sendQueue) swapMemory(spare []byte) []byte {
	out := q.pendingBytes()
	q.b, q.head = spare[:0], 0
	return out
}

// An input has received bytes that are not handled yet.
type input struct {
	b    []byte
	r, w int // range of the bytes in b
}

// unhandledBytes returns the bytes that are not handled.
func (in *input) unhandledBytes() []byte { return in.b[in.r:in.w] }

// freeSpace returns the memory behind them, after moving them to the front. It is not empty
// as long as packets are handled that are complete, because two fit.
func (in *input) freeSpace() []byte {
	in.r, in.w = 0, copy(in.b, in.unhandledBytes())
	return in.b[in.w:]
}
