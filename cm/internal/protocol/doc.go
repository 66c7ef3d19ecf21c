// Package protocol is the communication manager as a function of its inputs:
// management datagrams and the time go in, datagrams, deadlines and events come
// out. It owns no socket, lock, goroutine, clock or random source, and is used
// by one goroutine at a time. Package cm wraps it.
//
//	m := protocol.New(protocol.Config{Rand: ...})
//	id, err := m.Connect(now, peer, mad.REQ{...})
//	m.Handle(now, from, datagram)          // what came
//	m.Advance(now)                         // when m.Deadline() has come
//	for d, ok := m.NextDatagram(); ok; ... // what is to be sent
//	for e, ok := m.NextEvent(); ok; ...    // what happened
//
// # States
//
// The active side connects, the passive side listens:
//
//	active                                  passive
//	REQ_SENT  ------------- REQ ----------> REQ_RCVD     EventRequest
//	          <------------ MRA ----------- (it takes longer than the REQ allows for)
//	          <------------ REP ----------- REP_SENT     Accept
//	REP_RCVD     EventReply
//	ESTABLISHED  Ready ---- RTU ----------> ESTABLISHED  EventEstablished
//
//	DREQ_SENT  Disconnect - DREQ ---------> EventDisconnected
//	TIMEWAIT   EventReleased <- DREP ------ TIMEWAIT
//
// Either side may refuse with REJ. Each message that wants an answer is
// repeated until it comes, as long and as often as the fields of the REQ say,
// within bounds of our own; duplicates are answered again. Every connection ends
// with exactly one of EventRejected, EventUnreachable, EventReleased and
// EventDisconnected, unless Abandon or Reject ended it.
//
// # Bounds
//
// A listener has room for so many half-open connections, of which one peer gets
// half; connections in TIMEWAIT give way when there are too many; peers'
// timeouts are cut to what is sensible. What does not fit is dropped and
// counted.
package protocol
