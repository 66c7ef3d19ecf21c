package rnic

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// A shardStreams is the part of a shard with the TCP connections of its queue pairs (iWARP). The lock
// of the shard guards it.
type shardStreams struct {
	tcp   *link.TCP // nil with RoCE v2
	pool  qp.StreamPool
	list  []*queuePair // with a connection
	count atomic.Int32 // len(list)
	ready []uint32     // of the token holder
	vec   [][]byte

	polling bool // in pollStreams: requests complete
}

const (
	maxTriedStreams = 2  // connections that a poll reads without the question to the system which of them is readable
	maxStreamReads  = 16 // reads of a connection at a time, so that it does not starve others
	maxStreamWrites = 8  // writes of a connection at a time
)

// isStream reports whether the device speaks iWARP.
func (d *Device) isStream() bool { return d.shards[0].streams.tcp != nil }

// pollStreams reads the connections once, handles the FPDUs and due timers, and returns the number of
// FPDUs. The token is held.
func (s *shard) pollStreams() int {
	st := &s.streams
	st.ready = st.ready[:0]
	few := st.count.Load() <= maxTriedStreams
	if !few {
		st.ready = st.tcp.Ready(st.ready)
	}
	idle := !s.hasBacklog.Load() && !s.timerDue()
	if idle && len(st.ready) == 0 && (!few || st.count.Load() == 0) {
		s.emptyPolls++
		return 0
	}
	s.mu.Lock()
	if s.dev.unusable.Load() { // Close guarantees that memory is no longer accessed
		s.mu.Unlock()
		return 0
	}
	now := s.dev.now()
	fpdus := 0
	st.polling = true
	if few {
		for i := len(st.list) - 1; i >= 0; i-- { // a queue pair may leave the list
			fpdus += s.serveStream(st.list[i], now)
		}
	}
	for _, id := range st.ready {
		if q := s.dev.qps.lookup(id); q != nil && q.stream != nil {
			fpdus += s.serveStream(q, now)
		}
	}
	if fpdus > 0 {
		s.emptyPolls = 0
	} else {
		s.emptyPolls++
	}
	if t := s.nextTimer.Load(); t != 0 && int64(now) >= t {
		s.runTimers(now, true)
	}
	s.drainActive(now)
	st.polling = false
	s.unlock()
	return fpdus
}

// serveStream reads and writes a connection, and returns the number of FPDUs that were complete.
func (s *shard) serveStream(q *queuePair, now reliability.Time) int {
	fpdus := s.readStream(q, now)
	if fpdus > 0 || q.stream != nil && (q.stream.WatchesWritable() || q.core.StreamEnding() || q.core.StreamStalled()) {
		s.markActive(q)
	}
	return fpdus
}

// readStream reads a connection as far as it has data, and returns the number of complete FPDUs.
func (s *shard) readStream(q *queuePair, now reliability.Time) (fpdus int) {
	st := &s.streams
	for range maxStreamReads {
		st.vec = q.core.StreamBuffers(now, st.vec[:0])
		if len(st.vec) == 0 {
			return fpdus
		}
		want := 0
		for _, b := range st.vec {
			want += len(b)
		}
		n, again, err := q.stream.Read(st.vec)
		switch {
		case again:
			q.core.StreamReceived(now, st.vec, 0)
			return fpdus
		case errors.Is(err, syscall.EFAULT):
			q.core.StreamFault(now, false)
			return fpdus
		case errors.Is(err, io.EOF):
			q.core.StreamEnded(now, nil)
			return fpdus + 1
		case err != nil:
			q.core.StreamEnded(now, err)
			return fpdus + 1
		}
		fpdus += q.core.StreamReceived(now, st.vec, n)
		if n < want {
			return fpdus
		}
	}
	s.deferDrain(q, now)
	return fpdus
}

// drainStream sends the output of q, arms its timer, and closes its connection if that has ended.
func (s *shard) drainStream(q *queuePair, now reliability.Time) {
	st := &s.streams
	if s.dev.memoryWaiters.exist() { // this follows the FPDUs that were received
		s.memoryWritten = true
	}
	if st.polling { // first, because a request may wait until earlier ones are complete
		q.core.CompleteWritten(now)
	}
	blocked := false
	for writes := 0; !blocked; writes++ {
		if writes == maxStreamWrites {
			s.deferDrain(q, now)
			break
		}
		q.core.Drain(now, nil)
		if q.stream == nil {
			break
		}
		st.vec = q.core.StreamOutput(now, st.vec[:0])
		if len(st.vec) == 0 {
			q.core.StreamWritten(0)
			break
		}
		want := 0
		for _, b := range st.vec {
			want += len(b)
		}
		n, err := q.stream.Write(st.vec)
		switch {
		case errors.Is(err, syscall.EFAULT):
			q.core.StreamFault(now, true)
		case err != nil:
			s.readStream(q, now) // the peer may have sent the reason
			q.core.StreamEnded(now, err)
			blocked = true
		default:
			q.core.StreamWritten(n)
			blocked = n < want
			if st.polling && q.core.HasWritten() {
				q.core.CompleteWritten(now)
			}
		}
	}
	clear(st.vec[:cap(st.vec)])
	if q.core.HasWritten() {
		s.deferDrain(q, now)
	}
	if q.overran {
		q.failOverrun(now)
	}
	if q.stream != nil {
		if q.core.StreamEnding() {
			s.detachStream(q)
		} else {
			q.stream.WatchEvents(!q.core.StreamStalled(), blocked)
		}
	}
	if q.core.State() == verbs.StateErr {
		q.stopConnecting()
	}
	s.armTimer(q)
}

// attachStream gives q a connection. The lock is held.
func (s *shard) attachStream(q *queuePair, stream *link.Stream, p iwarp.Params) error {
	now := s.dev.now()
	err := q.core.AttachStream(now, qp.StreamConfig{
		Params: p, MaxSegment: iwarp.MaxSegment(stream.MaxSegmentSize()), Seed: s.dev.random(), Pool: &s.streams.pool,
	})
	if err != nil {
		return err
	}
	q.stream = stream
	s.streams.list = append(s.streams.list, q)
	s.streams.count.Store(int32(len(s.streams.list)))
	s.drainStream(q, now)
	return nil
}

// detachStream closes the connection of q. The lock is held.
func (s *shard) detachStream(q *queuePair) {
	if q.stream == nil {
		return
	}
	q.stream.Close()
	q.stream = nil
	q.core.DetachStream()
	for i, other := range s.streams.list {
		if other == q {
			last := len(s.streams.list) - 1
			s.streams.list[i] = s.streams.list[last]
			s.streams.list[last] = nil
			s.streams.list = s.streams.list[:last]
			break
		}
	}
	s.streams.count.Store(int32(len(s.streams.list)))
	if f := q.onStreamEnd; f != nil {
		q.onStreamEnd = nil
		go f()
	}
}

// checkStreamType returns the reason why a device with iWARP has no queue pairs of a type, or nil.
func (d *Device) checkStreamType(op string, t verbs.QPType) error {
	if !d.isStream() || t == verbs.RC {
		return nil
	}
	return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrUnsupported,
		Detail: fmt.Sprintf("queue pair type %v: iWARP has reliable connections only", t)}
}
