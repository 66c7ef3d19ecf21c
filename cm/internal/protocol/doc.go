// Package protocol implements the InfiniBand communication manager (CM) as a state machine
// without I/O: management datagrams (MADs) and the time are its inputs; datagrams, deadlines and
// events are its outputs. It has no socket, lock, goroutine, clock or random source, and is not
// safe for concurrent use. Package cm drives it.
//
//	m := protocol.New(protocol.Config{Rand: ...})
//	id, err := m.Connect(now, peer, mad.REQ{...})
//	m.Handle(now, from, datagram)          // received datagram
//	m.Advance(now)                         // at m.Deadline()
//	for d, ok := m.NextDatagram(); ok; ... // send them
//	for e, ok := m.NextEvent(); ok; ...    // handle them
//
// # States
//
// The active side connects, the passive side listens:
//
//	active                                  passive
//	REQ_SENT  ------------- REQ ----------> REQ_RCVD     EventRequest
//	          <------------ MRA ----------- (more time than the REQ allows)
//	          <------------ REP ----------- REP_SENT     Accept
//	REP_RCVD     EventReply
//	ESTABLISHED  Ready ---- RTU ----------> ESTABLISHED  EventEstablished
//
//	DREQ_SENT  Disconnect - DREQ ---------> EventDisconnected
//	TIMEWAIT   EventReleased <- DREP ------ TIMEWAIT
//
// Either side may refuse with a REJ. A message that requires a reply is retransmitted until the
// reply arrives, at the interval and up to the count in the REQ, within the machine's own bounds.
// Duplicates are answered again. Every connection ends with exactly one of EventRejected,
// EventUnreachable, EventReleased and EventDisconnected, unless Abandon or Reject ended it.
//
// # Bounds
//
// A listener limits its half-open connections, and one peer gets at most half of the limit. The
// oldest connection in TIMEWAIT is evicted when the table is full. Timeouts from peers are
// clamped. The machine drops and counts datagrams beyond these limits.
package protocol
